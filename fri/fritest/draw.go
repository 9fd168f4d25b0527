package fritest

import (
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// DrawDeletions deletes more rows of a fragment, which must have some: none,
// all, a few that lie apart, every second one, or a range.
func (f *Fragment) DrawDeletions(t *rapid.T) {
	var dead *deletion.Vector
	switch rapid.IntRange(0, 6).Draw(t, "delete") {
	case 0:
		dead = deletion.Range(0, f.Rows)
	case 1, 2:
		for _, o := range rapid.SliceOfN(rapid.Uint64Range(0, f.Rows-1), 0, 5).Draw(t, "scattered") {
			dead = dead.Union(deletion.Of(uint32(o)))
		}
	case 3: // of a large fragment, too many runs for ranges
		var odd []uint32
		for o := uint32(1); uint64(o) < f.Rows; o += 2 {
			odd = append(odd, o)
		}
		dead = deletion.Of(odd...)
	case 4:
		from := rapid.Uint64Range(0, f.Rows).Draw(t, "from")
		dead = deletion.Range(from, rapid.Uint64Range(from, f.Rows).Draw(t, "to"))
	}
	if dead != nil {
		f.Dead = f.Dead.Union(dead)
	}
}

// DrawCoverage draws some of the fragments that ever were, in any order.
func (m *Model) DrawCoverage(t *rapid.T, label string) []table.FragmentID {
	var out []table.FragmentID
	for _, f := range m.All {
		if rapid.IntRange(0, 2).Draw(t, label) > 0 {
			out = append(out, f.ID)
		}
	}
	return rapid.Permutation(out).Draw(t, label+" order")
}
