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
	_, err := m.Execute(t.Context(), e, dml.Options{})
	require.ErrorContains(t, err, "the condition for updates")
}
