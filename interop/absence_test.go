package interop_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// TestNullStructsAroundLists compacts tables whose fragments differ in what is null, so
// that their pages do: structs around lists that are null in some pages and not in
// others, fields that cannot be null inside structs that are, and pages of nothing but
// nulls, or of none. Stock engines read the levels of the pages of a batch together, and
// count wrongly where those declare different things.
func TestNullStructsAroundLists(t *testing.T) {
	ctx := needEngines(t)
	i64, str := arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String
	field := func(name string, t arrow.DataType) arrow.Field {
		return arrow.Field{Name: name, Type: t, Nullable: true}
	}
	whole := func(name string, t arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: t} }
	list := arrow.ListOf(i64)
	inner := arrow.StructOf(whole("a", i64), whole("l", list), field("s", str))
	vector := arrow.FixedSizeListOf(64, arrow.PrimitiveTypes.Float64) // too wide for mini-blocks
	v := `[` + strings.Repeat("0.5, ", 63) + `1]`
	columns := map[string]struct {
		dt arrow.DataType
		// rows of each of the four fragments, repeated
		rows [4][]string
	}{
		"a list in a struct": {arrow.StructOf(field("l", list)), [4][]string{
			{`{"l": [1, 2]}`, `{"l": []}`, `{"l": null}`}, {`null`, `{"l": [3]}`}, {`null`}, {`{"l": null}`}}},
		"a list that cannot be null": {inner, [4][]string{
			{`{"a": 1, "l": [1, 2], "s": "x"}`}, {`null`, `{"a": 2, "l": [], "s": null}`}, {`null`}, {`{"a": 2, "l": [], "s": null}`}}},
		"inside another struct": {arrow.StructOf(field("i", inner), field("n", i64)), [4][]string{
			{`{"i": {"a": 1, "l": [1, 2], "s": "x"}, "n": 1}`}, {`null`, `{"i": null, "n": 1}`}, {`null`}, {`{"i": {"a": 2, "l": [], "s": null}, "n": 3}`, `null`}}},
		"a struct that cannot be null": {arrow.StructOf(whole("i", inner)), [4][]string{
			{`{"i": {"a": 1, "l": [1, 2], "s": "x"}}`}, {`null`, `{"i": {"a": 2, "l": [], "s": "y"}}`}, {`null`}, {`{"i": {"a": 2, "l": [], "s": null}}`, `null`}}},
		"vectors in lists": {arrow.ListOf(vector), [4][]string{
			{`[` + v + `, null]`, `[]`}, {`[` + v + `]`, `[` + v + `, ` + v + `]`}, {`null`, `[` + v + `]`}, {`[]`}}},
		"structs of vectors in lists": {arrow.ListOf(arrow.StructOf(field("v", vector))), [4][]string{
			{`[{"v": ` + v + `}, null, {"v": null}]`, `[]`}, {`[{"v": ` + v + `}, {"v": ` + v + `}]`, `[]`}, {`null`, `[{"v": ` + v + `}]`}, {`[]`}}},
		"lists of lists without any": {arrow.ListOf(list), [4][]string{{`[[1], [2, 3]]`}, {`[[4, 5]]`, `[[6], [7], [8]]`}, {`[[9]]`}, {`[[1], [2]]`}}},
		"nothing but nulls":          {arrow.StructOf(field("i", inner)), [4][]string{{`null`}, {`null`}, {`null`}, {`null`}}},
		"null with all that is in it": {arrow.StructOf(field("i", arrow.StructOf(field("s", arrow.StructOf(whole("a", i64))), whole("l", list)))), [4][]string{
			{`{"i": {"s": {"a": 1}, "l": [1, 2]}}`, `null`}, {`null`}, {`{"i": {"s": {"a": 1}, "l": []}}`}, {`null`}}},
		"lists of them": {arrow.ListOf(arrow.StructOf(field("i", inner))), [4][]string{
			{`[{"i": {"a": 1, "l": [1, 2], "s": "x"}}]`, `[]`}, {`[null, {"i": null}]`, `null`}, {`[]`, `null`}, {`[{"i": {"a": 2, "l": [], "s": null}}]`}}},
		"lists of lists": {arrow.StructOf(field("l", arrow.ListOf(list))), [4][]string{
			{`{"l": [[1], [2, 3], []]}`}, {`null`, `{"l": [null, []]}`}, {`null`}, {`{"l": [[], null]}`, `{"l": null}`}}},
		"long strings in lists": {arrow.StructOf(field("l", arrow.ListOf(str))), [4][]string{
			{fmt.Sprintf(`{"l": [%q, "b"]}`, strings.Repeat("long ", 9000))}, {`null`, `{"l": ["c"]}`}, {`null`}, {`{"l": null}`, `{"l": []}`}}},
	}
	for _, format := range []string{"2.1", "2.2"} {
		for name, c := range columns {
			for _, mode := range []string{"copy", "reencode"} {
				t.Run(format+"/"+name+"/"+mode, func(t *testing.T) {
					t.Parallel()
					s := arrow.NewSchema([]arrow.Field{{Name: "id", Type: i64}, field("c", c.dt)}, nil)
					r := &rowsTest{ctx: ctx, t: t, path: filepath.Join(t.TempDir(), "t.lance"), s: s, want: map[int64]string{}}
					defer forget(ctx, r.path)
					r.make = func(first int64, n int) arrow.RecordBatch {
						rows := c.rows[first/100%4]
						rec, err := jsonRecord(s, first, n, func(id int64) []string { return []string{rows[int(id)%len(rows)]} })
						require.NoError(t, err)
						return rec
					}
					require.NoError(t, r.write(0, 20, func(rec arrow.RecordBatch) (uint64, error) {
						return pylance.Create(ctx, r.path, rec, interop.CreateOptions{DataFormat: format})
					}))
					for k := range int64(7) {
						require.NoError(t, r.add(pylance, 100*(k+1), 10+int(k)))
					}
					r.check("before the compaction", engines)
					compactTable(ctx, t, r.path, "--mode", mode)
					require.NoError(t, rehomeVerify(ctx, r.path))
					r.check("after the compaction", engines)
				})
			}
		}
	}
}
