package lance_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// A fragment that lacks a struct would have to store that it is null.
func TestFormat20RefusesAbsentStructs(t *testing.T) {
	for _, c := range []struct {
		name    string
		typ     arrow.DataType
		refused bool
	}{
		{"struct", arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), true},
		{"list of structs", arrow.ListOf(arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32})), false},
		{"number", arrow.PrimitiveTypes.Int32, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := inMemory(t, "storage_2_0")
			added, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{{Name: "new", Type: c.typ, Nullable: true}}, nil), 100)
			require.NoError(t, err)
			tamper(t, m, func(x *manifest.Contents) { x.Manifest.Fields = append(x.Manifest.Fields, added.Proto()...) })
			e := openStore(t, m)
			s := load(t, e, 0)
			rows, err := scan(t, e, s)
			require.NoError(t, err)
			require.NotEmpty(t, rows)
			err = e.CanRewrite(t.Context(), s, fragmentIDs(s))
			if !c.refused {
				require.NoError(t, err)
				out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: s, Sources: fragmentIDs(s), Threads: 2})
				require.NoError(t, err)
				after, err := scan(t, e, replace(t, e, s, out))
				require.NoError(t, err)
				require.Equal(t, rows, after)
				return
			}
			require.ErrorIs(t, err, table.ErrUnsupported)
			require.ErrorContains(t, err, `column "new.a"`)
		})
	}
}

// A rewrite gives the rows that were live, in files that list every field, and Take
// gives what a scan does.
func TestFormat20Rewrite(t *testing.T) {
	for _, g := range testtable.All(t) {
		if g.DataFormat.Version != "2.0" {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			e := openStore(t, inMemory(t, g.Name))
			s := load(t, e, 0)
			before, err := scan(t, e, s)
			require.NoError(t, err)
			for _, mode := range []table.PageCopy{table.CopyNever, table.CopyAlways} {
				out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: s, Sources: fragmentIDs(s), Threads: 2, Copy: mode,
					Options: table.WriteOptions{MaxRows: 70}})
				require.NoError(t, err)
				fields := 0
				for range fieldsOf(s.Schema.Fields) {
					fields++
				}
				for _, f := range out.Fragments {
					require.Len(t, f.Files, 1)
					require.Equal(t, "2.0", f.Files[0].Format)
					require.LessOrEqual(t, len(f.Files[0].Fields), fields) // parts of a packed struct have no column
					require.Len(t, f.Files[0].Columns, len(f.Files[0].Fields))
				}
				after, err := scan(t, e, replace(t, e, s, out))
				require.NoError(t, err)
				require.Equal(t, before, after)
			}
			requireTakes(t, e, s)
		})
	}
}

func fieldsOf(fields []table.Field) (out []table.Field) {
	for _, f := range fields {
		out = append(append(out, f), fieldsOf(f.Children)...)
	}
	return out
}

// requireTakes takes every third row and compares it with the scan's.
func requireTakes(t *testing.T, e *lance.Engine, s *table.Snapshot) {
	var addrs []table.RowAddr
	var want []string
	for b, err := range e.Rows(t.Context(), s, fragmentIDs(s), table.ReadOptions{WithAddrs: true}) {
		require.NoError(t, err)
		for i := 0; i < len(b.Addrs); i += 3 {
			addrs = append(addrs, b.Addrs[i])
			want = append(want, rowText(b.Record, i))
		}
	}
	require.NotEmpty(t, addrs)
	var got []string
	for b, err := range e.Take(t.Context(), s, addrs, nil) {
		require.NoError(t, err)
		for i := range int(b.Record.NumRows()) {
			got = append(got, rowText(b.Record, i))
		}
	}
	require.Equal(t, want, got)
}

func rowText(rec arrow.RecordBatch, i int) string {
	one := rec.NewSlice(int64(i), int64(i)+1)
	defer one.Release()
	out := ""
	for _, c := range one.Columns() {
		// Made again, so that dictionaries of different batches look alike.
		if d, ok := c.(*array.Dictionary); ok {
			if d.IsNull(0) {
				out += "null;"
			} else {
				out += d.Dictionary().ValueStr(d.GetValueIndex(0)) + ";"
			}
			continue
		}
		out += c.ValueStr(0) + ";"
	}
	return out
}
