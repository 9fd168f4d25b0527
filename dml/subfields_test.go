package dml_test

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// optional makes fields that may be null.
func optional(of ...any) (out []arrow.Field) {
	for i := 0; i < len(of); i += 2 {
		out = append(out, arrow.Field{Name: of[i].(string), Type: of[i+1].(arrow.DataType), Nullable: true})
	}
	return out
}

// jsonRows are all rows of a table, as JSON lines.
func jsonRows(t *testing.T, e table.Engine) (lines []string) {
	s := snapshot(t, e, 0)
	enc, err := rowjson.New(s.Schema.Arrow(), rowjson.Plain)
	require.NoError(t, err)
	var ids []table.FragmentID
	for _, f := range s.Fragments {
		ids = append(ids, f.ID)
	}
	for b, err := range e.Rows(t.Context(), s, ids, table.ReadOptions{}) {
		require.NoError(t, err)
		for i := range int(b.Record.NumRows()) {
			line, err := enc.AppendRow(nil, b.Record, i, nil)
			require.NoError(t, err)
			lines = append(lines, string(line))
		}
	}
	return lines
}

// TestReport27SourcesWithoutSubfields: what an upsert makes of structs that lack
// subfields, or have them in another order. The results are those of pylance 14.0.2's
// merge_insert over the same rows.
func TestReport27SourcesWithoutSubfields(t *testing.T) {
	i32, text := arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String
	full := arrow.StructOf(optional("a", i32, "b", text)...)
	onlyA := arrow.StructOf(optional("a", i32)...)
	swapped := arrow.StructOf(optional("b", text, "a", i32)...)
	notNull := arrow.StructOf(arrow.Field{Name: "a", Type: i32, Nullable: true}, arrow.Field{Name: "b", Type: text})
	nested := arrow.StructOf(optional("n", full, "k", i32)...)
	const structs = `[{"id":1,"s":{"a":1,"b":"x"}},{"id":2,"s":{"a":2,"b":"y"}}]`
	const lists = `[{"id":1,"s":[{"a":1,"b":"x"},{"a":11,"b":"xx"}]},{"id":2,"s":[{"a":2,"b":"y"}]},{"id":4,"s":null},{"id":5,"s":[]}]`
	const nests = `[{"id":1,"s":{"n":{"a":1,"b":"x"},"k":5}},{"id":2,"s":{"n":{"a":2,"b":"y"},"k":6}}]`
	for _, c := range []struct {
		name         string
		column, from arrow.DataType
		rows, source string
		update, all  string // without and with the rows that are new
	}{
		{"a subfield is missing", full, onlyA, structs, `[{"id":2,"s":{"a":20}},{"id":3,"s":{"a":30}}]`,
			`{"id":1,"s":{"a":1,"b":"x"}} {"id":2,"s":{"a":20,"b":"y"}}`, `{"id":3,"s":{"a":30,"b":null}}`},
		{"null without it", full, onlyA, structs, `[{"id":2,"s":null},{"id":3,"s":null}]`,
			`{"id":1,"s":{"a":1,"b":"x"}} {"id":2,"s":{"a":null,"b":"y"}}`, `{"id":3,"s":null}`},
		{"over null", full, onlyA, `[{"id":1,"s":null},{"id":2,"s":null}]`, `[{"id":2,"s":{"a":20}}]`,
			`{"id":1,"s":null} {"id":2,"s":{"a":20,"b":null}}`, ``},
		{"null over null", full, onlyA, `[{"id":2,"s":null}]`, `[{"id":2,"s":null}]`, `{"id":2,"s":null}`, ``},
		{"another order", full, swapped, structs, `[{"id":2,"s":{"b":"q","a":20}},{"id":3,"s":{"b":"r","a":30}}]`,
			`{"id":1,"s":{"a":1,"b":"x"}} {"id":2,"s":{"a":20,"b":"q"}}`, `{"id":3,"s":{"a":30,"b":"r"}}`},
		{"inside", nested, arrow.StructOf(optional("n", onlyA, "k", i32)...), nests, `[{"id":2,"s":{"n":{"a":20},"k":60}},{"id":3,"s":{"n":{"a":30},"k":61}}]`,
			`{"id":1,"s":{"n":{"a":1,"b":"x"},"k":5}} {"id":2,"s":{"n":{"a":20,"b":"y"},"k":60}}`, `{"id":3,"s":{"n":{"a":30,"b":null},"k":61}}`},
		{"a whole struct inside", nested, arrow.StructOf(optional("k", i32)...), nests, `[{"id":2,"s":{"k":60}},{"id":3,"s":{"k":61}}]`,
			`{"id":1,"s":{"n":{"a":1,"b":"x"},"k":5}} {"id":2,"s":{"n":{"a":2,"b":"y"},"k":60}}`, `{"id":3,"s":{"n":null,"k":61}}`},
		{"null inside", nested, arrow.StructOf(optional("n", onlyA, "k", i32)...), nests, `[{"id":2,"s":{"n":null,"k":60}},{"id":3,"s":{"n":null,"k":61}}]`,
			`{"id":1,"s":{"n":{"a":1,"b":"x"},"k":5}} {"id":2,"s":{"n":{"a":null,"b":"y"},"k":60}}`, `{"id":3,"s":{"n":null,"k":61}}`},
		{"items", arrow.ListOf(full), arrow.ListOf(onlyA), lists, `[{"id":1,"s":[null,{"a":9}]},{"id":2,"s":[{"a":20}]},{"id":3,"s":[{"a":30}]}]`,
			`{"id":1,"s":[{"a":null,"b":"x"},{"a":9,"b":"xx"}]} {"id":2,"s":[{"a":20,"b":"y"}]} {"id":4,"s":null} {"id":5,"s":[]}`, `{"id":3,"s":[{"a":30,"b":null}]}`},
		{"items in another order", arrow.ListOf(full), arrow.ListOf(swapped), lists, `[{"id":1,"s":[{"b":"q","a":20}]},{"id":3,"s":[{"b":"r","a":30}]}]`,
			`{"id":1,"s":[{"a":20,"b":"q"}]} {"id":2,"s":[{"a":2,"b":"y"}]} {"id":4,"s":null} {"id":5,"s":[]}`, `{"id":3,"s":[{"a":30,"b":"r"}]}`},
		{"must not be null", notNull, onlyA, structs, `[{"id":2,"s":{"a":20}}]`,
			`{"id":1,"s":{"a":1,"b":"x"}} {"id":2,"s":{"a":20,"b":"y"}}`, ``},
		// What follows, the stock engine refuses, or panics over.
		{"must not be null and is new", notNull, onlyA, structs, `[{"id":3,"s":{"a":30}}]`, "", `ERR without a value for "s.b"`},
		{"a longer list", arrow.ListOf(full), arrow.ListOf(onlyA), lists, `[{"id":2,"s":[{"a":20},{"a":21}]}]`, `ERR has 1 items and its source 2`, ""},
		{"a null list", arrow.ListOf(full), arrow.ListOf(onlyA), lists, `[{"id":2,"s":null}]`, `ERR has 1 items and its source 0`, ""},
		{"a subfield more", full, arrow.StructOf(optional("a", i32, "c", i32)...), structs, `[{"id":2,"s":{"a":20,"c":1}}]`, `ERR the table as`, ""},
		{"another type", full, arrow.StructOf(optional("a", arrow.PrimitiveTypes.Int64)...), structs, `[{"id":2,"s":{"a":20}}]`, `ERR the table as`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, insert := range []bool{false, true} {
				read := func(column arrow.DataType, rows string) arrow.RecordBatch {
					schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: column, Nullable: true}}, nil)
					rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
					require.NoError(t, err)
					return rec
				}
				e := memengine.New("t", table.Schema{Fields: []table.Field{
					{ID: 0, Name: "id", Type: arrow.PrimitiveTypes.Int64}, {ID: 1, Name: "s", Type: c.column, Nullable: true},
				}})
				_, err := dml.Execute(t.Context(), e, dml.Append{Rows: dml.Records(read(c.column, c.rows))}, dml.Options{})
				require.NoError(t, err)
				m := dml.MergeInsert{On: []string{"id"}, Source: dml.Records(read(c.from, c.source)), WhenMatched: dml.MatchedUpdate, WhenNotMatched: dml.NotMatchedSkip}
				want := c.update
				if insert {
					m.WhenNotMatched = dml.NotMatchedInsert
					want = strings.TrimSpace(c.update + " " + c.all)
				}
				_, err = dml.Execute(t.Context(), e, m, dml.Options{})
				if message, fails := strings.CutPrefix(want, "ERR "); fails {
					require.ErrorContains(t, err, message)
					continue
				}
				require.NoError(t, err)
				if want != "" {
					require.ElementsMatch(t, strings.Split(strings.ReplaceAll(want, "} {", "}\n{"), "\n"), jsonRows(t, e))
				}
				if insert { // new rows alone are an append, too
					e := memengine.New("t", snapshot(t, e, 0).Schema)
					_, err := dml.Execute(t.Context(), e, dml.Append{Rows: dml.Records(read(c.from, c.source))}, dml.Options{})
					if strings.Contains(c.name, "must not") {
						require.ErrorContains(t, err, `"s.b"`)
					} else {
						require.NoError(t, err)
					}
				}
			}
		})
	}
}
