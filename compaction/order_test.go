package compaction

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/table"
)

// A plan says whether rows change their order in a scan, and is right; asked to keep
// the order, it does.
func TestReport22ScanOrderIsKeptOrSaidToChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := newTable(t, rapid.SliceOfN(rapid.IntRange(1, 12), 1, 8).Draw(t, "fragments")...)
		s, err := e.Load(ctx, 0)
		require.NoError(t, err)
		for _, f := range s.Fragments {
			if rapid.IntRange(0, 3).Draw(t, "indexed") == 0 {
				_, err := buildIndex(t, e, 0, table.ReuseThrough, f.ID)
				require.NoError(t, err)
			}
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "updates") {
			// An update moves the row into a new fragment, as a merge does.
			then := rowsAt(t, e, 0)
			updateRows(t, e, int64(-1-i), then[rapid.IntRange(0, len(then)-1).Draw(t, "row")].addr)
		}
		before := valuesOf(rowsAt(t, e, 0))
		report, err := Compact(ctx, e, Options{
			TargetRows:  uint64(rapid.IntRange(2, 20).Draw(t, "target")),
			AnyDeletion: rapid.IntRange(0, 3).Draw(t, "any deletion") == 0, DeletionThreshold: rapid.SampledFrom([]float64{0.1, 0.5, 1}).Draw(t, "threshold"),
			KeepOrder: rapid.Bool().Draw(t, "keep"),
			FRI:       rapid.SampledFrom([]FRIMode{FRIAuto, FRINever}).Draw(t, "fri"),
		})
		require.NoError(t, err)
		after := valuesOf(rowsAt(t, e, 0))
		require.ElementsMatch(t, before, after)
		if report.KeepsOrder {
			require.Equal(t, before, after)
		} else {
			require.NotEqual(t, before, after)
		}
	})
}

// Asked to keep the order, a compaction still does what it can at the end of a table.
func TestReport22KeepOrder(t *testing.T) {
	e := newTable(t, 3, 10, 3, 3, 3)
	before := valuesOf(rowsAt(t, e, 0))
	report, err := Compact(ctx, e, Options{TargetRows: 10, KeepOrder: true})
	require.NoError(t, err)
	require.True(t, report.Committed)
	require.True(t, report.KeepsOrder)
	require.Equal(t, 3, report.FragmentsRemoved)
	require.Equal(t, before, valuesOf(rowsAt(t, e, 0)))
}
