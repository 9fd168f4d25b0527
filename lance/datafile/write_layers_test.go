package datafile_test

import (
	"io"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
)

// Pages that declare a struct around a list nullable are not copied to where pages do
// not, nor the other way round: readers lose count of what is in them.
func TestPagesThatMustNotMeetAreNotCopied(t *testing.T) {
	field := arrow.Field{Name: "s", Nullable: true, Type: arrow.StructOf(
		arrow.Field{Name: "l", Nullable: true, Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)})}
	s := newSchema(t, arrow.NewSchema([]arrow.Field{field}, nil))
	column := func(json string) *datafile.Column {
		var n int64
		f := written(t, datafile.V2_1, []arrow.Field{field}, []arrow.Array{fromJSON(t, field.Type, json)}, 1<<20, &n)
		c, err := f.Column(0)
		require.NoError(t, err)
		require.Len(t, c.Pages(), 1)
		return c
	}
	leaf := s.Leaves()[0]
	null, whole := column(`[{"l": [1, 2]}, null, {"l": []}]`), column(`[{"l": [1, 2]}, {"l": [3]}]`)
	require.Contains(t, null.Layers(leaf), level.NullableItem)
	for _, c := range []struct {
		declared *datafile.Column
		copied   []bool // null, whole
	}{{null, []bool{true, false}}, {whole, []bool{false, true}}} {
		w, err := datafile.NewWriter(io.Discard, datafile.V2_1, s, datafile.WriterOptions{})
		require.NoError(t, err)
		w.Column(0).Declare(c.declared.Layers(leaf))
		require.Equal(t, c.copied, []bool{w.Column(0).CanCopy(null, 0), w.Column(0).CanCopy(whole, 0)})
	}
}
