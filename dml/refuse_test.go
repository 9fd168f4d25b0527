package dml_test

import (
	"context"
	"errors"
	"iter"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// What predicates, expressions and engines promise is checked where rows depend on it.

func TestAnswersForOtherRowsAreRefused(t *testing.T) {
	e := newTable(t, 4, numbered(10)...)
	short := dml.PredicateFunc(nil, func(context.Context, arrow.RecordBatch) (*array.Boolean, error) {
		b := array.NewBooleanBuilder(memory.DefaultAllocator)
		b.Append(true)
		return b.NewBooleanArray(), nil
	})
	_, err := dml.Execute(t.Context(), e, dml.Delete{Where: short}, dml.Options{Threads: 1})
	require.ErrorContains(t, err, "answers for 1 of 4 rows")
	one := dml.ExprFunc(nil, func(context.Context, arrow.RecordBatch) (arrow.Array, error) { return array.NewNull(1), nil })
	_, err = dml.Execute(t.Context(), e, dml.Update{Set: map[string]dml.Expr{"s": one}}, dml.Options{})
	require.ErrorContains(t, err, `the new value of column "s": 1 values for 4 rows`)
	require.EqualValues(t, 2, snapshot(t, e, 0).Version)
}

func TestErrorsOfConditionsAndValuesAreTheirs(t *testing.T) {
	broken := errors.New("divided by zero")
	e := newTable(t, 4, numbered(10)...)
	failing := dml.PredicateFunc(nil, func(context.Context, arrow.RecordBatch) (*array.Boolean, error) { return nil, broken })
	value := dml.ExprFunc(nil, func(context.Context, arrow.RecordBatch) (arrow.Array, error) { return nil, broken })
	for _, c := range []change{
		dml.Delete{Where: failing},
		dml.Update{Where: failing, Set: map[string]dml.Expr{"s": text("x")}},
		dml.Update{Set: map[string]dml.Expr{"s": value}},
		dml.MergeInsert{On: []string{"k"}, Source: in(5, numbered(1)), WhenMatched: dml.MatchedUpdate, UpdateIf: failing},
		dml.MergeInsert{On: []string{"k"}, Source: in(5, numbered(1)), WhenNotMatchedBySource: dml.BySourceDelete, DeleteIf: failing},
		dml.MergeInsert{On: []string{"k"}, Source: in(5, numbered(1)), WhenMatched: dml.MatchedUpdate, UpdateIf: where([]string{"k"}, nil)},
		dml.MergeInsert{On: []string{"k"}, Source: in(5, numbered(1)), WhenNotMatchedBySource: dml.BySourceDelete, DeleteIf: where([]string{"z"}, nil)},
		dml.MergeInsert{On: []string{"k"}, WhenMatched: dml.MatchedUpdate},
		dml.MergeInsert{On: []string{"k"}, Source: in(5, numbered(1)), WhenMatched: 9},
		dml.Update{Set: map[string]dml.Expr{"s": nil}},
		dml.Append{},
	} {
		_, err := dml.Execute(t.Context(), e, c, dml.Options{})
		require.ErrorContains(t, err, "dml: table t version 2: ", "%T", c)
	}
	require.EqualValues(t, 2, snapshot(t, e, 0).Version)
	noOrphans(t, e)
}

func TestBatchesOfOneSourceHaveTheSameColumns(t *testing.T) {
	e := newTable(t, 4, numbered(10)...)
	mixed := dml.Records(batch(numbered(2), "k", "n"), batch(numbered(2), "k", "s"))
	_, err := dml.Execute(t.Context(), e, dml.MergeInsert{On: []string{"k"}, Source: mixed, WhenMatched: dml.MatchedUpdate}, dml.Options{})
	require.ErrorContains(t, err, `one batch has the columns ["k" "n"], another ["k" "s"]`)
	_, err = dml.Execute(t.Context(), e, dml.Append{Rows: mixed}, dml.Options{})
	require.ErrorContains(t, err, `one batch has the columns ["k" "n"], another ["k" "s"]`)
	twice := dml.Records(batch(numbered(2), "k", "n", "k"))
	_, err = dml.Execute(t.Context(), e, dml.Append{Rows: twice}, dml.Options{})
	require.ErrorContains(t, err, `column "k" twice`)
	noOrphans(t, e)
}

func TestConstants(t *testing.T) {
	e := newTable(t, 4, numbered(3)...)
	set := map[string]dml.Expr{"s": dml.Constant(scalar.MakeScalar("x")), "f": dml.Constant(scalar.MakeScalar(int8(7))), "k": dml.Constant(scalar.ScalarNull)}
	_, err := dml.Execute(t.Context(), e, dml.Update{Set: set}, dml.Options{})
	require.NoError(t, err)
	for _, r := range contents(t, e, 0) {
		require.Equal(t, row{S: ptr("x"), F: ptr(7.0), N: r.N}.String(), r.String())
	}
}

// nameless has stable row ids and cannot tell them.
type nameless struct{ *memengine.Engine }

func (e nameless) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	return named(e.Engine.Load(ctx, version))
}

func TestRowsWhoseIDsCannotBeToldAreNotWrittenAgain(t *testing.T) {
	mem := newTable(t, 4, numbered(10)...)
	e := nameless{mem}
	for _, c := range []change{increment(1), upsert("me", 1, 1)} {
		_, err := dml.Execute(t.Context(), e, c, dml.Options{})
		require.ErrorIs(t, err, table.ErrUnsupported)
	}
	mustDo(t, e, dml.Delete{Where: keyIs(1)}) // which needs none
	m := upsert("me", 1, 77)
	m.WhenMatched = dml.MatchedKeep
	mustDo(t, e, m) // nor do new rows
	noOrphans(t, mem)
}

// forgetful loses a row between two reads.
type forgetful struct {
	*memengine.Engine
	reads int
}

func (e *forgetful) Rows(ctx context.Context, s *table.Snapshot, ids []table.FragmentID, opts table.ReadOptions) iter.Seq2[table.Batch, error] {
	if e.reads++; e.reads > 1 {
		opts.BatchRows = 1
	}
	return func(yield func(table.Batch, error) bool) {
		n := 0
		for b, err := range e.Engine.Rows(ctx, s, ids, opts) {
			if n++; e.reads > 1 && n == 2 {
				continue
			}
			if !yield(b, err) {
				return
			}
		}
	}
}

func TestRowsThatAreNotThereASecondTime(t *testing.T) {
	mem := newTable(t, 4, numbered(10)...)
	for _, c := range []change{increment(0, 1), dml.MergeInsert{
		On: []string{"k"}, Source: in(5, numbered(3), "k", "s"), WhenMatched: dml.MatchedUpdate, WhenNotMatched: dml.NotMatchedSkip,
	}} {
		_, err := dml.Execute(t.Context(), &forgetful{Engine: mem}, c, dml.Options{Threads: 1})
		require.Error(t, err)
		require.EqualValues(t, 2, snapshot(t, mem, 0).Version)
		noOrphans(t, mem)
	}
}

// altered has another column after the first change that was tried.
type altered struct{ *racing }

func (e altered) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	s, err := e.racing.Load(ctx, version)
	if err != nil || e.n == 0 {
		return s, err
	}
	out := *s
	out.Schema.Fields = append(columns().Fields, table.Field{ID: 9, Name: "z", Type: arrow.BinaryTypes.String, Nullable: true})
	return &out, nil
}

func TestASourceIsOfTheColumnsThatItWasReadFor(t *testing.T) {
	mem := newTable(t, 4, numbered(10)...)
	e := altered{&racing{Engine: mem, others: func(int) { mustDo(t, mem, increment(1)) }}}
	_, err := dml.Execute(t.Context(), e, upsert("me", 1, 1), dml.Options{})
	require.ErrorIs(t, err, table.ErrTerminal)
	require.ErrorContains(t, err, "the columns are not those that the source was read for")
	noOrphans(t, mem)
}
