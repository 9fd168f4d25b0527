package dml_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/dml/sqlexpr"
	"github.com/rehome-db/rehome/table"
)

// TestReport28RowPositions: a condition looks at the addresses of rows and at their ids,
// which are the stable ones where a table has such.
func TestReport28RowPositions(t *testing.T) {
	keys := func(e table.Engine) (out []int64) {
		for _, r := range contents(t, e, 0) {
			out = append(out, *r.K)
		}
		return out
	}
	where := func(text string) dml.Predicate {
		p, err := sqlexpr.ParsePredicate(text)
		require.NoError(t, err)
		return p
	}
	e := newTable(t, 4, numbered(10)...) // fragments of 4, 4 and 2 rows
	s, err := e.Load(t.Context(), 0)
	require.NoError(t, err)
	second := table.NewRowAddr(s.Fragments[1].ID, 0)
	mustDo(t, e, dml.Delete{Where: where("_rowaddr = " + strconv.FormatUint(uint64(second), 10) + " or _rowid = 1 or k = 9 and _rowaddr > 0")})
	require.Equal(t, []int64{0, 2, 3, 5, 6, 7, 8}, keys(e))

	named := newNaming(newTable(t, 4))
	mustDo(t, named, dml.Append{Rows: dml.Records(batch(numbered(6)))})
	mustDo(t, named, dml.Delete{Where: where("_rowid in (1002, 1004)")}) // ids begin at 1001
	require.Equal(t, []int64{0, 2, 4, 5}, keys(named))
}
