package rebase_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// TestNewRowsOverChangedColumns: rows were written, and then somebody changed the
// columns. They are committed if all that was written is found under the same name
// and type, and what was not may be null.
func TestNewRowsOverChangedColumns(t *testing.T) {
	text, number := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	for _, c := range []struct {
		name   string
		change func(fields []table.Field) []table.Field
		want   string // of the conflict
	}{
		{"a column is added", func(f []table.Field) []table.Field {
			return append(f, table.Field{ID: 90, Name: "new", Type: number, Nullable: true})
		}, ""},
		{"a column is added that has no nulls", func(f []table.Field) []table.Field {
			return append(f, table.Field{ID: 90, Name: "new", Type: number})
		}, `column "new" is new and has no nulls`},
		{"a column is renamed", func(f []table.Field) []table.Field { f[0].Name = "other"; return f }, ""},
		{"a column is dropped", func(f []table.Field) []table.Field { return f[1:] }, ""},
		{"a column gets another type, as another column", func(f []table.Field) []table.Field {
			f[0].ID, f[0].Type = 90, number
			return f
		}, "is another one than when rows"},
		{"a column is dropped and added again", func(f []table.Field) []table.Field {
			f[0].ID, f[0].Nullable = 90, true
			return f
		}, "is another one than when rows"},
		{"a column gets another type", func(f []table.Field) []table.Field { f[0].Type = number; return f }, "is of another type than when rows"},
		{"a part of a column is another one", func(f []table.Field) []table.Field {
			f[0].Children = []table.Field{{ID: 91, Name: "part"}}
			return f
		}, "is another one than when rows"},
		{"a column has no nulls any more", func(f []table.Field) []table.Field { f[0].Nullable = false; return f }, "is of another type than when rows"},
	} {
		mem := memengine.New("t", table.Schema{Fields: []table.Field{{ID: 0, Name: "word", Type: text, Nullable: true}}})
		w := &world{t: t, mem: mem, e: mem}
		w.append("a", "b")
		u := w.uncommitted(table.Append{}, nil, []string{"c"})
		base := *w.head()
		base.Version++
		base.Schema.Fields = c.change(append([]table.Field{}, base.Schema.Fields...))

		r, err := rebase.NewTransactionRebase(rebase.NewCommitBuilder(w.e), u)
		require.NoError(t, err)
		require.NoError(t, r.Over(ctx, &base, []table.Transaction{{ID: "x", Version: base.Version, Operation: table.Merge{}}}), c.name)
		p, err := r.Propose(ctx, &base)
		if c.want == "" {
			require.NoError(t, err, c.name)
			require.Len(t, p.Change.Add, 1)
			continue
		}
		require.ErrorIs(t, err, table.ErrConflict, c.name)
		require.ErrorContains(t, err, c.want, c.name)
	}
}
