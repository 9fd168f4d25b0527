package shred_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/assemble"
	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/filetest"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/datafile/shred"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// wholeStructs makes structs not nullable, which format 2.0 cannot store the nulls of.
func wholeStructs(f arrow.Field) arrow.Field {
	switch t := f.Type.(type) {
	case *arrow.StructType:
		f.Nullable = false
		var fields []arrow.Field
		for _, c := range t.Fields() {
			fields = append(fields, wholeStructs(c))
		}
		f.Type = arrow.StructOf(fields...)
	case *arrow.ListType:
		f.Type = arrow.ListOfField(wholeStructs(t.ElemField()))
	case *arrow.LargeListType:
		f.Type = arrow.LargeListOfField(wholeStructs(t.ElemField()))
	}
	return f
}

// readFile20 reads a file of format 2.0 back, some rows of it if ranges are given.
func readFile20(t require.TestingT, raw []byte, limits encoding.Limits, ranges []datafile.Range) [][]arrow.Array {
	f, err := datafile.Open(context.Background(), readat.Bytes(raw), int64(len(raw)), "test")
	require.NoError(t, err)
	require.Equal(t, datafile.V2_0, f.Version())
	f = f.WithLimits(limits)
	var sources []assemble.Source
	rows := f.Rows()
	for i, leaf := range f.Schema().Leaves() {
		c, err := f.OwnLeaf(i)
		require.NoError(t, err)
		require.NoError(t, c.Check(leaf))
		requireAligned(t, c)
		if ranges == nil {
			sources = append(sources, c.Blocks(context.Background(), leaf))
			continue
		}
		sources = append(sources, c.Take(context.Background(), leaf, ranges))
	}
	if ranges != nil {
		rows = 0
		for _, r := range ranges {
			rows += r.To - r.From
		}
	}
	return filetest.Assemble(t, f.Schema(), sources, rows)
}

// requireAligned checks what stock engines count on: no page has items of two pages of
// lists.
func requireAligned(t require.TestingT, c *datafile.Column) {
	for k, list := range c.Lists() {
		inner := c
		if k+1 < len(c.Lists()) {
			inner = c.Lists()[k+1]
		}
		ends := map[uint64]bool{0: true}
		for _, p := range inner.Pages() {
			ends[p.FirstRow+p.Rows] = true
		}
		items := uint64(0)
		for _, p := range list.Pages() {
			items += p.Array.GetList().GetNumItems()
			require.True(t, ends[items], "a page of items goes on after those of a page of lists")
		}
	}
}

// writeFile20 writes a file whose columns are filled in any order or at the same time,
// a few rows at a time.
func writeFile20(t *rapid.T, stored *schema.Schema, arrays []arrow.Array) []byte {
	pageBytes := rapid.SampledFrom([]int{1, 100, 1000, 0}).Draw(t, "page bytes")
	parallel, seed := rapid.Bool().Draw(t, "parallel"), rapid.Uint64().Draw(t, "seed")
	var blocks []*level.Block
	for i, a := range arrays {
		b, err := shred.Column(stored.Fields[i], a)
		require.NoError(t, err)
		blocks = append(blocks, b...)
	}
	var file bytes.Buffer
	w, err := datafile.NewWriter(&file, datafile.V2_0, stored, datafile.WriterOptions{PageBytes: pageBytes})
	require.NoError(t, err)
	fill := func(i int) error {
		c, err := level.NewCursor(blocks[i])
		if err != nil {
			return err
		}
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		for c.Remaining() > 0 && err == nil {
			err = w.Column(i).Take(c, 1+rng.IntN(20))
			if parallel {
				runtime.Gosched()
			}
		}
		return errors.Join(err, w.Column(i).Close())
	}
	var wg sync.WaitGroup
	failed := make([]error, len(blocks))
	for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(len(blocks)) {
		if parallel {
			wg.Go(func() { failed[i] = fill(i) })
		} else {
			failed[i] = fill(i)
		}
	}
	wg.Wait()
	require.NoError(t, errors.Join(failed...))
	info, err := w.Finish()
	require.NoError(t, err)
	require.Equal(t, uint64(arrays[0].Len()), info.Rows)
	require.Equal(t, uint64(file.Len()), info.Bytes)
	require.Equal(t, len(info.Fields), len(info.Columns))
	return file.Bytes()
}

// The leaves inside a list agree where its pages end, whatever their size and whichever
// of them is first.
func TestFormat20PagesOfListsAgree(t *testing.T) {
	item := arrow.StructOf(arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
		arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		arrow.Field{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true})
	f := wholeStructs(arrow.Field{Name: "c", Type: arrow.ListOf(item), Nullable: true})
	stored, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{f}, nil), 0)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		a := drawArray(t, f, rapid.IntRange(50, 150).Draw(t, "rows"))
		raw := writeFile20(t, stored, []arrow.Array{a})
		require.Equal(t, rowsOf(t, a), rowsOf(t, readFile20(t, raw, encoding.Limits{}, nil)[0]...))
	})
}

// Whatever is written in format 2.0 is read back: by columns that are filled one
// after the other or at the same time, in pages and blocks of any size, whole or some
// rows of it.
func TestFormat20ReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var fields []arrow.Field
		for _, f := range drawSchema(t, 3, datafile.V2_0).Fields() {
			fields = append(fields, wholeStructs(f))
		}
		stored, err := schema.FromArrow(arrow.NewSchema(fields, nil), 0)
		require.NoError(t, err)
		rows := rapid.IntRange(0, 150).Draw(t, "rows")
		var arrays []arrow.Array
		for _, f := range fields {
			arrays = append(arrays, drawArray(t, f, rows))
		}
		raw := writeFile20(t, stored, arrays)
		limits := rapid.SampledFrom([]encoding.Limits{{}, {BlockBytes: 100, BlockEntries: 7}, {BlockBytes: 1, BlockEntries: 1}}).Draw(t, "limits")
		var ranges []datafile.Range
		for at := uint64(0); at < uint64(rows); {
			from := at + rapid.Uint64Range(0, 9).Draw(t, "skip")
			to := from + rapid.Uint64Range(1, 30).Draw(t, "take")
			if to > uint64(rows) {
				break
			}
			ranges = append(ranges, datafile.Range{From: from, To: to})
			at = to
		}
		whole := readFile20(t, raw, limits, nil)
		var some [][]arrow.Array
		if len(ranges) > 0 {
			some = readFile20(t, raw, limits, ranges)
		}
		for i, a := range arrays {
			want := rowsOf(t, a)
			require.Equal(t, want, rowsOf(t, whole[i]...), "column %d", i)
			var taken []string
			for _, r := range ranges {
				taken = append(taken, want[r.From:r.To]...)
			}
			if len(ranges) > 0 {
				require.Equal(t, taken, rowsOf(t, some[i]...), "column %d", i)
			}
		}
	})
}

// What format 2.0 has no room for is refused by name.
func TestFormat20Refuses(t *testing.T) {
	structs := arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true})
	for name, c := range map[string]struct {
		field arrow.Field
		rows  string
		want  string
	}{
		"null struct":         {arrow.Field{Type: structs}, `[{"a": 1}, null]`, "a struct is null"},
		"null struct in list": {arrow.Field{Type: arrow.ListOf(structs)}, `[[null]]`, "a struct is null"},
		"null packed struct":  {arrow.Field{Type: structs, Metadata: packedMetadata}, `[{"a": 1}, null]`, "a struct is null"},
		"map":                 {arrow.Field{Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8)}, `[]`, "format 2.0 has no maps"},
		"strings in packed structs": {arrow.Field{Type: arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.String}), Metadata: packedMetadata},
			`[]`, "format 2.0 has no packed structs of variable width"},
	} {
		t.Run(name, func(t *testing.T) {
			c.field.Name, c.field.Nullable = "c", true
			stored, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{c.field}, nil), 0)
			require.NoError(t, err)
			w, err := datafile.NewWriter(io.Discard, datafile.V2_0, stored, datafile.WriterOptions{})
			refused := err
			if err == nil {
				var blocks []*level.Block
				a, _, err := array.FromJSON(memory.DefaultAllocator, c.field.Type, strings.NewReader(c.rows))
				require.NoError(t, err)
				blocks, err = shred.Column(stored.Fields[0], a)
				require.NoError(t, err)
				for i, b := range blocks {
					require.NoError(t, w.Column(i).Append(b))
				}
				_, err = w.Finish()
				refused = err
			}
			err = refused
			require.ErrorIs(t, err, table.ErrUnsupported)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, `column "c`)
		})
	}
}
