package workload

import (
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
)

// The digests of versions are those of their rows, put together by hand.
func TestMadeIsOfTheLiveRows(t *testing.T) {
	table := Table{Name: "t", Rows: 40, Fragments: 4, Columns: []Column{drawn("c", arrow.PrimitiveTypes.Int64), drawn("s", arrow.BinaryTypes.String)}}
	now := newState(table)
	var states []*state
	note := func(version uint64) {
		s := now.clone()
		s.version = version
		states = append(states, s)
	}
	now.rows = 20
	note(1)
	now.dead = append(now.dead, func(id int64) bool { return id < 20 && id%10 >= 7 })
	note(2)
	now.replace("c", "renamed", func(old arrow.Array, first int) arrow.Array {
		return mapInt64(old, func(i int, _ int64, _ bool) (int64, bool) { return int64(first+i) * 2, true })
	})
	now.rows = 40
	note(3)
	m, err := History{Table: table}.made(t.Context(), "nobody", states)
	require.NoError(t, err)

	first := table.record(0, 20)
	require.NoError(t, m.Versions[0].Check(digests(t, first)))
	left := []arrow.RecordBatch{first.NewSlice(0, 7), first.NewSlice(10, 17)}
	require.NoError(t, m.Versions[1].Check(digests(t, left...)))
	renamed := now.record(0, 40)
	require.Equal(t, "renamed", renamed.ColumnName(1))
	require.EqualValues(t, 78, renamed.Column(1).(*array.Int64).Value(39))
	require.NoError(t, m.Latest().Check(digests(t, renamed.NewSlice(0, 7), renamed.NewSlice(10, 17), renamed.NewSlice(20, 40))))

	// And nothing else is.
	require.ErrorContains(t, m.Versions[0].Check(digests(t, left...)), "14 rows, want 20")
	require.ErrorContains(t, m.Versions[1].Check(digests(t, first.NewSlice(0, 14))), `column "id"`)
	require.ErrorContains(t, m.Latest().Check(digests(t, first)), `no column "renamed"`)
	wide := digests(t, left...)
	wide.Columns["more"] = Digest{}
	require.ErrorContains(t, m.Versions[1].Check(wide), "1 columns that there should not be")

	path := filepath.Join(t.TempDir(), "t.lance")
	require.NoError(t, m.Save(path))
	got, err := LoadMade(path)
	require.NoError(t, err)
	require.Equal(t, m, got)
}

// The families of a format have each kind of type that it has.
func TestFamiliesHaveEveryType(t *testing.T) {
	for _, format := range Formats {
		tables, err := Families(format)
		require.NoError(t, err)
		seen := map[arrow.Type]bool{}
		var visit func(dt arrow.DataType)
		visit = func(dt arrow.DataType) {
			seen[dt.ID()] = true
			switch dt := dt.(type) {
			case arrow.NestedType:
				for _, f := range dt.Fields() {
					visit(f.Type)
				}
			case *arrow.DictionaryType:
				visit(dt.ValueType)
			}
		}
		names := map[string]bool{}
		for _, table := range tables {
			require.False(t, names[table.Name], table.Name)
			names[table.Name] = true
			for _, c := range table.Columns {
				visit(c.Type)
			}
		}
		want := []arrow.Type{
			arrow.NULL, arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64,
			arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64, arrow.DECIMAL128, arrow.DECIMAL256, arrow.DATE32, arrow.DATE64, arrow.TIME32, arrow.TIME64,
			arrow.TIMESTAMP, arrow.DURATION, arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY,
			arrow.FIXED_SIZE_LIST, arrow.LIST, arrow.LARGE_LIST, arrow.STRUCT, arrow.DICTIONARY,
		}
		if format == "2.2" {
			want = append(want, arrow.MAP)
		}
		for _, id := range want {
			require.True(t, seen[id], "format %s: %s", format, id)
		}
	}
	_, err := Families("0.1")
	require.Error(t, err)
}
