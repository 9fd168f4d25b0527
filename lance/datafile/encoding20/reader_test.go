package encoding20_test

import (
	"context"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/encoding20"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

var (
	int32s  = level.Type{Kind: level.Fixed, Bits: 32}
	strings = level.Type{Kind: level.Variable, Bits: 32}
	flatOf  = []level.Layer{level.NullableItem}
	listOf  = []level.Layer{level.NullableItem, level.NullAndEmptyList}
)

func words(n ...uint64) (out []byte) {
	for _, w := range n {
		out = binary.LittleEndian.AppendUint64(out, w)
	}
	return out
}

func flat(bits uint64, buffer uint32) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Flat{Flat: &enc20pb.Flat{
		BitsPerValue: bits, Buffer: &enc20pb.Buffer{BufferIndex: buffer}}}}
}

func zipped(scheme string, bits uint64, buffer uint32) *enc20pb.ArrayEncoding {
	e := flat(bits, buffer)
	e.GetFlat().Compression = &enc20pb.Compression{Scheme: scheme}
	return e
}

func list(e *enc20pb.ArrayEncoding, null, items uint64) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_List{
		List: &enc20pb.List{Offsets: e, NullOffsetAdjustment: null, NumItems: items}}}
}

func text(indices, bytes *enc20pb.ArrayEncoding, null uint64) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Binary{
		Binary: &enc20pb.Binary{Indices: indices, Bytes: bytes, NullAdjustment: null}}}
}

func dictionary(indices, items *enc20pb.ArrayEncoding, n uint32) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Dictionary{
		Dictionary: &enc20pb.Dictionary{Indices: indices, Items: items, NumDictionaryItems: n}}}
}

func fixedList(items *enc20pb.ArrayEncoding, n uint32) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_FixedSizeList{
		FixedSizeList: &enc20pb.FixedSizeList{Dimension: n, Items: items}}}
}

func nulls() *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Nullable{Nullable: &enc20pb.Nullable{
		Nullability: &enc20pb.Nullable_AllNulls{AllNulls: &enc20pb.Nullable_AllNull{}}}}}
}

// testFile is buffers, one after the other.
type testFile struct{ data []byte }

func (f *testFile) page(first, values uint64, e *enc20pb.ArrayEncoding, buffers ...[]byte) encoding20.Page {
	p := encoding20.Page{First: first, Values: values, Encoding: e}
	for _, b := range buffers {
		p.Buffers = append(p.Buffers, encoding.Buffer{Offset: uint64(len(f.data)), Size: uint64(len(b))})
		f.data = append(f.data, b...)
	}
	return p
}

func (f *testFile) source(rows uint64, pages []encoding20.Page, lists ...[]encoding20.Page) encoding20.Source {
	return encoding20.Source{File: readat.Bytes(f.data), Size: uint64(len(f.data)), Rows: rows, Lists: lists, Pages: pages}
}

// readAll reads all rows, checking that blocks are sound.
func readAll(t require.TestingT, leaf encoding20.Leaf, s encoding20.Source, limits encoding.Limits) (blocks []level.Block, err error) {
	r, err := encoding20.NewReader(leaf, s, limits)
	if err == nil {
		err = r.Check()
	}
	if err != nil {
		return nil, err
	}
	rows := uint64(0)
	err = r.Read(context.Background(), 0, s.Rows, func(b *level.Block) bool {
		c, err := level.NewCursor(b)
		require.NoError(t, err)
		require.NoError(t, c.Skip(b.Rows))
		rows += uint64(b.Rows)
		if len(blocks) < 100 {
			blocks = append(blocks, *b)
		}
		return true
	})
	if err == nil {
		require.Equal(t, s.Rows, rows)
	}
	return blocks, err
}

// The example of the package's documentation.
func TestExample(t *testing.T) {
	var f testFile
	lists := []encoding20.Page{f.page(0, 4, list(flat(64, 0), 4, 3), words(2, 2+4, 2, 3))}
	items := []encoding20.Page{f.page(0, 3, &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Nullable{Nullable: &enc20pb.Nullable{
		Nullability: &enc20pb.Nullable_SomeNulls{SomeNulls: &enc20pb.Nullable_SomeNull{Validity: flat(1, 0), Values: flat(32, 1)}}}}},
		[]byte{0b101}, []byte{1, 0, 0, 0, 9, 9, 9, 9, 2, 0, 0, 0})}
	blocks, err := readAll(t, encoding20.Leaf{Type: int32s, Layers: listOf}, f.source(4, items, lists), encoding.Limits{})
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	b := blocks[0]
	require.Equal(t, []uint16{1, 0, 1, 1, 1}, b.Rep)
	require.Equal(t, []uint16{0, 1, 2, 3, 0}, b.Def)
	require.Equal(t, []byte{1, 0, 0, 0, 9, 9, 9, 9, 2, 0, 0, 0}, b.Values.Data)

	// And back.
	var l encoding20.Lists
	null, err := l.Add(&b)
	require.NoError(t, err)
	require.Equal(t, []uint16{0, 1, 0}, null)
	page := l.Page(0)
	require.Equal(t, [][]byte{words(2, 2+4, 2, 3)}, page.Buffers)
	require.Equal(t, uint64(3), page.Encoding.GetList().GetNumItems())
	values, err := encoding20.EncodeValues(b.Type, &b.Values, null, encoding20.Options{})
	require.NoError(t, err)
	require.Equal(t, "nullable(flat(32))", encoding20.Name(values.Encoding))
}

// What pages claim is refused before memory is taken for it.
func TestHostilePages(t *testing.T) {
	const many = 1 << 32
	one := func(typ level.Type, n uint64, e *enc20pb.ArrayEncoding, buffers ...[]byte) func(f *testFile) (encoding20.Leaf, encoding20.Source) {
		return func(f *testFile) (encoding20.Leaf, encoding20.Source) {
			p := f.page(0, n, e, buffers...)
			return encoding20.Leaf{Type: typ, Layers: flatOf}, f.source(n, []encoding20.Page{p})
		}
	}
	lists := func(n, items uint64, e *enc20pb.ArrayEncoding, ends ...uint64) func(f *testFile) (encoding20.Leaf, encoding20.Source) {
		return func(f *testFile) (encoding20.Leaf, encoding20.Source) {
			l := f.page(0, n, e, words(ends...))
			p := f.page(0, items, nulls())
			return encoding20.Leaf{Type: int32s, Layers: listOf}, f.source(n, []encoding20.Page{p}, []encoding20.Page{l})
		}
	}
	vectors := level.Type{Kind: level.FixedList, Bits: 32, Dim: 6, Inner: 2}
	deep := flat(32, 0)
	for range 100 {
		deep = &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Nullable{Nullable: &enc20pb.Nullable{
			Nullability: &enc20pb.Nullable_NoNulls{NoNulls: &enc20pb.Nullable_NoNull{Values: deep}}}}}
	}
	column := flat(32, 0)
	column.GetFlat().Buffer.BufferType = enc20pb.Buffer_COLUMN
	for name, c := range map[string]struct {
		make func(f *testFile) (encoding20.Leaf, encoding20.Source)
		says string
	}{
		"more values than bytes":       {one(int32s, many, flat(32, 0), words(1)), "a buffer of 8 bytes"},
		"more values than a page has":  {one(int32s, many+1, nulls()), "a page of"},
		"another width":                {one(int32s, 1, flat(64, 0), words(1)), "values of 64 bits"},
		"no such buffer":               {one(int32s, 1, flat(32, 7), words(1)), "no buffer 7"},
		"a buffer of the column":       {one(int32s, 1, column, words(1)), "buffers other than its own"},
		"no encoding":                  {one(int32s, 1, nil), "none is not supported"},
		"nested without end":           {one(int32s, 1, deep, words(1)), "nested"},
		"too much when expanded":       {one(int32s, many, zipped("zstd", 32, 0), words(1<<40, 0)), "a compressed buffer of more"},
		"less when expanded":           {one(int32s, 4, zipped("lz4", 32, 0), []byte{1, 0, 0, 0, 0x10, 7}), "a compressed buffer of 1 bytes"},
		"a scheme that is not known":   {one(int32s, 1, zipped("brotli", 32, 0), words(1)), "brotli"},
		"strings that end outside":     {one(strings, 1, text(flat(64, 0), flat(8, 1), 1<<50), words(1<<40), []byte("a")), "of 1 bytes"},
		"strings that end before":      {one(strings, 2, text(flat(64, 0), flat(8, 1), 9), words(1, 0), []byte("a")), "of 1 bytes"},
		"strings that begin outside":   {one(strings, 2, text(flat(64, 0), flat(8, 1), 1<<63), words(1<<62, 1<<62), []byte("a")), "of 1 bytes"},
		"an index outside":             {one(strings, 1, dictionary(flat(8, 0), text(flat(64, 1), flat(8, 2), 9), 1), []byte{2}, words(1), []byte("a")), "index 1 into a dictionary of 1"},
		"a dictionary of dictionaries": {one(strings, 1, dictionary(flat(8, 0), dictionary(flat(8, 0), nulls(), 1), 1), []byte{1}), "is not supported"},
		"too many items":               {one(strings, 1, dictionary(flat(8, 0), nulls(), 1<<31), []byte{1}), "a dictionary of"},
		"a dictionary of numbers":      {one(int32s, 1, dictionary(flat(8, 0), flat(32, 1), 1), []byte{1}, words(1)), "is not supported"},
		"fixed lists of another size":  {one(vectors, 1, fixedList(fixedList(flat(32, 0), 3), 3), words(1, 2, 3)), "fixed-size lists"},
		"fixed lists of fewer levels":  {one(vectors, 1, fixedList(flat(32, 0), 6), words(1, 2, 3)), "fixed-size lists"},
		"fixed lists of nothing":       {one(vectors, 1, fixedList(fixedList(flat(32, 0), 3), 0), words(1, 2, 3)), "fixed-size lists"},
		"lists of more items":          {lists(1, 1, list(flat(64, 0), 9, 2), 2), "pages of 1 values where there are 2"},
		"lists of endless items":       {lists(1, 1, list(flat(64, 0), 1<<63, 1<<62), 1<<62), "a page of"},
		"lists that end outside":       {lists(1, 2, list(flat(64, 0), 9, 2), 3), "of 2 items"},
		"lists that end before":        {lists(2, 2, list(flat(64, 0), 9, 2), 2, 1), "of 2 items"},
		"lists that leave items out":   {lists(1, 2, list(flat(64, 0), 9, 2), 1), "lists of 1 items in a page of 2"},
		"null lists that are not":      {lists(1, 2, list(flat(64, 0), 9, 2), 2), ""},
		"a null list of items":         {lists(1, 2, list(flat(64, 0), 9, 2), 2+9), ""},
		"ends that are null":           {lists(1, 2, list(flat(64, 0), 2, 2), 2), "are null"},
		"more lists than ends":         {lists(many, 2, list(flat(64, 0), 9, 2), 2), "a buffer of 8 bytes"},
		"a row of all items":           {lists(1, 1<<31, list(flat(64, 0), 1<<40, 1<<31), 1<<31), "a row of"},
		"no list":                      {lists(1, 1, flat(64, 0), 1), "is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			var f testFile
			leaf, source := c.make(&f)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := readAll(t, leaf, source, encoding.Limits{})
			runtime.ReadMemStats(&after)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// Many rows that take no bytes come in blocks of some size.
func TestBlocksAreBounded(t *testing.T) {
	var f testFile
	for _, typ := range []level.Type{int32s, strings, {Kind: level.FixedList, Bits: 32, Dim: 1 << 20}} {
		s := f.source(1000, []encoding20.Page{f.page(0, 1000, nulls())})
		n := 0
		r, err := encoding20.NewReader(encoding20.Leaf{Type: typ, Layers: flatOf}, s, encoding.Limits{BlockEntries: 100, BlockBytes: 1 << 23})
		require.NoError(t, err)
		require.NoError(t, r.Read(context.Background(), 0, 1000, func(b *level.Block) bool {
			require.LessOrEqual(t, len(b.Values.Data), 1<<23)
			require.LessOrEqual(t, b.Rows, 100)
			n++
			return n < 50
		}))
		require.GreaterOrEqual(t, n, 10)
	}
}

func someNulls(valid, values *enc20pb.ArrayEncoding) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Nullable{Nullable: &enc20pb.Nullable{
		Nullability: &enc20pb.Nullable_SomeNulls{SomeNulls: &enc20pb.Nullable_SomeNull{Validity: valid, Values: values}}}}}
}

// What versions of Lance before 1.0 wrote: null indices with anything below them, and
// more values than a file has rows.
func TestOldPages(t *testing.T) {
	var f testFile
	items := text(flat(64, 2), flat(8, 3), 9)
	pages := []encoding20.Page{f.page(0, 4, dictionary(someNulls(flat(1, 0), flat(8, 1)), items, 2),
		[]byte{0b1011}, []byte{1, 0, 77, 0}, words(1, 3), []byte("abb"))}
	leaf := encoding20.Leaf{Type: strings, Layers: flatOf, Dictionary: true}
	for _, rows := range []uint64{4, 3} {
		blocks, err := readAll(t, leaf, f.source(rows, pages), encoding.Limits{})
		require.NoError(t, err)
		require.Equal(t, []uint16{0, 0, 1, 0}[:rows], blocks[0].Def)
		require.Equal(t, []uint32{0, 2, 3, 3, 4}[:rows+1], blocks[0].Values.Offsets)
		require.Equal(t, "bbaa"[:rows], string(blocks[0].Values.Data))
	}
	_, err := readAll(t, leaf, f.source(5, pages), encoding.Limits{})
	require.ErrorIs(t, err, table.ErrCorrupt)
	// Bits that are said to be compressed are not.
	bits := []encoding20.Page{f.page(0, 3, zipped("zstd", 1, 0), []byte{0b101})}
	blocks, err := readAll(t, encoding20.Leaf{Type: level.Type{Kind: level.Fixed, Bits: 1}, Layers: flatOf}, f.source(3, bits), encoding.Limits{})
	require.NoError(t, err)
	require.Equal(t, []byte{0b101}, blocks[0].Values.Data)
	nothing := dictionary(nulls(), items, 2)
	blocks, err = readAll(t, leaf, f.source(2, []encoding20.Page{f.page(0, 2, nothing)}), encoding.Limits{})
	require.NoError(t, err)
	require.Equal(t, []uint16{1, 1}, blocks[0].Def)
}
