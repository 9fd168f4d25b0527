package fri_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
)

// encode writes a content from a description, with nothing of package fri in it:
//
//	version N                 a Version message
//	group                     a Group message in it
//	transition                a tagged Transition message
//	old ID rows= deleted=     new ID rows= deleted=     field= adds an unknown one
//	live ID: 0-1 3            survivors, put into the treemap
//	trail HEX                 bytes after the treemap
//	treemap HEX               the treemap as it is
//	omit                      no treemap at all, and in a transition no mapping
//	partition ID bytes= base= the mapping of a transition, field= adds an unknown one
//	ordered                   an ordered mapping besides another one
//	field N                   an unknown varint field in the message above
//	varint N, bytes N         field N in a wire type of choice
//	end                       the end of all messages but the content
//	junk HEX                  bytes after everything
func encode(t *testing.T, text string) []byte {
	e := encoder{t: t}
	for _, line := range strings.Split(text, "\n") {
		if words := strings.Fields(line); len(words) > 0 {
			e.line(words[0], strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), words[0])))
		}
	}
	e.closeVersion()
	return e.content
}

type encoder struct {
	t                       *testing.T
	content, version, group []byte
	inVersion, inGroup      bool
	tagged                  bool // the group is a transition
	survivors               *roaring64.Bitmap
	raw, trail              []byte
	mapping                 bool // no treemap goes into the group
}

func bytesField(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

func varintField(b []byte, num protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

func (e *encoder) open(tagged bool) {
	e.closeGroup()
	*e = encoder{
		t: e.t, content: e.content, version: e.version, inVersion: e.inVersion,
		inGroup: true, tagged: tagged, survivors: roaring64.New(),
	}
}

func (e *encoder) closeGroup() {
	if !e.inGroup {
		return
	}
	e.inGroup = false
	treemap := e.raw
	if treemap == nil {
		var err error
		treemap, err = e.survivors.ToBytes()
		require.NoError(e.t, err)
	}
	treemap = append(treemap, e.trail...)
	switch {
	case e.tagged && !e.mapping:
		e.group = bytesField(e.group, 3, bytesField(nil, 1, treemap))
	case !e.mapping:
		e.group = bytesField(e.group, 1, treemap)
	}
	if e.tagged {
		e.content = bytesField(e.content, 2, e.group)
	} else {
		e.version = bytesField(e.version, 3, e.group)
	}
}

func (e *encoder) closeVersion() {
	e.closeGroup()
	if e.inVersion {
		e.content = bytesField(e.content, 1, e.version)
	}
	e.inVersion = false
}

// innermost is the message that the last lines are about.
func (e *encoder) innermost() *[]byte {
	switch {
	case e.inGroup:
		return &e.group
	case e.inVersion:
		return &e.version
	default:
		return &e.content
	}
}

func (e *encoder) hex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(e.t, err)
	return b
}

func (e *encoder) line(word, rest string) {
	t := e.t
	switch word {
	case "version":
		e.closeVersion()
		e.inVersion, e.version = true, varintField(nil, 1, number(t, rest))
	case "group":
		e.open(false)
	case "transition":
		e.closeVersion()
		e.open(true)
	case "old", "new":
		id, kv := attrs(rest)
		dg := varintField(nil, 1, number(t, id))
		for _, f := range []struct {
			key string
			num protowire.Number
		}{{"rows", 2}, {"deleted", 3}} {
			if v, ok := kv[f.key]; ok {
				dg = varintField(dg, f.num, number(t, v))
			}
		}
		if v, ok := kv["field"]; ok {
			dg = varintField(dg, protowire.Number(number(t, v)), 1)
		}
		num := protowire.Number(2)
		if word == "new" {
			num = 3
		}
		if e.tagged {
			num--
		}
		e.group = bytesField(e.group, num, dg)
	case "live":
		id, list, _ := strings.Cut(rest, ":")
		for o := range offsets(t, list).All() {
			e.survivors.Add(number(t, id)<<32 | uint64(o))
		}
	case "treemap":
		e.raw = e.hex(rest)
	case "trail":
		e.trail = e.hex(rest)
	case "omit":
		e.mapping = true
	case "partition":
		id, kv := attrs(rest)
		msg := bytesField(nil, 1, []byte(id))
		if v, ok := kv["bytes"]; ok {
			msg = varintField(msg, 2, number(t, v))
		}
		if v, ok := kv["base"]; ok {
			msg = varintField(msg, 3, number(t, v))
		}
		if v, ok := kv["field"]; ok {
			msg = varintField(msg, protowire.Number(number(t, v)), 1)
		}
		e.mapping = true
		e.group = bytesField(e.group, 4, msg)
	case "ordered":
		e.group = bytesField(e.group, 3, e.hex(rest))
	case "field", "varint":
		m := e.innermost()
		*m = varintField(*m, protowire.Number(number(t, rest)), 1)
	case "bytes":
		m := e.innermost()
		*m = bytesField(*m, protowire.Number(number(t, rest)), []byte("future"))
	case "end":
		e.closeVersion()
	case "junk":
		e.closeVersion()
		e.content = append(e.content, e.hex(rest)...)
	default:
		t.Fatalf("unknown line %q", word+" "+rest)
	}
}
