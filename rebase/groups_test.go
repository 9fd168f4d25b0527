package rebase_test

import (
	"context"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// TestGroups: what others did decides over a group, by state and, where the state
// does not tell, by name.
func TestGroups(t *testing.T) {
	file := func(path string, fields ...int32) table.DataFile { return table.DataFile{Path: path, Fields: fields} }
	fragment := table.Fragment{ID: 4, PhysicalRows: 10, Files: []table.DataFile{file("a", 0, 1)}, Deletion: &table.DeletionRef{Path: "d1", Rows: 2}}
	schema := table.Schema{Fields: []table.Field{
		{ID: 0, Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{ID: 1, Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32}), Nullable: true, Children: []table.Field{{ID: 2, Name: "x", Type: arrow.PrimitiveTypes.Int32}}},
	}}
	u := rebase.Uncommitted{
		Transaction: table.Transaction{ID: "mine", ReadVersion: 7, Operation: table.Rewrite{}},
		Groups: []rebase.Group{{
			Old: []table.Fragment{fragment}, Deleted: rebase.RowSet{4: deletion.Of(0, 1)}, Shape: rebase.ShapeOf(schema),
			New: []table.NewFragment{{PhysicalRows: 8, Files: []table.DataFile{file("c", 0, 1)}}},
		}},
	}
	for _, c := range []struct {
		name   string
		change func(f *table.Fragment, s *table.Schema)
		op     table.Operation
		reason string
	}{
		{name: "nothing"},
		{name: "append", op: table.Append{}},
		{name: "index", op: table.CreateIndex{}},
		{name: "reservation", op: table.ReserveFragments{Count: 5}},
		{name: "column dropped", op: table.Project{}, change: func(_ *table.Fragment, s *table.Schema) { s.Fields = s.Fields[:1] }},
		{name: "column renamed", op: table.Project{}, change: func(_ *table.Fragment, s *table.Schema) { s.Fields[0].Name = "other" }},
		{name: "nested column renamed", op: table.Project{}, change: func(_ *table.Fragment, s *table.Schema) {
			s.Fields[1].Type = arrow.StructOf(arrow.Field{Name: "y", Type: arrow.PrimitiveTypes.Int32})
			s.Fields[1].Children[0].Name = "y"
		}},
		{name: "column added without data", op: table.Project{}, change: func(_ *table.Fragment, s *table.Schema) {
			s.Fields = append(s.Fields, table.Field{ID: 9, Name: "new", Type: arrow.BinaryTypes.String, Nullable: true})
		}},
		{name: "settings", op: table.UpdateConfig{Config: table.SettingsUpdate{Set: []string{"k"}}}},
		{name: "columns added", op: table.Merge{Fragments: []table.Fragment{fragment}},
			reason: "version 8: rewrite relies on the deletion vector of fragment 4, and merge replaced the deletion vector of every fragment"},
		{name: "column replaced", op: table.DataReplacement{Replaced: []table.FragmentFields{{Fragment: 4, Fields: []int32{1}}}},
			reason: "version 8: rewrite relies on the data of every field in fragment 4, and data_replacement replaced the data of field 1 in fragment 4"},
		{name: "column of another fragment replaced", op: table.DataReplacement{Replaced: []table.FragmentFields{{Fragment: 5, Fields: []int32{1}}}}},
		{name: "column replaced, and nobody says so", op: table.Append{}, change: func(f *table.Fragment, s *table.Schema) {
			f.Files = []table.DataFile{file("b", 0, 1)}
		}, reason: "the files of fragment 4 changed"},
		{name: "updated in place", op: table.Update{Updated: []table.Fragment{fragment}, InPlace: true, ModifiedFields: []int32{1}},
			reason: "version 8: rewrite relies on the deletion vector of fragment 4, which update replaced"},
		{name: "column tombstoned", change: func(f *table.Fragment, s *table.Schema) {
			f.Files = []table.DataFile{file("a", 0, -2)}
		}, reason: "the files of fragment 4 changed"},
		{name: "column made nullable", op: table.Project{}, change: func(_ *table.Fragment, s *table.Schema) {
			s.Fields[0].Nullable = true
		}},
		{name: "nested column retyped", op: table.Project{}, change: func(_ *table.Fragment, s *table.Schema) {
			s.Fields[1].Children[0].Type = arrow.PrimitiveTypes.Int64
		}, reason: `the schema changed: column "x", field 2, was int32 not null and is int64 not null`},
		{name: "row deleted", op: table.Delete{Updated: []table.Fragment{fragment}}, change: func(f *table.Fragment, s *table.Schema) {
			f.Deletion = &table.DeletionRef{Path: "d2", Rows: 3}
		}},
		{name: "row updated", op: table.Update{Updated: []table.Fragment{fragment}}, change: func(f *table.Fragment, s *table.Schema) {
			f.Deletion = &table.DeletionRef{Path: "d2", Rows: 3}
		}},
		{name: "fragment gone, and nobody says so", op: table.Delete{}, change: func(f *table.Fragment, s *table.Schema) { f.ID = 5 }, reason: "fragment 4 is gone"},
		{name: "every row deleted", op: table.Delete{Removed: []table.FragmentID{4}}, change: func(f *table.Fragment, s *table.Schema) { f.ID = 5 }, reason: "no row of it is left"},
		{name: "every row deleted, and left out later", op: table.Update{Updated: []table.Fragment{{ID: 4, PhysicalRows: 10, Deletion: &table.DeletionRef{Rows: 10}}}},
			change: func(f *table.Fragment, s *table.Schema) { f.ID = 5 }, reason: "no row of it is left"},
		{name: "compacted", op: table.Rewrite{Groups: []table.RewriteGroup{{Old: []table.Fragment{fragment}}}},
			reason: "version 8: rewrite replaces the row addresses of fragment 4, which rewrite replaced"},
		{name: "overwritten", op: table.Overwrite{}, reason: "version 8: rewrite relies on the table's lineage, which overwrite ended"},
		{name: "restored", op: table.Restore{Target: 3}, reason: "version 8: rewrite relies on the table's lineage, which restore ended"},
		{name: "something new", op: table.Unknown{Name: "composite_operation"}, reason: `version 8: what "composite_operation" does is not known`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := schema
			s.Fields = append([]table.Field(nil), schema.Fields...)
			s.Fields[1].Children = append([]table.Field(nil), schema.Fields[1].Children...)
			f := fragment
			if c.change != nil {
				c.change(&f, &s)
			}
			base := &table.Snapshot{Version: 8, Schema: s, Fragments: []table.Fragment{f}, NextFragmentID: 9}
			op := c.op
			if op == nil {
				op = table.ReserveFragments{}
			}
			r, err := rebase.NewRebasing(deadRows{dead: deletion.Of(0, 1, 2)}, u, rebase.Options{})
			require.NoError(t, err)
			require.NoError(t, r.Over(ctx, base, []table.Transaction{{Version: 8, Operation: op}}))
			_, err = r.Propose(ctx, base)
			if c.reason == "" {
				require.NoError(t, err)
				return
			}
			var conflict *rebase.ConflictError
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, []rebase.LostGroup{{Sources: []table.FragmentID{4}, Reason: c.reason}}, conflict.Lost)
		})
	}
}

// deadRows is an engine in which every deletion vector has the same rows.
type deadRows struct {
	table.Engine
	dead *deletion.Vector
}

func (e deadRows) ReadDeletions(context.Context, *table.Snapshot, table.Fragment) (table.OffsetSet, error) {
	return e.dead, nil
}

func (e deadRows) WriteDeletions(context.Context, table.FragmentID, uint64, table.OffsetSet) (table.DeletionRef, error) {
	return table.DeletionRef{Path: "d9", Rows: 1}, nil
}

func TestConflictErrorNamesAFewGroups(t *testing.T) {
	e := &rebase.ConflictError{Table: "t", Version: 9}
	for i := range 5 {
		e.Lost = append(e.Lost, rebase.LostGroup{Sources: []table.FragmentID{table.FragmentID(2 * i), table.FragmentID(2*i + 1)}, Reason: "reason"})
	}
	require.EqualError(t, e, "rebase: table t version 9: nothing is left to publish; group of fragments 0-1: reason; "+
		"group of fragments 2-3: reason; group of fragments 4-5: reason; and 2 more; run again")
	require.True(t, errors.Is(e, table.ErrConflict))
}
