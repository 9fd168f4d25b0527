package rowjson_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/table"
)

// Dictionaries are read wherever they are, and come back as they were written.
func TestDictionariesAreRead(t *testing.T) {
	dictionary := func(index, value arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: index, ValueType: value}
	}
	words := dictionary(arrow.PrimitiveTypes.Int8, arrow.BinaryTypes.LargeString)
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		field("d", words),
		field("n", dictionary(arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int64)),
		field("t", dictionary(arrow.PrimitiveTypes.Int32, arrow.FixedWidthTypes.Timestamp_ms)),
		field("l", arrow.ListOf(words)),
		field("s", arrow.StructOf(field("a", words), field("b", arrow.LargeListOf(arrow.StructOf(field("x", words)))))),
		field("m", arrow.MapOf(arrow.BinaryTypes.String, words)),
	}, nil)
	text := strings.Join([]string{
		`{"id":1,"d":"red","n":7,"t":"2024-01-02T03:04:05.678Z","l":["red",null,"blue"],"s":{"a":"x","b":[{"x":"y"},{"x":null},null]},"m":[{"key":"k","value":"red"}]}`,
		`{"id":2,"d":null,"n":null,"t":null,"l":null,"s":null,"m":null}`,
		`{"id":3,"d":"red","n":-7,"t":"2024-01-02T03:04:05.678Z","l":[],"s":{"a":null,"b":[]},"m":[{"key":"k","value":null},{"key":"l","value":"red"}]}`,
	}, "\n") + "\n"
	recs, err := decode(schema, text)
	require.NoError(t, err)
	require.Len(t, recs, 1)
	require.True(t, recs[0].Schema().Equal(schema), "%s", recs[0].Schema())
	for i := range int(recs[0].NumCols()) {
		require.NoError(t, array.ValidateFull(recs[0].Column(i)))
	}
	require.Equal(t, 1, recs[0].Column(1).(*array.Dictionary).Dictionary().Len(), "red is there once")
	require.Equal(t, text, lines(t, rowjson.Plain, recs[0]))

	// More values than indices tell apart are an error, of a value that cannot be null too.
	var many strings.Builder
	for i := range 129 {
		fmt.Fprintf(&many, "{\"d\":\"%d\"}\n", i)
	}
	_, err = decode(schema, many.String())
	require.ErrorContains(t, err, `column "d": gather: more than 128 distinct values`)
	whole := arrow.NewSchema([]arrow.Field{{Name: "d", Type: words}}, nil)
	_, err = decode(whole, `{"d":null}`)
	require.ErrorContains(t, err, `line 1: column "d": null, and the column has none`)
	lists := arrow.NewSchema([]arrow.Field{field("d", dictionary(arrow.PrimitiveTypes.Int8, arrow.ListOf(arrow.PrimitiveTypes.Int8)))}, nil)
	_, err = decode(lists, `{"d":[1]}`)
	require.ErrorIs(t, err, table.ErrUnsupported)
}
