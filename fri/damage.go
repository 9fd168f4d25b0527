package fri

import (
	"errors"
	"slices"

	"github.com/rehome-db/rehome/table"
)

// A damaged transition says nothing about the others. [Decode] refuses any content that
// breaks a rule, for callers that need all of it; [Recover] sets the damaged transitions
// aside, for callers that go on with the rest.
//
// Old Lance releases wrote such transitions when they compacted a table with stable
// row ids: without survivors, though the digests have some, and with destinations
// that have no ids yet (all are 0).

// Recover is [Decode] of a content in which single transitions may be damaged. A
// transition that breaks a rule by itself, and still says which fragments it rewrote,
// is kept as bytes with a [DamagedMapping]: rows of its sources are
// [Untranslatable], and what it says of destinations is not believed. Damage that
// leaves the extent of the content or of a message in doubt, and transitions that
// contradict each other, are errors as they are of Decode.
//
// Like Decode it reads no bitmap; see [History.SetAsideDamage].
func Recover(content []byte, indexVersion int32) (*History, error) {
	return decode(content, decoder{indexVersion: indexVersion, recovers: true})
}

// SetAsideDamage reads every bitmap, as [History.Validate] does, and returns the
// history with the transitions that have a damaged one set aside like those of
// [Recover]; the history itself if there are none.
func (h *History) SetAsideDamage() (*History, error) {
	ts := h.transitions
	for i, t := range h.transitions {
		if t.mapping == DamagedMapping {
			continue
		}
		var damage *TransitionError
		if err := t.validate(); err == nil {
			continue
		} else if !errors.As(err, &damage) {
			return nil, err
		}
		if len(ts) > 0 && &ts[0] == &h.transitions[0] {
			ts = append([]*Transition(nil), h.transitions...)
		}
		ts[i] = &Transition{
			datasetVersion: t.datasetVersion, mapping: DamagedMapping, sources: t.sources, destinations: t.destinations,
			to: &layout{}, raw: t.stored(h.taggedAt(i)), damage: damage, encoded: t.encoded,
		}
	}
	if len(ts) == 0 || &ts[0] == &h.transitions[0] {
		return h, nil
	}
	out, err := newHistory(h.indexVersion, ts, h.entries)
	if err != nil {
		return nil, err
	}
	return out.withPartitionsOf(h).inCacheOf(h), nil
}

// Damaged returns the positions of the transitions that were set aside, ascending.
func (h *History) Damaged() []int {
	var out []int
	for i, t := range h.transitions {
		if t.mapping == DamagedMapping {
			out = append(out, i)
		}
	}
	return out
}

// Damage says what is wrong with a transition that was set aside: a
// [*TransitionError] that wraps table.ErrCorrupt. It is nil for any other.
func (h *History) Damage(i int) error {
	t := h.transitions[i]
	if t.damage == nil {
		return nil
	}
	return at(t.damage, i, t.datasetVersion)
}

// newDamaged keeps a transition that breaks a rule. Its sources are believed, so that
// their rows are not taken for rows that nothing touched.
func newDamaged(m *message, damage *TransitionError) *Transition {
	return &Transition{
		mapping: DamagedMapping, sources: m.sources, destinations: m.destinations, to: &layout{},
		raw: m.raw, damage: damage, encoded: len(m.raw),
	}
}

// stored is the message of a transition in either form.
func (t *Transition) stored(tagged bool) []byte {
	if tagged {
		return appendTagged(nil, t)
	}
	return appendGroup(nil, t)
}

// PartOf says whether every transition of the history is one of the other's, to the
// byte: nothing was added to it since, and at most something was dropped.
func (h *History) PartOf(other *History) bool {
	had := make(map[string]bool, other.Len())
	for _, t := range other.transitions {
		had[string(t.stored(true))] = true
	}
	return !slices.ContainsFunc(h.transitions, func(t *Transition) bool { return !had[string(t.stored(true))] })
}

// taggedAt says whether transition i is stored in the form of index version 1.
func (h *History) taggedAt(i int) bool {
	for _, e := range h.entries {
		if i < e.count {
			return e.field == contentTransitions
		}
		i -= e.count
	}
	return false
}

// Followed says whether rows can be followed through the transition: it is
// understood, and not damaged.
func (t *Transition) Followed() bool {
	return t.mapping == OrderedCompaction || t.mapping == StablePartition
}

// notFollowed is the rowMap of a transition through which no row can be followed.
type notFollowed struct{ t *Transition }

func (m notFollowed) row(uint64) (table.RowAddr, bool, uint64, error) {
	return 0, false, 1, m.t.obstacle()
}

// obstacle says why nothing can be done with a transition that is not followed.
func (t *Transition) obstacle() *TransitionError {
	if t.damage != nil {
		return t.damage
	}
	return unknownError(t)
}
