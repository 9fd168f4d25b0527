package workload

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
)

func digests(t *testing.T, recs ...arrow.RecordBatch) Digests {
	t.Helper()
	var d Digests
	for _, r := range recs {
		require.NoError(t, d.Add(r))
	}
	return d
}

func recordOf(t *testing.T, dt arrow.DataType, values string) arrow.RecordBatch {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, dt, strings.NewReader(values))
	require.NoError(t, err)
	s := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "c", Type: dt, Nullable: true}}, nil)
	return array.NewRecordBatch(s, []arrow.Array{ids(0, a.Len()), a}, int64(a.Len()))
}

// A digest is of the rows, in any order and in batches of any size.
func TestDigestsDoNotDependOnOrder(t *testing.T) {
	for _, format := range Formats {
		tables, err := Families(format)
		require.NoError(t, err)
		for _, table := range tables {
			table.Rows, table.Fragments = 60, 2
			all := table.record(0, 60)
			require.Equal(t, digests(t, all), digests(t, all.NewSlice(40, 60), all.NewSlice(0, 7), all.NewSlice(7, 40)), table.Name)
		}
	}
}

// Every change of a value or of the row that it is in changes the digest of its column,
// and of no other.
func TestDigestsTellValuesApart(t *testing.T) {
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	object := arrow.StructOf(arrow.Field{Name: "a", Type: i64, Nullable: true}, arrow.Field{Name: "b", Type: str, Nullable: true})
	for dt, different := range map[arrow.DataType][]string{
		i64:                           {`[1, 2]`, `[2, 1]`, `[1, null]`, `[null, 1]`, `[0, 1]`, `[null, null]`},
		str:                           {`["a", "b"]`, `["", "ab"]`, `[null, "ab"]`, `["ab", ""]`, `["ab", null]`},
		arrow.ListOf(i64):             {`[[1], [2]]`, `[[1, 2], []]`, `[[], [1, 2]]`, `[[1, 2], null]`, `[[1, 2], [null]]`, `[[2, 1], []]`},
		arrow.FixedSizeListOf(2, i64): {`[[1, 2], [3, 4]]`, `[[1, 2], null]`, `[[1, 2], [null, null]]`, `[[2, 1], [3, 4]]`},
		object:                        {`[{"a": 1, "b": "x"}, null]`, `[{"a": 1, "b": null}, null]`, `[{"a": 1, "b": "x"}, {"a": null, "b": null}]`},
		arrow.MapOf(str, i64):         {`[[{"key": "a", "value": 1}], []]`, `[[{"key": "b", "value": 1}], []]`, `[[{"key": "a", "value": null}], []]`, `[[], []]`, `[null, []]`},
	} {
		seen := map[Digest]string{}
		for _, values := range different {
			d := digests(t, recordOf(t, dt, values))
			require.Equal(t, digests(t, recordOf(t, i64, `[1, 1]`)).Columns["id"], d.Columns["id"])
			require.Empty(t, seen[d.Columns["c"]], "%s and %s of %s", values, seen[d.Columns["c"]], dt)
			seen[d.Columns["c"]] = values
		}
	}
}

// What a dictionary stands for counts, and what is under a null does not.
func TestDigestsIgnoreTheLayout(t *testing.T) {
	str := arrow.BinaryTypes.String
	const values = `["b", null, "a", "b"]`
	plain := digests(t, recordOf(t, str, values))
	require.Equal(t, plain, digests(t, recordOf(t, dictionary(arrow.PrimitiveTypes.Int8, str), values)))
	require.Equal(t, plain, digests(t, recordOf(t, arrow.BinaryTypes.LargeString, values)))

	under := recordOf(t, arrow.PrimitiveTypes.Int64, `[7, 8]`)
	valid := memory.NewBufferBytes([]byte{1})
	data := array.NewData(arrow.PrimitiveTypes.Int64, 2, []*memory.Buffer{valid, under.Column(1).Data().Buffers()[1]}, nil, 1, 0)
	hidden := array.NewRecordBatch(under.Schema(), []arrow.Array{ids(0, 2), array.MakeFromData(data)}, 2)
	require.Equal(t, digests(t, recordOf(t, arrow.PrimitiveTypes.Int64, `[7, null]`)), digests(t, hidden))
}

func TestDigestTextGoesBothWays(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 50 {
		want := Digest{lo: rng.Uint64() >> rng.IntN(64), hi: rng.Uint64() >> rng.IntN(64)}
		b, err := json.Marshal(want)
		require.NoError(t, err)
		var got Digest
		require.NoError(t, json.Unmarshal(b, &got))
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "12", strings.Repeat("g", 32), strings.Repeat("0", 33), "-" + strings.Repeat("0", 31)} {
		require.Error(t, new(Digest).UnmarshalText([]byte(bad)), bad)
	}
}

func TestDigestsRefuseRowsWithoutIDs(t *testing.T) {
	s := arrow.NewSchema([]arrow.Field{{Name: "c", Type: arrow.PrimitiveTypes.Int64}}, nil)
	require.ErrorContains(t, new(Digests).Add(array.NewRecordBatch(s, []arrow.Array{ids(0, 2)}, 2)), "without a column id")
}
