package fri

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// A history grows with every compaction, and every reader pays for it. A transition may
// be dropped once nothing holds an address from before it. The age of an index's data
// decides this, never its coverage alone: readers re-target coverage without touching
// the files, so an index that claims today's fragments may still store old addresses.

// Trimming is what has to be known of a table to trim its history.
type Trimming struct {
	// Indexes are those of the version whose history is trimmed, with their
	// coverage as it is stored, not as readers see it.
	Indexes []table.IndexMeta
	// Commits are parallel to the history's transitions.
	Commits []Commit
	// OldestReader is the oldest version whose row addresses somebody outside the
	// table may still ask about; 0 if nobody does.
	OldestReader uint64
	// ClaimDoubts says that the caller, when it drops a transition, makes the indexes
	// in [Need].Doubts claim its sources. Without that a doubt is a need.
	ClaimDoubts bool
	// DropDamaged drops damaged transitions (see [Recover]) even if an index or reader
	// needs them: nobody can follow a row through one.
	DropDamaged bool
}

// Commit is what is known of the commit that published a transition.
type Commit struct {
	// Version is the version that the commit made; if not Exact, one that is not
	// older. 0 says that nothing is known.
	Version uint64
	// Exact says that Version is the commit's own: the version before it could be
	// read. It is false if a clean-up removed that version.
	Exact bool
	// Before are the indexes of the version that the commit replaced, with their
	// coverage as stored. Meaningless unless BeforeKnown.
	Before      []table.IndexMeta
	BeforeKnown bool
}

// Need says why a transition is kept. The zero value says that nothing needs it,
// except that Continues is -1 then.
type Need struct {
	// Indexes may hold addresses that only this transition can translate.
	Indexes []table.IndexMeta
	// Reader: somebody may hold addresses from before it.
	Reader bool
	// Continues is an older transition that is kept and whose rows went on
	// through this one; -1 if there is none.
	Continues int
	// Doubts are indexes whose coverage before the commit is unknown, and whose
	// coverage today is unrelated to the transition. They do not need the transition
	// once their coverage names its sources: readers then drop addresses of those
	// fragments. The caller that drops the transition sets this coverage.
	Doubts []table.IndexMeta
	// Discard says that the transition is dropped in spite of all this, because it is
	// damaged.
	Discard bool
}

// Needed says whether there is any reason.
func (n Need) Needed() bool {
	return !n.Discard && (len(n.Indexes) > 0 || n.Reader || n.Continues >= 0)
}

// IndexNames lists the names of the indexes, ascending, each once.
func (n Need) IndexNames() []string {
	names := make([]string, 0, len(n.Indexes))
	for _, x := range n.Indexes {
		names = append(names, x.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// String gives the reasons in words.
func (n Need) String() string {
	var why []string
	if names := n.IndexNames(); len(names) > 0 {
		why = append(why, "index "+strings.Join(names, ", "))
	}
	if n.Reader {
		why = append(why, "readers of older versions")
	}
	if n.Continues >= 0 {
		why = append(why, fmt.Sprintf("transition %d, which goes on through it", n.Continues))
	}
	if len(why) == 0 {
		return "nothing"
	}
	return strings.Join(why, "; ")
}

// Trim returns the history without the transitions that nothing needs, and the
// positions that those had. With nothing to drop it returns h itself.
//
// A transition goes when, all of these,
//
//   - no index needs it: each index's data is at least as new as the commit that
//     published it, or never covered what the rewrite touched or what leads there;
//   - no reader holds addresses from before it (Trimming.OldestReader);
//   - no older transition is kept whose rows went on through it: the addresses that
//     the older one leads to would end in a fragment that is gone.
//
// An unknown fact counts as a need: see [History.Needs]. Trim refuses an incomplete
// history (table.ErrUnsupported), because the parts that it does not understand may need
// anything.
func (h *History) Trim(t Trimming) (kept *History, dropped []int, err error) {
	needs, err := h.Needs(t)
	if err != nil {
		return nil, nil, err
	}
	for i, n := range needs {
		if !n.Needed() {
			dropped = append(dropped, i)
		}
	}
	if len(dropped) == 0 {
		return h, nil, nil
	}
	if kept, err = h.without(dropped); err != nil {
		return nil, nil, err
	}
	return kept, dropped, nil
}

// Needs says for each transition why it has to be kept, by the rule of
// [History.Trim]. An index needs a transition if its stored coverage names a
// source, whatever else is true, or if its data is older than the commit and
//
//   - its coverage is unknown;
//   - its coverage names a relative of the rewrite, a fragment that the sources came
//     from or became: as it is stored now, or as it was stored in a version that
//     some transition replaced. Coverage shrinks when a rewrite or an update takes
//     part of it, and the addresses in the files stay.
//
// How it was before the commit may not be known, because that version is gone. That
// counts as a need, unless it is dealt with otherwise (Trimming.ClaimDoubts).
//
// The last does not hold for a kind whose readers are right once its coverage is
// emptied ([table.ReuseMasked]): nobody follows an address that such an index holds
// of a fragment it does not claim. So an index that was masked needs nothing. Other
// kinds, vector indexes above all, fail in some readers on an address of a fragment
// that is gone and not claimed.
func (h *History) Needs(t Trimming) ([]Need, error) {
	if err := h.checkUnderstood(); err != nil {
		return nil, fmt.Errorf("fri: what a history needs cannot be told when a part of it is not understood: %w", err)
	}
	if len(t.Commits) != h.Len() {
		return nil, fmt.Errorf("fri: trim: %d commits for %d transitions", len(t.Commits), h.Len())
	}
	needs := make([]Need, h.Len())
	for i, c := range t.Commits {
		needs[i].Continues = -1
		needs[i].Discard = t.DropDamaged && h.transitions[i].mapping == DamagedMapping
		needs[i].Reader = t.OldestReader != 0 && (c.Version == 0 || c.Version > t.OldestReader)
	}
	held := t.everCovered()
	for _, x := range t.Indexes {
		if x.System {
			continue
		}
		was := held[x.Name]
		p := pin{index: x, heldUnknown: was.unknown, consumes: h.consumesAnyOf(x.Coverage), claims: h.related(x.Coverage), held: h.related(was.ids)}
		for i, c := range t.Commits {
			switch needed, doubt := p.on(i, c); {
			case needed, doubt && !t.ClaimDoubts:
				needs[i].Indexes = append(needs[i].Indexes, x)
			case doubt:
				needs[i].Doubts = append(needs[i].Doubts, x)
			}
		}
	}
	h.keepChains(needs)
	return needs, nil
}

// pin is an index that may hold on to transitions. The slices have an element for each
// transition: whether the coverage as stored names a source of it, whether it names a
// relative, and whether the coverage as it ever was does.
type pin struct {
	index                  table.IndexMeta
	consumes, claims, held []bool
	heldUnknown            bool
}

// on is the rule for one transition.
func (p pin) on(i int, c Commit) (needed, doubt bool) {
	x := p.index
	switch {
	case x.CoverageKnown && p.consumes[i]:
		// Files that were built or rewritten since do not claim a fragment that is
		// gone, so the version that the index gives is not to be believed.
		return true, false
	case c.Version != 0 && x.DatasetVersion >= c.Version:
		return false, false
	case !x.CoverageKnown, p.claims[i]:
		return true, false
	case x.Reuse == table.ReuseMasked:
		return false, false
	}
	needed = p.heldUnknown || p.held[i]
	return needed, !needed && !c.BeforeKnown
}

// consumesAnyOf says of each transition whether it rewrote one of the fragments.
func (h *History) consumesAnyOf(ids []table.FragmentID) []bool {
	out := make([]bool, len(h.transitions))
	for _, id := range ids {
		if e, ok := h.lineage.consumers[id]; ok {
			out[e.transition] = true
		}
	}
	return out
}

// coverage is all that the segments of an index were ever seen to cover.
type coverage struct {
	ids     []table.FragmentID
	unknown bool
}

// everCovered is by name: a segment that an engine has remapped is a new one, and
// may still hold addresses of fragments that only its predecessor claimed.
func (t Trimming) everCovered() map[string]coverage {
	out := map[string]coverage{}
	seen := map[uint64]bool{}
	for _, c := range t.Commits {
		if !c.BeforeKnown || c.Exact && seen[c.Version] {
			continue
		}
		seen[c.Version] = c.Exact // those of one commit had the same before it
		for _, x := range c.Before {
			was := out[x.Name]
			was.unknown = was.unknown || !x.CoverageKnown
			// Most of these are the same in every version.
			was.ids = append(was.ids, x.Coverage...)
			slices.Sort(was.ids)
			was.ids = slices.Compact(was.ids)
			out[x.Name] = was
		}
	}
	return out
}

// keepChains marks everything that a kept transition's rows went on through.
func (h *History) keepChains(needs []Need) {
	var work []int
	for i, n := range needs {
		if n.Needed() {
			work = append(work, i)
		}
	}
	for len(work) > 0 {
		i := work[len(work)-1]
		work = work[:len(work)-1]
		for _, d := range h.transitions[i].destinations {
			next, ok := h.Consumer(d.ID)
			if !ok || needs[next].Continues >= 0 {
				continue
			}
			needed := needs[next].Needed()
			needs[next].Continues = i
			if !needed && needs[next].Needed() {
				work = append(work, next)
			}
		}
	}
}

// without returns the history less the transitions at the given positions, which
// ascend. Entries that lose none are carried byte for byte.
func (h *History) without(drop []int) (*History, error) {
	var ts []*Transition
	var entries []entry
	first := 0
	for _, e := range h.entries {
		var left []*Transition
		for i := range e.count {
			if _, gone := slices.BinarySearch(drop, first+i); !gone {
				left = append(left, h.transitions[first+i])
			}
		}
		first += e.count
		switch {
		case len(left) == 0:
			continue
		case len(left) < e.count: // an entry of several is a version
			e = newVersion(e.datasetVersion, left)
		}
		ts, entries = append(ts, left...), append(entries, e)
	}
	return newHistory(h.indexVersion, ts, entries)
}

// fragmentSet is a set of fragments.
type fragmentSet map[table.FragmentID]struct{}

func (s fragmentSet) anyOf(ids []table.FragmentID) bool {
	for _, id := range ids {
		if _, ok := s[id]; ok {
			return true
		}
	}
	return false
}

func (h *History) sourceSet(i int) fragmentSet {
	out := make(fragmentSet, len(h.transitions[i].sources))
	for _, s := range h.transitions[i].sources {
		out[s.ID] = struct{}{}
	}
	return out
}
