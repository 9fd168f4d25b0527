package cli

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/table"
)

// A field of a struct is null where a struct on the way to it is, whatever lies below,
// and rows of a slice are those of the slice.
func TestReport18FieldsOfStructsAreColumns(t *testing.T) {
	inner := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true})
	user := arrow.StructOf(
		arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		arrow.Field{Name: "in", Type: inner, Nullable: true},
		arrow.Field{Name: "a.b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true})
	schema := table.Schema{Fields: []table.Field{
		{Name: "n", Type: arrow.PrimitiveTypes.Int32}, {Name: "user", Type: user, Nullable: true}, {Name: "user.in", Type: arrow.PrimitiveTypes.Int8},
	}}
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema.Arrow(), strings.NewReader(`[
		{"n":0,"user":{"id":9,"in":{"x":"-"},"a.b":true},"user.in":0},
		{"n":1,"user":{"id":7,"in":{"x":"a"},"a.b":true},"user.in":1},
		{"n":2,"user":null,"user.in":2},
		{"n":3,"user":{"id":null,"in":null,"a.b":null},"user.in":3}]`))
	require.NoError(t, err)
	defer rec.Release()
	// Values below the null struct, as an engine may leave them.
	s := rec.Column(1).(*array.Struct)
	ids := array.NewInt64Data(array.NewData(arrow.PrimitiveTypes.Int64, 4, []*memory.Buffer{nil, s.Field(0).Data().Buffers()[1]}, nil, 0, 0))
	data := array.NewData(user, 4, s.Data().Buffers(), []arrow.ArrayData{ids.Data(), s.Field(1).Data(), s.Field(2).Data()}, 1, 0)
	full := array.NewRecordBatch(rec.Schema(), []arrow.Array{rec.Column(0), array.NewStructData(data), rec.Column(2)}, 4)
	slice := full.NewSlice(1, 4)

	p, err := project(schema, []string{"user.id", "user.in.x", "n", "user.a.b"})
	require.ErrorContains(t, err, `no field "x" in a value of type int8`, "the longest name of a column wins")
	require.Nil(t, p)
	p, err = project(schema, []string{"user.id", "user.in", "n", "user.a.b"})
	require.NoError(t, err)
	require.Equal(t, []string{"user", "user.in", "n"}, p.read)
	require.Equal(t, []string{"user.id", "user.in", "n", "user.a.b"}, names(p.schema))

	p, err = project(table.Schema{Fields: schema.Fields[:2]}, []string{"user.in.x", "user.id", "user.a.b"})
	require.NoError(t, err)
	only := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{slice.Schema().Field(1)}, nil), []arrow.Array{slice.Column(1)}, 3)
	got := p.pick(only)
	defer got.Release()
	encoder, err := rowjson.New(p.schema, rowjson.Plain)
	require.NoError(t, err)
	var lines []string
	for i := range int(got.NumRows()) {
		line, err := encoder.AppendRow(nil, got, i, nil)
		require.NoError(t, err)
		lines = append(lines, string(line))
	}
	require.Equal(t, []string{
		`{"user.in.x":"a","user.id":7,"user.a.b":true}`,
		`{"user.in.x":null,"user.id":null,"user.a.b":null}`,
		`{"user.in.x":null,"user.id":0,"user.a.b":null}`,
	}, lines)
}

func names(s *arrow.Schema) (out []string) {
	for _, f := range s.Fields() {
		out = append(out, f.Name)
	}
	return out
}
