package datafile_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/filetest"
	"github.com/rehome-db/rehome/lance/datafile/shred"
	"github.com/rehome-db/rehome/lance/readat"
)

// helpers do work in other goroutines, for as long as some of them have nothing to do.
type helpers struct {
	sync.WaitGroup
	idle chan struct{}
	took int
}

func newHelpers(n int) *helpers {
	h := &helpers{idle: make(chan struct{}, n)}
	for range n {
		h.idle <- struct{}{}
	}
	return h
}

func (h *helpers) aside(work func()) bool {
	select {
	case <-h.idle:
	default:
		return false
	}
	h.took++
	h.Go(func() {
		work()
		h.idle <- struct{}{}
	})
	return true
}

// manyPages is a table of which a small page holds few rows.
func manyPages(t require.TestingT, rows int) (*arrow.Schema, []arrow.Array) {
	s := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "tags", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
	}, nil)
	ids, names := array.NewInt64Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	tags := array.NewListBuilder(memory.DefaultAllocator, arrow.PrimitiveTypes.Int32)
	for i := range rows {
		ids.Append(int64(i))
		if i%7 == 0 {
			names.AppendNull()
			tags.AppendNull()
			continue
		}
		names.Append(fmt.Sprintf("row %d", i*i))
		tags.Append(true)
		for k := range i % 4 {
			tags.ValueBuilder().(*array.Int32Builder).Append(int32(i + k))
		}
	}
	return s, []arrow.Array{ids.NewArray(), names.NewArray(), tags.NewArray()}
}

// Pages that others encode stand in the file in the order of their rows, whoever is
// done first.
func TestPagesEncodedAside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, arrays := manyPages(t, rapid.IntRange(1, 3000).Draw(t, "rows"))
		pageBytes := rapid.IntRange(500, 20_000).Draw(t, "page bytes")
		h := newHelpers(rapid.IntRange(0, 3).Draw(t, "helpers"))

		var alone, helped bytes.Buffer
		writeArrays(t, &alone, datafile.V2_2, newSchema(t, s), arrays, pageBytes)
		info := filetest.Write(t, &helped, datafile.V2_2, newSchema(t, s), arrays, datafile.WriterOptions{PageBytes: pageBytes, Aside: h.aside})
		h.Wait()
		require.EqualValues(t, helped.Len(), info.Bytes)

		want, got := filetest.ReadArrays(t, alone.Bytes()), filetest.ReadArrays(t, helped.Bytes())
		for i := range want {
			require.True(t, array.Equal(want[i], got[i]), "column %d", i)
		}
		a, err := datafile.Open(t.Context(), readat.Bytes(alone.Bytes()), int64(alone.Len()), "alone")
		require.NoError(t, err)
		b, err := datafile.Open(t.Context(), readat.Bytes(helped.Bytes()), int64(helped.Len()), "helped")
		require.NoError(t, err)
		for i := range a.NumColumns() {
			x, _ := a.Column(i)
			y, _ := b.Column(i)
			require.Equal(t, len(x.Pages()), len(y.Pages()))
			for k, p := range x.Pages() {
				require.Equal(t, p.FirstRow, y.Pages()[k].FirstRow)
				require.Equal(t, p.Bytes(), y.Pages()[k].Bytes())
			}
		}
	})
}

// The error of a page that somebody else writes is the column's.
func TestErrorsOfPagesEncodedAside(t *testing.T) {
	s, arrays := manyPages(t, 20_000)
	h := newHelpers(2)
	w, err := datafile.NewWriter(&limited{100_000}, datafile.V2_1, newSchema(t, s), datafile.WriterOptions{PageBytes: 1000, Aside: h.aside})
	require.NoError(t, err)
	blocks, err := shred.Column(newSchema(t, s).Fields[1], arrays[1])
	require.NoError(t, err)
	for _, b := range blocks {
		if err = w.Column(1).Append(b); err != nil {
			break
		}
	}
	if err == nil {
		err = w.Column(1).Close()
	}
	require.ErrorIs(t, err, errFull)
	require.ErrorContains(t, err, `column "name"`)
	require.ErrorIs(t, w.Column(1).Close(), errFull)
	h.Wait()
	require.Positive(t, h.took)
}
