package dml_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/dml/sqlexpr"
)

// TestConditionsOfSQLText: a merge's conditions can be SQL, in which the two sides are
// qualified.
func TestConditionsOfSQLText(t *testing.T) {
	parse := func(text string) dml.Predicate {
		p, err := sqlexpr.ParsePredicate(text)
		require.NoError(t, err)
		return p
	}
	e := newTable(t, 4, numbered(10)...)
	m := dml.MergeInsert{
		On: []string{"k"}, Source: in(3, []row{{K: ptr(int64(1)), N: 5}, {K: ptr(int64(2)), N: 1}, {K: ptr(int64(3)), S: ptr("s3"), N: 9}}),
		WhenMatched: dml.MatchedUpdate, UpdateIf: parse("source.n > target.n and source.s is distinct from target.s"),
		WhenNotMatchedBySource: dml.BySourceDelete, DeleteIf: parse("k >= 8 or s = 's0'"),
	}
	out := mustDo(t, e, m)
	require.Equal(t, dml.Stats{Matched: 3, Updated: 1, Deleted: 3}, out.Stats)
	for _, r := range contents(t, e, 0) {
		require.NotContains(t, []int64{0, 8, 9}, *r.K)
		require.Equal(t, map[bool]int64{true: 5, false: *r.K}[*r.K == 1], r.N)
	}
	m.UpdateIf = parse("source.z > target.n")
	_, err := dml.Execute(t.Context(), e, m, dml.Options{})
	require.ErrorContains(t, err, "the condition for updates")
}

// In a merge's conditions, too, a name in double quotes that is a string elsewhere is
// refused.
func TestReport03MergeConditions(t *testing.T) {
	e := newTable(t, 4, numbered(10)...)
	for _, text := range []string{`"n" > target.n`, `source.s = "s"`, `"source.n" = target.n`} {
		p, err := sqlexpr.ParsePredicate(text)
		require.NoError(t, err)
		m := dml.MergeInsert{On: []string{"k"}, Source: in(3, []row{{K: ptr(int64(1)), N: 5}}), WhenMatched: dml.MatchedUpdate, UpdateIf: p}
		_, err = dml.Execute(t.Context(), e, m, dml.Options{})
		require.ErrorContains(t, err, "two readings", text)
	}
}

// Assignments see the row as it was, whatever their order, as the SQL standard has it.
// Stock engines compute them one after the other, in the order of a hash table.
func TestReport27AssignmentsAreSimultaneous(t *testing.T) {
	for range 8 {
		e := newTable(t, 4, row{K: ptr(int64(1)), N: 5})
		s, err := e.Load(t.Context(), 0)
		require.NoError(t, err)
		set := map[string]dml.Expr{}
		for _, text := range []string{"k = n", "n = k + 10"} {
			a, err := sqlexpr.ParseAssignment(text)
			require.NoError(t, err)
			column, value, err := a.For(s.Schema)
			require.NoError(t, err)
			set[column] = value
		}
		mustDo(t, e, dml.Update{Where: dml.All(), Set: set})
		got := contents(t, e, 0)
		require.Len(t, got, 1)
		require.Equal(t, []int64{5, 11}, []int64{*got[0].K, got[0].N})
	}
}
