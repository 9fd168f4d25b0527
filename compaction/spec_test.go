package compaction

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/table"
)

// Tables in test files are written one fragment or index a line:
//
//	fragment 0-9 rows=100 deleted=5 bytes=4000
//	index name through|masked|refuses|system [by-address] covers=0-3,5 | covers=unknown
//	stable-row-ids
//
// Bytes are ten a row unless given.
func defineTable(t *testing.T, input string) *table.Snapshot {
	t.Helper()
	s := &table.Snapshot{
		Table: "t", Version: 7,
		Schema: table.Schema{Fields: []table.Field{{ID: 0, Name: "id", Type: arrow.PrimitiveTypes.Int64}}},
	}
	for line := range strings.Lines(input) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch words[0] {
		case "fragment":
			v := values(t, words[2:])
			for _, id := range ids(t, words[1]) {
				rows := number(t, v, "rows", 0)
				f := table.Fragment{ID: id, PhysicalRows: rows, Files: []table.DataFile{{
					Path: fmt.Sprintf("data/%d", id), Fields: []int32{0}, Bytes: number(t, v, "bytes", 10*rows),
				}}}
				if n := number(t, v, "deleted", 0); n > 0 {
					f.Deletion = &table.DeletionRef{Path: fmt.Sprintf("deletions/%d", id), Rows: n}
				}
				s.Fragments = append(s.Fragments, f)
				s.NextFragmentID = max(s.NextFragmentID, id+1)
			}
		case "index":
			m := table.IndexMeta{Name: words[1], Kind: strings.ToUpper(words[1]), CoverageKnown: true}
			binary.BigEndian.PutUint64(m.UUID[8:], uint64(len(s.Indexes)+1))
			switch words[2] {
			case "through":
				m.Reuse = table.ReuseThrough
			case "masked":
				m.Reuse = table.ReuseMasked
			case "refuses":
			case "system":
				m.System = true
			default:
				t.Fatalf("index %s: %s", words[1], words[2])
			}
			if len(words) > 3 && words[3] == "by-address" {
				m.ByAddress = true
				words = words[1:]
			}
			if covers := values(t, words[3:])["covers"]; covers == "unknown" {
				m.CoverageKnown = false
			} else if covers != "" {
				m.Coverage = ids(t, covers)
			}
			s.Indexes = append(s.Indexes, m)
		case "stable-row-ids":
			s.StableRowIDs = true
		default:
			t.Fatalf("%q defines nothing", line)
		}
	}
	return s
}

func values(t *testing.T, words []string) map[string]string {
	out := map[string]string{}
	for _, w := range words {
		k, v, ok := strings.Cut(w, "=")
		require.True(t, ok, w)
		out[k] = v
	}
	return out
}

func number(t *testing.T, values map[string]string, key string, def uint64) uint64 {
	v, ok := values[key]
	if !ok {
		return def
	}
	n, err := strconv.ParseUint(v, 10, 64)
	require.NoError(t, err)
	return n
}

// ids reads "0-3,7".
func ids(t *testing.T, s string) (out []table.FragmentID) {
	for part := range strings.SplitSeq(s, ",") {
		from, to, span := strings.Cut(part, "-")
		a, err := strconv.ParseUint(from, 10, 32)
		require.NoError(t, err)
		b := a
		if span {
			b, err = strconv.ParseUint(to, 10, 32)
			require.NoError(t, err)
		}
		for ; a <= b; a++ {
			out = append(out, table.FragmentID(a))
		}
	}
	return out
}

// defineOptions reads the arguments of a test command.
func defineOptions(t *testing.T, d *datadriven.TestData) Options {
	t.Helper()
	var o Options
	for _, arg := range d.CmdArgs {
		v := strings.Join(arg.Vals, ",")
		switch arg.Key {
		case "target":
			d.ScanArgs(t, arg.Key, &o.TargetRows)
		case "max-bytes":
			d.ScanArgs(t, arg.Key, &o.MaxBytesPerFile)
		case "threshold":
			f, err := strconv.ParseFloat(v, 64)
			require.NoError(t, err)
			o.DeletionThreshold = f
		case "source-rows":
			d.ScanArgs(t, arg.Key, &o.MaxSourceRows)
		case "source-bytes":
			d.ScanArgs(t, arg.Key, &o.MaxSourceBytes)
		case "source-fragments":
			d.ScanArgs(t, arg.Key, &o.MaxSourceFragments)
		case "exclude":
			o.ExcludeFragments = ids(t, v)
		case "fri":
			o.FRI = FRIMode(v)
		case "policy":
			o.IndexPolicy = IndexPolicy(v)
		case "mode":
			o.Mode = Mode(v)
		case "shared":
			o.Advice = table.ReuseWhenRead
		case "force":
			o.Force = true
		case "keep-order":
			o.KeepOrder = true
		case "unreadable", "order":
		default:
			t.Fatalf("option %s", arg.Key)
		}
	}
	return o
}
