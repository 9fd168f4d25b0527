package dml_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/dml/sqlexpr"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// floatTypes are the types of floats: their width in bytes, and the bits of infinity.
var floatTypes = []struct {
	dt       arrow.DataType
	width    int
	infinity uint64
}{
	{arrow.FixedWidthTypes.Float16, 2, 0x7c00}, {arrow.PrimitiveTypes.Float32, 4, 0x7f800000}, {arrow.PrimitiveTypes.Float64, 8, 0x7ff0 << 48},
}

// floatsOf makes an array of floats of their bits.
func floatsOf(dt arrow.DataType, width int, values []uint64) arrow.Array {
	var b []byte
	for _, v := range values {
		b = append(b, binary.LittleEndian.AppendUint64(nil, v)[:width]...)
	}
	return array.MakeFromData(array.NewData(dt, len(values), []*memory.Buffer{nil, memory.NewBufferBytes(b)}, nil, 0, 0))
}

// A table that is merged into itself by a float matches in every row, and nothing is
// inserted, whatever bits a NaN has on either side. Zeros are two keys.
func TestReport04OneNaNAsKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(floatTypes).Draw(t, "type")
		sign := uint64(1) << (8*f.width - 1)
		nan := rapid.Custom(func(t *rapid.T) uint64 {
			return f.infinity + rapid.Uint64Range(1, sign-f.infinity-1).Draw(t, "payload") | sign*rapid.Uint64Range(0, 1).Draw(t, "sign")
		})
		keys := []uint64{0, sign, f.infinity, f.infinity | sign, 1}
		before, after := append(slices.Clone(keys), nan.Draw(t, "nan")), append(slices.Clone(keys), nan.Draw(t, "another"))

		fields := []table.Field{{ID: 0, Name: "k", Type: f.dt, Nullable: true}}
		schema := table.Schema{Fields: fields}
		records := func(values []uint64) arrow.RecordBatch {
			return array.NewRecordBatch(schema.Arrow(), []arrow.Array{floatsOf(f.dt, f.width, values)}, int64(len(values)))
		}
		e := memengine.New("t", schema)
		require.NoError(t, e.Append(t.Context(), records(before)))
		r, err := dml.Execute(t.Context(), e, dml.MergeInsert{On: []string{"k"}, Source: dml.Records(records(after)), WhenMatched: dml.MatchedUpdate, WhenNotMatched: dml.NotMatchedInsert}, dml.Options{})
		require.NoError(t, err)
		require.Equal(t, uint64(len(keys)+1), r.Stats.Updated)
		require.Zero(t, r.Stats.Inserted)

		// In a condition they are equal, too.
		if f.width == 2 {
			return
		}
		where, err := sqlexpr.ParsePredicate("k = cast('NaN' as double)")
		require.NoError(t, err)
		d, err := dml.Execute(t.Context(), e, dml.Delete{Where: where}, dml.Options{})
		require.NoError(t, err)
		require.Equal(t, uint64(1), d.Stats.Deleted)
	})
}
