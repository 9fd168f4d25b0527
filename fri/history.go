package fri

import (
	"fmt"
	"iter"
	"slices"

	"github.com/rehome-db/rehome/table"
)

// History is all the transitions that a table keeps, in the order in which they
// were committed. It is immutable and safe for concurrent use. The zero value is
// the empty history.
type History struct {
	transitions []*Transition
	// entries group the transitions by the commit that recorded them, as they
	// are stored.
	entries []entry
	lineage lineage
	hops    []hop
	hopOf   fragmentIndex
}

// entry is what one commit added: consecutive transitions.
type entry struct {
	datasetVersion uint64
	count          int
	// raw is the stored message, carried into every later encoding unchanged.
	raw []byte
}

func newHistory(ts []*Transition, entries []entry) (*History, error) {
	l, err := link(ts)
	if err != nil {
		return nil, err
	}
	h := &History{transitions: ts, entries: entries, lineage: l}
	var ids []table.FragmentID
	for _, t := range ts {
		for i, s := range t.sources {
			ids = append(ids, s.ID)
			h.hops = append(h.hops, hop{part: t.parts[i], rows: s.PhysicalRows, before: t.before[i], to: t.to})
		}
	}
	h.hopOf = newFragmentIndex(ids)
	return h, nil
}

// Len returns the number of transitions.
func (h *History) Len() int { return len(h.transitions) }

// At returns transition i, from 0 for the oldest.
func (h *History) At(i int) *Transition { return h.transitions[i] }

// All yields the transitions with their positions, oldest first.
func (h *History) All() iter.Seq2[int, *Transition] { return slices.All(h.transitions) }

// Consumer returns the position of the transition that rewrote the fragment, or
// false if none did.
func (h *History) Consumer(id table.FragmentID) (int, bool) {
	e, ok := h.lineage.consumers[id]
	return e.transition, ok
}

// Producer returns the position of the transition that wrote the fragment, or
// false if none did.
func (h *History) Producer(id table.FragmentID) (int, bool) {
	e, ok := h.lineage.producers[id]
	return e.transition, ok
}

// Heirs returns the fragments that hold the surviving rows of a fragment today, in
// ascending order: the fragment itself if nothing rewrote it. A fragment that was
// rewritten together with others has heirs that hold rows of those too.
func (h *History) Heirs(id table.FragmentID) []table.FragmentID {
	var out []table.FragmentID
	for f := range h.descendants(id) {
		if _, ok := h.lineage.consumers[f]; !ok {
			out = append(out, f)
		}
	}
	slices.Sort(out)
	return out
}

// descendants yields the fragment and everything that rewrites made of it, each
// once.
func (h *History) descendants(ids ...table.FragmentID) iter.Seq[table.FragmentID] {
	return func(yield func(table.FragmentID) bool) {
		seen := make(map[table.FragmentID]struct{})
		stack := slices.Clone(ids)
		for len(stack) > 0 {
			f := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if _, ok := seen[f]; ok {
				continue
			}
			seen[f] = struct{}{}
			if !yield(f) {
				return
			}
			if e, ok := h.lineage.consumers[f]; ok {
				for _, d := range h.transitions[e.transition].destinations {
					stack = append(stack, d.ID)
				}
			}
		}
	}
}

// Append returns the history with one more commit: its transitions, recorded
// with the version in which that commit will publish them. The history must be
// that of the version being replaced, read again for every attempt; then two
// commits that rewrite different fragments keep each other's transitions, however
// they race.
//
// It fails with table.ErrConflict if a source has been rewritten by a transition
// that is there already, or a destination's id is taken, and otherwise if the
// transitions break a rule: version older than the newest entry, a transition that
// feeds on another of the same commit, or sources that do not ascend by id. The
// last is a limit of the stored form: its older readers pair survivors with new
// rows by ascending address.
func (h *History) Append(version uint64, ts ...*Transition) (*History, error) {
	if len(ts) == 0 {
		return h, nil
	}
	if n := len(h.entries); n > 0 && version < h.entries[n-1].datasetVersion {
		return nil, &TransitionError{Index: len(h.transitions), DatasetVersion: version, Rule: RuleOrder,
			err: fmt.Errorf("the newest entry is of version %d", h.entries[n-1].datasetVersion)}
	}
	added := make([]*Transition, len(ts))
	for i, t := range ts {
		if err := h.checkAppend(t, ts[:i]); err != nil {
			return nil, at(err, len(h.transitions)+i, version)
		}
		dated := *t
		dated.datasetVersion = version
		added[i] = &dated
	}
	e := entry{datasetVersion: version, count: len(added), raw: appendVersion(nil, version, added)}
	return newHistory(slices.Concat(h.transitions, added), append(slices.Clip(h.entries), e))
}

func (h *History) checkAppend(t *Transition, siblings []*Transition) error {
	if !slices.IsSortedFunc(t.sources, func(a, b Digest) int { return int(int64(a.ID) - int64(b.ID)) }) {
		return violation(table.ErrUnsupported, RuleSourceOrder, "sources %v do not ascend by id", t)
	}
	for _, s := range t.sources {
		if i, ok := h.Consumer(s.ID); ok {
			return violation(table.ErrConflict, RuleOneConsumer, "fragment %d was rewritten by transition %d already", s.ID, i)
		}
		for _, o := range siblings {
			if slices.ContainsFunc(o.destinations, func(d Digest) bool { return d.ID == s.ID }) {
				return broken(RuleOrder, "fragment %d is written by another transition of the same commit", s.ID)
			}
		}
	}
	for _, d := range t.destinations {
		if i, ok := h.Producer(d.ID); ok {
			return violation(table.ErrConflict, RuleOneProducer, "fragment %d was written by transition %d already", d.ID, i)
		}
		if i, ok := h.Consumer(d.ID); ok {
			return violation(table.ErrConflict, RuleOrder, "fragment %d was rewritten by transition %d before it was written", d.ID, i)
		}
		for _, o := range siblings {
			if slices.ContainsFunc(o.sources, func(s Digest) bool { return s.ID == d.ID }) {
				return broken(RuleOrder, "fragment %d is rewritten by another transition of the same commit", d.ID)
			}
		}
	}
	return nil
}
