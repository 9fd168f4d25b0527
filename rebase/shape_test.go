package rebase_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// shapeFields are a text, and a struct of a number and a text.
func shapeFields() []table.Field {
	text, number := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64
	point := arrow.StructOf(arrow.Field{Name: "x", Type: number, Nullable: true}, arrow.Field{Name: "y", Type: text})
	return []table.Field{
		{ID: 0, Name: "word", Type: text, Nullable: true},
		{ID: 1, Name: "point", Type: point, Nullable: true, Children: []table.Field{
			{ID: 2, Name: "x", Type: number, Nullable: true},
			{ID: 3, Name: "y", Type: text},
		}},
	}
}

// typed makes the struct's type that of its parts.
func typed(f []table.Field) []table.Field {
	var parts []arrow.Field
	for _, c := range f[1].Children {
		parts = append(parts, arrow.Field{Name: c.Name, Type: c.Type, Nullable: c.Nullable})
	}
	f[1].Type = arrow.StructOf(parts...)
	return f
}

// shapeChanges are what somebody may do to columns, and what it means for files that
// were written before. Compactions copy rows, so that they lose only what all rows lose;
// who gave values for a column by its name must find them under it.
var shapeChanges = []struct {
	name           string
	change         func(fields []table.Field) []table.Field
	rows, rewrites string // why they cannot be committed
}{
	{name: "nothing", change: func(f []table.Field) []table.Field { return f }},
	{name: "a column is added", change: func(f []table.Field) []table.Field {
		return append(f, table.Field{ID: 90, Name: "new", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	}},
	{name: "a column is added that has no nulls", change: func(f []table.Field) []table.Field {
		return append(f, table.Field{ID: 90, Name: "new", Type: arrow.PrimitiveTypes.Int64})
	}, rows: `column "new" is new and has no nulls`, rewrites: `column "new" is new and has no nulls`},
	{name: "a column is renamed", change: func(f []table.Field) []table.Field { f[0].Name = "other"; return f }},
	{name: "a column is dropped", change: func(f []table.Field) []table.Field { return f[1:] }},
	{name: "a struct is dropped", change: func(f []table.Field) []table.Field { return f[:1] }},
	{name: "a column gets another type, as another column", change: func(f []table.Field) []table.Field {
		f[0].ID, f[0].Type = 90, arrow.PrimitiveTypes.Int64
		return f
	}, rows: `column "word" is another one`},
	{name: "a column is dropped and added again", change: func(f []table.Field) []table.Field { f[0].ID = 90; return f },
		rows: `column "word" is another one`},
	{name: "a column gets another type", change: func(f []table.Field) []table.Field { f[0].Type = arrow.PrimitiveTypes.Int64; return f },
		rows: "field 0, was utf8 and is int64", rewrites: "field 0, was utf8 and is int64"},
	{name: "a column becomes a struct", change: func(f []table.Field) []table.Field {
		f[0].Type, f[0].Children = f[1].Type, []table.Field{{ID: 91, Name: "part", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}
		return f
	}, rows: "field 0, was utf8 and is struct", rewrites: "field 0, was utf8 and is struct"},
	{name: "nullable to not null", change: func(f []table.Field) []table.Field { f[0].Nullable = false; return f },
		rows: "field 0, was utf8 and is utf8 not null", rewrites: "field 0, was utf8 and is utf8 not null"},
	{name: "not null to nullable, nested", change: func(f []table.Field) []table.Field { f[1].Children[1].Nullable = true; return typed(f) }},
	{name: "nullable to not null, nested", change: func(f []table.Field) []table.Field { f[1].Children[0].Nullable = false; return typed(f) },
		rows: "field 2, was int64 and is int64 not null", rewrites: "field 2, was int64 and is int64 not null"},
	{name: "a nested field is renamed", change: func(f []table.Field) []table.Field { f[1].Children[0].Name = "z"; return typed(f) }},
	{name: "a nested field is dropped", change: func(f []table.Field) []table.Field { f[1].Children = f[1].Children[:1]; return typed(f) }},
	{name: "a nested field is added", change: func(f []table.Field) []table.Field {
		f[1].Children = append(f[1].Children, table.Field{ID: 92, Name: "z", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
		return typed(f)
	}},
	{name: "a nested field is dropped and added again", change: func(f []table.Field) []table.Field { f[1].Children[0].ID = 93; return typed(f) },
		rows: `column "x" is another one`},
}

// TestChangedColumns: files were written, and then somebody changed the columns. One
// comparison decides for new rows and for compactions, and leaves both alone in the
// other order.
func TestChangedColumns(t *testing.T) {
	for _, c := range shapeChanges {
		t.Run(c.name, func(t *testing.T) {
			mem := memengine.New("t", table.Schema{Fields: []table.Field{{ID: 0, Name: "word", Type: arrow.BinaryTypes.String, Nullable: true}}})
			w := &world{t: t, mem: mem, e: mem}
			w.append("a", "b")
			rows := w.uncommitted(table.Append{}, nil, []string{"c"})
			rows.Shape = rebase.ShapeOf(table.Schema{Fields: shapeFields()})
			rewrite := w.uncommittedRewrite([]table.FragmentID{0}, []int{2})
			rewrite.Groups[0].Shape = rows.Shape
			base := *w.head()
			base.Version++
			base.Schema.Fields = c.change(shapeFields())
			for _, mine := range []struct {
				u    rebase.Uncommitted
				want string
			}{{rows, c.rows}, {rewrite, c.rewrites}} {
				r, err := rebase.NewRebasing(w.e, mine.u, rebase.Options{})
				require.NoError(t, err)
				require.NoError(t, r.Over(ctx, &base, []table.Transaction{{ID: "x", Version: base.Version, Operation: table.Project{}}}))
				p, err := r.Propose(ctx, &base)
				if mine.want == "" {
					require.NoError(t, err)
					require.Len(t, p.Change.Add, 1)
					continue
				}
				require.ErrorIs(t, err, table.ErrConflict)
				require.ErrorContains(t, err, mine.want)
			}
		})
	}
	for _, theirs := range []table.Operation{table.Append{}, table.Update{}, table.Delete{}, table.Rewrite{}} {
		require.Equal(t, rebase.Compatible, rebase.Compare(rebase.FootprintOf(table.Project{}), rebase.FootprintOf(theirs)).Verdict, theirs.Kind())
	}
}
