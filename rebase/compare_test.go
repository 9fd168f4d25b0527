package rebase

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/table"
)

// drawCoordinate draws from a small space, so that coordinates meet.
func drawCoordinate(t *rapid.T) coordinate {
	c := coordinate{Kind: kind(rapid.IntRange(0, len(kinds)-1).Draw(t, "kind"))}
	k := kinds[c.Kind]
	wide := rapid.IntRange(0, 3).Draw(t, "wide")
	switch {
	case k.byKey && wide == 0:
		c.Every = everyKey
	case k.byKey:
		c.Key = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
	}
	if c.Kind == setting {
		c.Map = rapid.SampledFrom([]string{"m", "n"}).Draw(t, "map")
	}
	if k.byFragment {
		if wide == 0 {
			c.Every |= everyFragment
		} else {
			c.Fragment = table.FragmentID(rapid.IntRange(0, 2).Draw(t, "fragment"))
		}
	}
	if k.byField {
		if wide <= 1 {
			c.Every |= everyField
		} else {
			c.Field = int32(rapid.IntRange(0, 2).Draw(t, "field"))
		}
	}
	return c
}

func drawFootprint(t *rapid.T, name string) *footprint {
	f := &footprint{operation: name, claims: map[coordinate]claim{}}
	for range rapid.IntRange(0, 12).Draw(t, "claims") {
		f.claim(mode(rapid.IntRange(0, 2).Draw(t, "mode")), rapid.Bool().Draw(t, "by row"), drawCoordinate(t))
	}
	return f
}

// overlap is what it means that two coordinates or regions share a coordinate.
func overlap(a, b coordinate) bool {
	part := func(every scope, same bool) bool { return a.Every&every != 0 || b.Every&every != 0 || same }
	return a.Kind == b.Kind && a.Map == b.Map && part(everyFragment, a.Fragment == b.Fragment) &&
		part(everyField, a.Field == b.Field) && part(everyKey, a.Key == b.Key)
}

// TestCompareMeetsEveryOverlap compares with a look at every pair of claims.
func TestCompareMeetsEveryOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mine, theirs := drawFootprint(t, "mine"), drawFootprint(t, "theirs")
		want := compatible
		for _, m := range mine.claims {
			for _, o := range theirs.claims {
				if overlap(m.Coordinate, o.Coordinate) {
					want = max(want, judge(m, o))
				}
			}
		}
		got := compare(mine, theirs)
		require.Equal(t, want, got.Verdict)
		require.Equal(t, want == compatible, got.Reason == "")
		require.Equal(t, got, compare(mine, theirs), "whatever the order of the claims")
	})
}

// TestMoreClaimsNeverHelp: a change that touches more conflicts at least as much.
func TestMoreClaimsNeverHelp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mine, theirs := drawFootprint(t, "mine"), drawFootprint(t, "theirs")
		before := compare(mine, theirs).Verdict
		mine.claim(requires, false, drawCoordinate(t))
		require.GreaterOrEqual(t, compare(mine, theirs).Verdict, before)
	})
}

// TestTheRule is the table of the package's documentation.
func TestTheRule(t *testing.T) {
	at := func(m mode) claim { return claim{Coordinate: coordinate{Kind: fieldDefinition}, Mode: m} }
	for mine, row := range map[mode]string{requires: "ok retry retry", writesPart: "ok ok retry", writes: "ok retry retry"} {
		got := ""
		for _, theirs := range []mode{requires, writesPart, writes} {
			got += judge(at(mine), at(theirs)).String() + " "
		}
		require.Equal(t, row+" ", got, "%v", mine)
	}
}

// TestUnknownConflictsWithEverything, in both orders, with itself and with changes
// that touch nothing.
func TestUnknownConflictsWithEverything(t *testing.T) {
	unknown := footprintOf(table.Unknown{Name: "x"})
	for _, other := range []*footprint{unknown, footprintOf(table.Clone{}), footprintOf(table.Append{}), footprintOf(nil)} {
		require.Equal(t, incompatible, compare(unknown, other).Verdict)
		require.Equal(t, incompatible, compare(other, unknown).Verdict)
	}
	require.Equal(t, `what "x" does is not known`, compare(footprintOf(table.Clone{}), unknown).Reason)
}

// TestFootprintsGrowWithFragmentsNotRows.
func TestFootprintsGrowWithFragmentsNotRows(t *testing.T) {
	size := func(fragments int, rows uint64) int {
		var op table.Rewrite
		for i := range fragments {
			op.Groups = append(op.Groups, table.RewriteGroup{Old: []table.Fragment{{ID: table.FragmentID(i), PhysicalRows: rows}}})
		}
		return footprintOf(op).Len()
	}
	require.Equal(t, size(10, 1), size(10, 1<<30))
	require.Equal(t, 2*(size(10, 1)-1), size(20, 1)-1)
}
