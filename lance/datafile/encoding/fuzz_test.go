package encoding_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

const fuzzKinds = 16

// fuzzLeaf chooses a leaf by two bytes: the type of its values, and its path.
func fuzzLeaf(kind, shape byte) (level.Type, []level.Layer) {
	types := []level.Type{
		{Kind: level.Fixed, Bits: 1}, {Kind: level.Fixed, Bits: 8}, {Kind: level.Fixed, Bits: 16},
		{Kind: level.Fixed, Bits: 32}, {Kind: level.Fixed, Bits: 64}, {Kind: level.Fixed, Bits: 128},
		{Kind: level.Fixed, Bits: 2400}, {Kind: level.Variable, Bits: 32}, {Kind: level.Variable, Bits: 64},
		{Kind: level.FixedList, Bits: 32, Dim: 4}, {Kind: level.FixedList, Bits: 32, Dim: 130}, {Kind: level.Nothing},
		{Kind: level.FixedList, Bits: 1, Dim: 3}, {Kind: level.FixedList, Bits: 16, Dim: 6, Inner: 3},
		{Kind: level.Fixed, Bits: 120, Parts: level.NewParts([]level.Part{{Bits: 32}, {Bits: 64}, {Bits: 24}})},
		{Kind: level.Variable, Bits: 32, Parts: level.NewParts([]level.Part{
			{Bits: 32, Variable: true}, {Bits: 64}, {Bits: 64, Variable: true}, {Bits: 64, Items: 2}})},
	}
	item, list := level.NullableItem, level.NullAndEmptyList
	shapes := [][]level.Layer{{item}, {item, list}, {item, item}, {item, list, item, list}}
	return types[int(kind)%len(types)], shapes[int(shape)%len(shapes)]
}

func fuzzKind(t level.Type) (byte, bool) {
	for k := range byte(fuzzKinds) {
		if other, _ := fuzzLeaf(k, 0); other == t {
			return k, true
		}
	}
	return 0, false
}

func fuzzShape(layers []level.Layer) (byte, bool) {
	for k := range byte(4) {
		_, other := fuzzLeaf(0, k)
		if len(other) != len(layers) {
			continue
		}
		same := true
		for i := range other {
			same = same && other[i].IsList() == layers[i].IsList()
		}
		if same {
			return k, true
		}
	}
	return 0, false
}

// FuzzPage decodes arbitrary pages: a description, and up to four buffers cut out
// of data. The seeds are pages of the stock engine.
func FuzzPage(f *testing.F) {
	var paths []string
	for _, pattern := range []string{
		"../testdata/flat_10.2.1.lance", "../testdata/flat_150.2.2.lance", "../testdata/constant_10.2.2.lance",
		"../testdata/nested_10.2.2.lance", "../testdata/wide_10.2.1.lance", "../../../testdata/golden/types_*_p14/t.lance/data/*.lance",
	} {
		found, err := filepath.Glob(pattern)
		require.NoError(f, err)
		require.NotEmpty(f, found)
		paths = append(paths, found...)
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(f, err)
		file, err := datafile.Open(context.Background(), readat.Bytes(raw), int64(len(raw)), path)
		require.NoError(f, err)
		for i, leaf := range file.Schema().Leaves() {
			kind, ok := fuzzKind(leaf.Type)
			shape, ok2 := fuzzShape(leaf.Layers)
			c, err := file.Column(i)
			require.NoError(f, err)
			for _, p := range c.Pages() {
				if !ok || !ok2 || p.Bytes() > 1<<12 {
					continue
				}
				layout, err := proto.Marshal(p.Layout)
				require.NoError(f, err)
				var data []byte
				var cuts [3]uint16
				for k, b := range p.Buffers {
					data = append(data, raw[b.Offset:b.Offset+b.Size]...)
					if k < 3 {
						cuts[k] = uint16(len(data))
					}
				}
				f.Add(layout, kind, shape, uint16(p.Rows), uint8(len(p.Buffers)), cuts[0], cuts[1], cuts[2], data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, layout []byte, kind, shape byte, rows uint16, buffers uint8, a, b, c uint16, data []byte) {
		p := encoding.Page{Layout: new(enc21pb.PageLayout), Rows: uint64(rows), File: readat.Bytes(data), Size: uint64(len(data))}
		if proto.Unmarshal(layout, p.Layout) != nil {
			return
		}
		from := 0
		for _, to := range []int{int(a), int(b), int(c), len(data)}[:buffers%5] {
			to = max(min(to, len(data)), from)
			p.Buffers = append(p.Buffers, encoding.Buffer{Offset: uint64(from), Size: uint64(to - from)})
			from = to
		}
		checkPage(t, p, kind, shape)
	})
}

// checkPage decodes and takes rows of a page that may be anything: they are as many as
// were asked for, or the page is damaged.
func checkPage(t *testing.T, p encoding.Page, kind, shape byte) {
	typ, layers := fuzzLeaf(kind, shape)
	d := encoding.NewDecoder(typ, layers, encoding.Limits{BlockBytes: 1 << 14, BlockEntries: 1 << 10, Expanded: 1 << 20})
	check := func(from, to uint64) {
		got := uint64(0)
		err := d.Decode(context.Background(), p, from, to, func(b *level.Block) bool {
			c, err := level.NewCursor(b)
			require.NoError(t, err)
			require.NoError(t, c.Skip(b.Rows))
			got += uint64(b.Rows)
			return true
		})
		if err != nil {
			require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
			return
		}
		require.Equal(t, to-from, got)
	}
	check(0, p.Rows)
	check(p.Rows/3, p.Rows/2)
	checkTake(t, d, p, typ, layers)
}
