package sqlexpr_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml/sqlexpr"
)

// Whatever the text is, it has a meaning or an error, and the same one again.
func FuzzPredicate(f *testing.F) {
	for _, name := range []string{"predicates.txt", "expressions.txt"} {
		for _, c := range readCases(f, name) {
			f.Add(c.text)
		}
	}
	rec := readBatch(f, "rows.arrow")
	schema := schemaOf(rec)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := matches(text, schema, rec)
		if err != nil {
			require.True(t, strings.HasPrefix(err.Error(), "sqlexpr: "), "%v", err)
			// A panic is turned into an error, and is a mistake all the same.
			require.NotContains(t, err.Error(), " failed: ")
		}
		again, err2 := matches(text, schema, rec)
		require.Equal(t, got, again)
		require.Equal(t, err == nil, err2 == nil)
		if x, err := sqlexpr.ParseExpr(text); err == nil {
			v, err := x.Eval(context.Background(), rec)
			if err != nil {
				require.NotContains(t, err.Error(), " failed: ")
				return
			}
			require.Equal(t, int(rec.NumRows()), v.Len())
			v.Release()
		}
	})
}
