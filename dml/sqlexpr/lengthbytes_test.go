package sqlexpr_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml/sqlexpr"
)

// TestReport28LengthOfBytes: bytes that are UTF-8 have as many characters as the text,
// other bytes have none, as in pylance 14.
func TestReport28LengthOfBytes(t *testing.T) {
	x, err := sqlexpr.ParseExpr("length(b)")
	require.NoError(t, err)
	schema := arrow.NewSchema([]arrow.Field{{Name: "b", Type: arrow.BinaryTypes.Binary, Nullable: true}}, nil)
	eval := func(values [][]byte, valid []bool) (arrow.Array, error) {
		b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
		defer b.Release()
		b.AppendValues(values, valid)
		return x.Eval(t.Context(), array.NewRecordBatch(schema, []arrow.Array{b.NewArray()}, int64(len(values))))
	}
	got, err := eval([][]byte{[]byte("né"), {}, nil}, []bool{true, true, false})
	require.NoError(t, err)
	require.Equal(t, "[2 0 (null)]", got.String())
	_, err = eval([][]byte{{0xff, 0}}, nil)
	require.ErrorContains(t, err, "use octet_length")
}
