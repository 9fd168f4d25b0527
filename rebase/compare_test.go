package rebase

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/table"
)

// drawCoordinate draws from a small space, so that coordinates meet.
func drawCoordinate(t *rapid.T) Coordinate {
	c := Coordinate{Kind: Kind(rapid.IntRange(0, len(kinds)-1).Draw(t, "kind"))}
	k := kinds[c.Kind]
	wide := rapid.IntRange(0, 3).Draw(t, "wide")
	switch {
	case k.byKey && wide == 0:
		c.Every = EveryKey
	case k.byKey:
		c.Key = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "key")
	}
	if c.Kind == Setting {
		c.Map = rapid.SampledFrom([]string{"m", "n"}).Draw(t, "map")
	}
	if k.byFragment {
		if wide == 0 {
			c.Every |= EveryFragment
		} else {
			c.Fragment = table.FragmentID(rapid.IntRange(0, 2).Draw(t, "fragment"))
		}
	}
	if k.byField {
		if wide <= 1 {
			c.Every |= EveryField
		} else {
			c.Field = int32(rapid.IntRange(0, 2).Draw(t, "field"))
		}
	}
	return c
}

func drawFootprint(t *rapid.T, name string) *Footprint {
	f := &Footprint{operation: name, claims: map[Coordinate]Claim{}}
	for range rapid.IntRange(0, 12).Draw(t, "claims") {
		f.claim(Mode(rapid.IntRange(0, 2).Draw(t, "mode")), rapid.Bool().Draw(t, "by row"), drawCoordinate(t))
	}
	return f
}

// overlap is what it means that two coordinates or regions share a coordinate.
func overlap(a, b Coordinate) bool {
	part := func(every Scope, same bool) bool { return a.Every&every != 0 || b.Every&every != 0 || same }
	return a.Kind == b.Kind && a.Map == b.Map && part(EveryFragment, a.Fragment == b.Fragment) &&
		part(EveryField, a.Field == b.Field) && part(EveryKey, a.Key == b.Key)
}

// TestCompareMeetsEveryOverlap compares with a look at every pair of claims.
func TestCompareMeetsEveryOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mine, theirs := drawFootprint(t, "mine"), drawFootprint(t, "theirs")
		want := OK
		for _, m := range mine.claims {
			for _, o := range theirs.claims {
				if overlap(m.Coordinate, o.Coordinate) {
					want = max(want, judge(m, o))
				}
			}
		}
		got := Compare(mine, theirs)
		require.Equal(t, want, got.Verdict)
		require.Equal(t, want == OK, got.Reason == "")
		require.Equal(t, got, Compare(mine, theirs), "whatever the order of the claims")
	})
}

// TestMoreClaimsNeverHelp: a change that touches more conflicts at least as much.
func TestMoreClaimsNeverHelp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mine, theirs := drawFootprint(t, "mine"), drawFootprint(t, "theirs")
		before := Compare(mine, theirs).Verdict
		mine.claim(Requires, false, drawCoordinate(t))
		require.GreaterOrEqual(t, Compare(mine, theirs).Verdict, before)
	})
}

// TestTheRule is the table of the package's documentation.
func TestTheRule(t *testing.T) {
	at := func(m Mode) Claim { return Claim{Coordinate: Coordinate{Kind: FieldDefinition}, Mode: m} }
	for mine, row := range map[Mode]string{Requires: "ok retry retry", WritesPart: "ok ok retry", Writes: "ok retry retry"} {
		got := ""
		for _, theirs := range []Mode{Requires, WritesPart, Writes} {
			got += judge(at(mine), at(theirs)).String() + " "
		}
		require.Equal(t, row+" ", got, "%v", mine)
	}
}

// TestUnknownConflictsWithEverything, in both orders, with itself and with changes
// that touch nothing.
func TestUnknownConflictsWithEverything(t *testing.T) {
	unknown := FootprintOf(table.Unknown{Name: "x"})
	for _, other := range []*Footprint{unknown, FootprintOf(table.Clone{}), FootprintOf(table.Append{}), FootprintOf(nil)} {
		require.Equal(t, Incompatible, Compare(unknown, other).Verdict)
		require.Equal(t, Incompatible, Compare(other, unknown).Verdict)
	}
	require.Equal(t, `what "x" does is not known`, Compare(FootprintOf(table.Clone{}), unknown).Reason)
}

// TestFootprintsGrowWithFragmentsNotRows.
func TestFootprintsGrowWithFragmentsNotRows(t *testing.T) {
	size := func(fragments int, rows uint64) int {
		var op table.Rewrite
		for i := range fragments {
			op.Groups = append(op.Groups, table.RewriteGroup{Old: []table.Fragment{{ID: table.FragmentID(i), PhysicalRows: rows}}})
		}
		return FootprintOf(op).Len()
	}
	require.Equal(t, size(10, 1), size(10, 1<<30))
	require.Equal(t, 2*(size(10, 1)-1), size(20, 1)-1)
}
