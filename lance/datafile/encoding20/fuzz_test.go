package encoding20_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/encoding20"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// fuzzTypes are the types of leaves that the fuzzer reads.
var fuzzTypes = []level.Type{
	{Kind: level.Fixed, Bits: 1}, {Kind: level.Fixed, Bits: 8}, {Kind: level.Fixed, Bits: 32}, {Kind: level.Fixed, Bits: 64},
	{Kind: level.Variable, Bits: 32}, {Kind: level.Variable, Bits: 64}, {Kind: level.Nothing},
	{Kind: level.FixedList, Bits: 32, Dim: 2}, {Kind: level.FixedList, Bits: 1, Dim: 3}, {Kind: level.FixedList, Bits: 16, Dim: 6, Inner: 3},
	{Kind: level.Fixed, Bits: 120, Parts: level.NewParts([]level.Part{{Bits: 32}, {Bits: 64}, {Bits: 24}})},
	{Kind: level.Variable, Bits: 32, Parts: level.NewParts([]level.Part{{Bits: 32}, {Bits: 64, Items: 2}})},
}

// What a path is like, as bits of one byte.
const (
	fuzzDictionary = 1 << iota
	fuzzBlob
	fuzzList
)

// FuzzPages reads arbitrary pages: a page of lists, if there is one, whose first buffer
// is its own, and a page of their items. The seeds are pages of the stock engine.
func FuzzPages(f *testing.F) {
	paths, err := filepath.Glob("../../../testdata/golden/*2_0*/t.lance/data/*.lance")
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	seeds := 0
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(f, err)
		file, err := datafile.Open(context.Background(), readat.Bytes(raw), int64(len(raw)), path)
		require.NoError(f, err)
		seeds += addSeeds(f, file, raw)
	}
	require.Greater(f, seeds, 20)
	f.Fuzz(func(t *testing.T, list, values []byte, kind, path byte, lists, items uint16, a, b, c uint16, data []byte) {
		pages := [2]encoding20.Page{
			{Values: uint64(lists), Encoding: new(enc20pb.ArrayEncoding)},
			{Values: uint64(items), Encoding: new(enc20pb.ArrayEncoding)},
		}
		if proto.Unmarshal(list, pages[0].Encoding) != nil || proto.Unmarshal(values, pages[1].Encoding) != nil {
			return
		}
		from := 0
		for i, to := range []int{int(a), int(b), int(c), len(data)} {
			to = max(min(to, len(data)), from)
			buffer := encoding.Buffer{Offset: uint64(from), Size: uint64(to - from)}
			if i == 0 && path&fuzzList != 0 {
				pages[0].Buffers = append(pages[0].Buffers, buffer)
			} else {
				pages[1].Buffers = append(pages[1].Buffers, buffer)
			}
			from = to
		}
		leaf := encoding20.Leaf{Type: fuzzTypes[int(kind)%len(fuzzTypes)], Layers: flatOf, Dictionary: path&fuzzDictionary != 0}
		source := encoding20.Source{File: readat.Bytes(data), Size: uint64(len(data)), Rows: uint64(items),
			Pages: pages[1:], Blob: path&fuzzBlob != 0}
		if path&fuzzList != 0 {
			leaf.Layers, source.Rows, source.Lists = listOf, uint64(lists), [][]encoding20.Page{pages[:1]}
		}
		limits := encoding.Limits{BlockBytes: 1 << 12, BlockEntries: 1 << 8, Expanded: 1 << 20}
		_, err := readAll(t, leaf, source, limits)
		if err != nil {
			require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
		}
		r, err := encoding20.NewReader(leaf, source, limits)
		if err != nil {
			return
		}
		from64, to := source.Rows/3, source.Rows/2
		rows := uint64(0)
		err = r.Read(context.Background(), from64, to, func(b *level.Block) bool {
			c, err := level.NewCursor(b)
			require.NoError(t, err)
			require.NoError(t, c.Skip(b.Rows))
			rows += uint64(b.Rows)
			return true
		})
		if err == nil {
			require.Equal(t, to-from64, rows)
		} else {
			require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
		}
	})
}

// addSeeds adds the leaves of a file that have at most one list around them.
func addSeeds(f *testing.F, file *datafile.File, raw []byte) (seeds int) {
	for i, leaf := range file.Schema().Leaves() {
		kind := -1
		for k, typ := range fuzzTypes {
			if typ == leaf.Type {
				kind = k
			}
		}
		c, err := file.OwnLeaf(i)
		require.NoError(f, err)
		if kind < 0 || len(c.Lists()) > 1 || len(c.Pages()) != 1 || c.Pages()[0].Bytes() > 1<<13 {
			continue
		}
		path := byte(0)
		if leaf.Dictionary != nil {
			path |= fuzzDictionary
		}
		var buffers [][]byte
		var list []byte
		lists := uint64(0)
		add := func(p datafile.Page) []byte {
			for _, b := range p.Buffers {
				buffers = append(buffers, raw[b.Offset:b.Offset+b.Size])
			}
			out, err := proto.Marshal(p.Array)
			require.NoError(f, err)
			return out
		}
		if len(c.Lists()) == 1 {
			path |= fuzzList
			p := c.Lists()[0].Pages()[0]
			lists, list = p.Rows, add(p)
		}
		values := add(c.Pages()[0])
		var data []byte
		var cuts [4]uint16
		for k, b := range buffers {
			data = append(data, b...)
			cuts[min(k, 3)] = uint16(len(data))
		}
		f.Add(list, values, byte(kind), path, uint16(lists), uint16(c.Pages()[0].Rows), cuts[0], cuts[1], cuts[2], data)
		seeds++
	}
	return seeds
}
