package interop_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/dml/sqlexpr"
	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// cell is what a row of the tables of this test holds beside its id.
type cell struct {
	f float64
	s string
}

type cells map[int64]cell

// measured makes a batch of id, f and s, or of some of them.
func measured(rows cells, columns ...string) arrow.RecordBatch {
	types := map[string]arrow.DataType{"id": arrow.PrimitiveTypes.Int64, "f": arrow.PrimitiveTypes.Float64, "s": arrow.BinaryTypes.String}
	var fields []arrow.Field
	for _, c := range columns {
		fields = append(fields, arrow.Field{Name: c, Type: types[c], Nullable: true})
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		for i, c := range columns {
			switch c {
			case "id":
				b.Field(i).(*array.Int64Builder).Append(id)
			case "f":
				b.Field(i).(*array.Float64Builder).Append(rows[id].f)
			case "s":
				b.Field(i).(*array.StringBuilder).Append(rows[id].s)
			}
		}
	}
	return b.NewRecordBatch()
}

// add takes the rows of a batch.
func (c cells) add(rec arrow.RecordBatch) error {
	column := func(name string) arrow.Array { return rec.Column(rec.Schema().FieldIndices(name)[0]) }
	ids, f, s := column("id").(*array.Int64), column("f").(*array.Float64), column("s").(*array.String)
	for i := range ids.Len() {
		if _, twice := c[ids.Value(i)]; twice {
			return fmt.Errorf("row %d is there twice", ids.Value(i))
		}
		c[ids.Value(i)] = cell{f.Value(i), strings.Clone(s.Value(i))}
	}
	return nil
}

// ourChange is a change of rehome's, and what it makes of the table.
type ourChange struct {
	name   string
	change dml.Change
	model  func(cells)
}

// theirWrite is a write of the stock engine's, or a compaction.
type theirWrite struct {
	name  string
	do    func() error
	model func(cells)
}

// rewrites is one table on which columns are rewritten.
type rewrites struct {
	ctx  context.Context
	rng  *rand.Rand
	path string
	ours *lance.Engine
	rows int64
}

func (r *rewrites) sql(t *testing.T, where string) dml.Predicate {
	p, err := sqlexpr.ParsePredicate(where)
	require.NoError(t, err)
	return p
}

// change picks a change of ours, of rows from some part of the table.
func (r *rewrites) change(t *testing.T) ourChange {
	lo := r.rng.Int64N(r.rows)
	hi := lo + 1 + r.rng.Int64N(r.rows/3)
	in := func(id int64) bool { return id >= lo && id < hi }
	some := cells{}
	for id := lo; id < hi; id += 2 {
		some[id] = cell{f: -1, s: "merged"}
	}
	source := func(columns ...string) func(func(arrow.RecordBatch, error) bool) {
		return dml.Records(measured(some, columns...))
	}
	switch r.rng.IntN(5) {
	case 0:
		where := fmt.Sprintf("f = 0 and id >= %d and id < %d", lo, hi)
		return ourChange{"delete where " + where, dml.Delete{Where: r.sql(t, where)}, func(c cells) {
			maps.DeleteFunc(c, func(id int64, v cell) bool { return v.f == 0 && in(id) })
		}}
	case 1:
		where := fmt.Sprintf("id >= %d and id < %d", lo, hi)
		set := map[string]dml.Expr{"s": dml.Constant(scalar.MakeScalar("updated"))}
		return ourChange{"update where " + where, dml.Update{Where: r.sql(t, where), Set: set}, func(c cells) {
			for id, v := range c {
				if in(id) {
					c[id] = cell{v.f, "updated"}
				}
			}
		}}
	case 2:
		return ourChange{fmt.Sprintf("upsert of s from %d", lo), dml.MergeInsert{On: []string{"id"}, Source: source("id", "s"), WhenMatched: dml.MatchedUpdate, WhenNotMatched: dml.NotMatchedSkip}, func(c cells) {
			for id := range some {
				if v, ok := c[id]; ok {
					c[id] = cell{v.f, "merged"}
				}
			}
		}}
	case 3:
		return ourChange{fmt.Sprintf("upsert from %d", lo), dml.MergeInsert{On: []string{"id"}, Source: source("id", "f", "s"), WhenMatched: dml.MatchedUpdate}, func(c cells) { maps.Copy(c, some) }}
	default:
		where := "f = 0"
		return ourChange{"delete of what the source does not have", dml.MergeInsert{On: []string{"id"}, Source: source("id", "s"), WhenNotMatched: dml.NotMatchedSkip,
			WhenNotMatchedBySource: dml.BySourceDelete, DeleteIf: r.sql(t, where)}, func(c cells) {
			maps.DeleteFunc(c, func(id int64, v cell) bool { _, there := some[id]; return v.f == 0 && !there })
		}}
	}
}

// write picks a write of theirs.
func (r *rewrites) write(how interop.ColumnRewrite) theirWrite {
	first, step := r.rng.Int64N(r.rows), 1+r.rng.Int64N(3)
	last := min(r.rows, first+1+r.rng.Int64N(r.rows/2))
	value := float64(1 + r.rng.IntN(5))
	set := cells{}
	for id := first; id < last; id += step {
		set[id] = cell{f: value}
	}
	return theirWrite{fmt.Sprintf("%s of f from %d to %d", how, first, last), func() error {
		rec := measured(set, "id", "f")
		defer rec.Release()
		_, err := pylance.RewriteColumn(r.ctx, r.path, how, "id", rec)
		return err
	}, func(c cells) {
		for id := range set {
			if v, ok := c[id]; ok {
				c[id] = cell{value, v.s}
			}
		}
	}}
}

func (r *rewrites) compaction() theirWrite {
	nothing := func(cells) {}
	if r.rng.IntN(2) == 0 {
		return theirWrite{"stock compaction", func() error {
			_, err := pylance.CompactOnly(r.ctx, r.path, false)
			return err
		}, nothing}
	}
	return theirWrite{"compaction", func() error {
		_, err := compaction.Compact(r.ctx, r.ours, compaction.Options{})
		return err
	}, nothing}
}

// check compares the table with the model, as rehome and as the stock engine read it.
func (r *rewrites) check(t *testing.T, want cells, story string) {
	s, err := r.ours.Load(r.ctx, 0)
	require.NoError(t, err, story)
	var ids []table.FragmentID
	for _, f := range s.Fragments {
		ids = append(ids, f.ID)
	}
	got := cells{}
	for b, err := range r.ours.Rows(r.ctx, s, ids, table.ReadOptions{}) {
		require.NoError(t, err, story)
		require.NoError(t, got.add(b.Record), story)
	}
	require.Equal(t, want, got, story)
	a, err := pylance.Query(r.ctx, r.path, interop.Query{Columns: []string{"id", "f", "s"}})
	require.NoError(t, err, story)
	defer a.Release()
	got = cells{}
	for _, rec := range a.Batches {
		require.NoError(t, got.add(rec), story)
	}
	require.Equal(t, want, got, story)
}

// TestReport01RowChangesBesideColumnRewrites computes a change of rows, has the stock
// engine rewrite a column by every means that it has, and has the table compacted
// before or after that; then the change is committed. What comes out is as if one had
// come after the other: a value that was rewritten never comes back, and no row is
// deleted for what it does not hold any more.
func TestReport01RowChangesBesideColumnRewrites(t *testing.T) {
	ctx := needEngines(t)
	rounds := 6
	if everything() {
		rounds = 60
	}
	for i, how := range interop.ColumnRewrites {
		t.Run(string(how), func(t *testing.T) {
			for round := range rounds {
				r := &rewrites{ctx: ctx, rng: rand.New(rand.NewPCG(uint64(i), uint64(round))), path: filepath.Join(t.TempDir(), "t.lance"), rows: 60}
				r.round(t, how)
			}
		})
	}
}

func (r *rewrites) round(t *testing.T, how interop.ColumnRewrite) {
	defer forget(r.ctx, r.path)
	model := cells{}
	for at := int64(0); at < r.rows; at += 20 {
		part := cells{}
		for id := at; id < at+20; id++ {
			part[id] = cell{s: fmt.Sprint("row ", id)}
		}
		maps.Copy(model, part)
		rec := measured(part, "id", "s", "f")
		defer rec.Release()
		var err error
		if at == 0 {
			_, err = pylance.Create(r.ctx, r.path, rec, interop.CreateOptions{})
		} else {
			_, err = pylance.Append(r.ctx, r.path, rec)
		}
		require.NoError(t, err)
	}
	if how == interop.RewriteByDataReplacement {
		// The column gets files of its own first.
		_, err := pylance.DropColumn(r.ctx, r.path, "f")
		require.NoError(t, err)
		_, err = pylance.AddComputed(r.ctx, r.path, "f", "cast(0 as double)")
		require.NoError(t, err)
	}
	var err error
	r.ours, err = lance.Open(r.ctx, r.path, lance.Options{})
	require.NoError(t, err)
	defer r.ours.Close()

	read, err := r.ours.Load(r.ctx, 0)
	require.NoError(t, err)
	mine := r.change(t)
	u, _, err := dml.Compute(r.ctx, r.ours, read, mine.change, dml.Options{})
	require.NoError(t, err, mine.name)
	theirs := []theirWrite{r.write(how)}
	for range r.rng.IntN(3) {
		// A compaction takes files of a column alone away.
		at := len(theirs)
		if how != interop.RewriteByDataReplacement {
			at = r.rng.IntN(len(theirs) + 1)
		}
		theirs = slices.Insert(theirs, at, r.compaction())
	}
	story := mine.name + ", computed before"
	for _, w := range theirs {
		story += ", " + w.name
		require.NoError(t, w.do(), story)
	}

	_, err = rebase.Commit(r.ctx, r.ours, u, rebase.Options{Fresh: true})
	if err == nil {
		story += ": committed as it was"
		mine.model(model)
		for _, w := range theirs {
			w.model(model)
		}
	} else {
		story += ": " + err.Error()
		require.ErrorIs(t, err, table.ErrConflict, story)
		for _, w := range theirs {
			w.model(model)
		}
		r.check(t, model, story+", and nothing was changed")
		_, err = dml.Execute(r.ctx, r.ours, mine.change, dml.Options{})
		require.NoError(t, err, story)
		mine.model(model)
	}
	r.check(t, model, story)
}
