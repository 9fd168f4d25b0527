package fri

import (
	"fmt"
	"iter"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/table"
)

// History is all the transitions that a table keeps, in the order in which they
// were committed. It is immutable and safe for concurrent use. The zero value is
// the empty history.
type History struct {
	indexVersion int32
	transitions  []*Transition
	// entries are the fields of the content, as they are stored.
	entries []entry
	lineage lineage
	hops    []hop
	hopOf   fragmentIndex
	// labels opens the label files of stable partitions, see WithPartitions.
	labels *labelSource
	// attached is the cache that holds the segments; nil if the parts do.
	attached *attachment
}

// entry is one field of the content with the consecutive transitions that it
// holds: in index version 0 what one commit added, in version 1 one transition. A
// field that is not known holds none.
type entry struct {
	field          protowire.Number
	datasetVersion uint64
	count          int
	// raw is the field as it is stored, with its tag, carried into every later
	// encoding unchanged.
	raw []byte
}

// newVersion makes the entry of a commit in the form of index version 0.
func newVersion(datasetVersion uint64, ts []*Transition) entry {
	return entry{
		field: contentVersions, datasetVersion: datasetVersion, count: len(ts),
		raw: appendBytes(nil, contentVersions, appendVersion(nil, datasetVersion, ts)),
	}
}

// newTagged makes the entry of a transition in the form of index version 1.
func newTagged(t *Transition) entry {
	return entry{field: contentTransitions, count: 1, raw: appendBytes(nil, contentTransitions, appendTagged(nil, t))}
}

func newHistory(indexVersion int32, ts []*Transition, entries []entry) (*History, error) {
	l, err := link(ts)
	if err != nil {
		return nil, err
	}
	h := &History{indexVersion: indexVersion, transitions: ts, entries: entries, lineage: l}
	var ids []table.FragmentID
	for n, t := range ts {
		for i, s := range t.sources {
			ids = append(ids, s.ID)
			x := hop{physical: s.PhysicalRows, to: t.to, transition: n}
			switch t.mapping {
			case OrderedCompaction:
				x.part, x.before = t.parts[i], t.before[i]
			case StablePartition:
				x.rows, x.before = noLabels{t.partition}, t.before[i] // see WithPartitions
			default:
				// What it says of rows is not to be trusted either.
				x.rows, x.physical = notFollowed{t}, 1<<32
			}
			h.hops = append(h.hops, x)
		}
	}
	h.hopOf = newFragmentIndex(ids)
	h.markLast()
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

// Descendants returns what transition i and the ones after it made of its sources, in
// ascending order, fragments that are gone included and the sources left out.
func (h *History) Descendants(i int) []table.FragmentID {
	sources := h.sourceSet(i)
	var ids, out []table.FragmentID
	for _, s := range h.transitions[i].sources {
		ids = append(ids, s.ID)
	}
	for f := range h.descendants(ids...) {
		if _, ok := sources[f]; !ok {
			out = append(out, f)
		}
	}
	slices.Sort(out)
	return out
}

// descendants yields the fragments and everything that rewrites made of them, each
// once.
func (h *History) descendants(ids ...table.FragmentID) iter.Seq[table.FragmentID] {
	return func(yield func(table.FragmentID) bool) {
		for _, f := range ids {
			if !yield(f) {
				return
			}
		}
		made := make([]bool, len(h.transitions))
		h.reach(ids, made, h.lineage.consumers, (*Transition).Destinations)
		seen := make(fragmentSet, len(ids))
		for _, f := range ids {
			seen[f] = struct{}{}
		}
		for i, t := range h.transitions {
			if !made[i] {
				continue
			}
			for _, d := range t.destinations {
				if _, ok := seen[d.ID]; !ok && !yield(d.ID) {
					return
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
// last is a limit of index version 0, whose older readers pair survivors with new
// rows by ascending address. It fails with table.ErrUnsupported also if a
// transition has to do with a fragment of one that is not understood; others may
// be added beside it.
//
// The stored form is that of index version 0 as long as the history has it, see
// [History.IndexVersion]. A stable partition has no such form: with one, and ever
// after, everything that is added is in the form of version 1, which tables have to
// announce and older readers refuse. What is there already stays as it is.
func (h *History) Append(version uint64, ts ...*Transition) (*History, error) {
	if len(ts) == 0 {
		return h, nil
	}
	indexVersion := h.indexVersion
	if slices.ContainsFunc(ts, func(t *Transition) bool { return t.mapping == StablePartition }) {
		indexVersion = 1
	}
	if newest := h.newestVersion(); indexVersion == 0 && version < newest {
		return nil, &TransitionError{Index: len(h.transitions), DatasetVersion: version, Rule: RuleOrder,
			err: fmt.Errorf("the newest entry is of version %d", newest)}
	}
	added := make([]*Transition, len(ts))
	var tagged []entry
	for i, t := range ts {
		if err := h.checkAppend(t, ts[:i], indexVersion); err != nil {
			return nil, at(err, len(h.transitions)+i, version)
		}
		dated := *t
		dated.datasetVersion = version
		if indexVersion > 0 {
			dated.datasetVersion = 0 // which has no place in the tagged form
			tagged = append(tagged, newTagged(&dated))
		}
		added[i] = &dated
	}
	entries := tagged
	if indexVersion == 0 {
		entries = []entry{newVersion(version, added)}
	}
	out, err := newHistory(indexVersion, slices.Concat(h.transitions, added), slices.Concat(h.entries, entries))
	if err != nil {
		return nil, err
	}
	return out.withPartitionsOf(h).inCacheOf(h), nil
}

// newestVersion is the version of the last entry that has one.
func (h *History) newestVersion() uint64 {
	for _, e := range slices.Backward(h.entries) {
		if e.field == contentVersions {
			return e.datasetVersion
		}
	}
	return 0
}

// Upgrade returns the history in the given index version, in which transitions will
// be appended from now on; those that are there keep their bytes. There is no way
// back, so a lower version than the history's changes nothing.
func (h *History) Upgrade(indexVersion int32) (*History, error) {
	switch {
	case indexVersion > MaxIndexVersion:
		return nil, table.Unsupportedf("fri: index version %d; %d is the newest that is known", indexVersion, MaxIndexVersion)
	case indexVersion <= h.indexVersion:
		return h, nil
	}
	out := *h
	out.indexVersion = indexVersion
	return &out, nil
}

// Complete says whether everything that is stored was understood and is whole. If it
// is not, rows of the fragments in question are [Untranslatable], and the history may
// be added to and carried; nothing may be taken out of one that is not understood.
func (h *History) Complete() bool { return h.CheckComplete() == nil }

// CheckComplete says what was not understood (table.ErrUnsupported) or is damaged
// (table.ErrCorrupt), a [*TransitionError] if it was a transition. Whatever needs to
// know what each transition did calls it first.
func (h *History) CheckComplete() error {
	for i, t := range h.transitions {
		if !t.Followed() {
			return at(t.obstacle(), i, t.datasetVersion)
		}
	}
	return h.checkUnderstood()
}

// checkUnderstood is CheckComplete but for damage, of which it is known at least
// which fragments it concerns.
func (h *History) checkUnderstood() error {
	for i, t := range h.transitions {
		if t.mapping == UnknownMapping {
			return at(unknownError(t), i, t.datasetVersion)
		}
	}
	for _, e := range h.entries {
		if e.field != contentVersions && e.field != contentTransitions {
			return table.Unsupportedf("fri: unknown field %d of the content", e.field)
		}
	}
	return nil
}

func (h *History) checkAppend(t *Transition, siblings []*Transition, indexVersion int32) error {
	if t.mapping == UnknownMapping {
		return unknownError(t)
	}
	if t.damage != nil {
		return t.damage
	}
	for _, d := range slices.Concat(t.sources, t.destinations) {
		for _, by := range []map[table.FragmentID]edge{h.lineage.producers, h.lineage.consumers} {
			if e, ok := by[d.ID]; ok && h.transitions[e.transition].mapping == UnknownMapping {
				return violation(table.ErrUnsupported, RuleComplete, "fragment %d is one of transition %d, which is not understood: unknown %s",
					d.ID, e.transition, h.transitions[e.transition].unknown)
			}
		}
	}
	if indexVersion == 0 && !slices.IsSortedFunc(t.sources, func(a, b Digest) int { return int(int64(a.ID) - int64(b.ID)) }) {
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
