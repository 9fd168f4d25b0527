package fri

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// MappingKind says how a transition maps old rows to new ones.
type MappingKind int

// The mappings.
const (
	// OrderedCompaction: the survivors, taken in the order of the sources and
	// within a source by ascending offset, are the rows of the destinations laid
	// end to end.
	OrderedCompaction MappingKind = iota
	// StablePartition: each survivor has a label, the position of its
	// destination; those of one label, taken in the same order, are the rows of
	// that destination. The labels lie in a file of their own.
	StablePartition
	// UnknownMapping: stored by a newer release, which this one carries along and
	// does not follow. Of its fragments only the ids are to be trusted.
	UnknownMapping
	// DamagedMapping: the transition breaks a rule, see [Recover]. It is carried as it
	// is; of its fragments only the ids of the sources are to be trusted.
	DamagedMapping
)

// String names the kind.
func (k MappingKind) String() string {
	switch k {
	case OrderedCompaction:
		return "ordered_compaction"
	case StablePartition:
		return "stable_partition"
	case UnknownMapping:
		return "unknown"
	case DamagedMapping:
		return "damaged"
	default:
		return fmt.Sprintf("mapping %d", int(k))
	}
}

// Transition is one rewrite of fragments into others: a change of address for
// every row that survived it. It is immutable and safe for concurrent use.
type Transition struct {
	datasetVersion uint64
	mapping        MappingKind
	sources        []Digest
	destinations   []Digest
	to             *layout
	// Of an ordered compaction. parts and before are parallel to sources: which
	// rows of the source survived, and how many did in the sources before it.
	// Both follow from what the sources were, so transitions that differ only in
	// their destinations' ids share them. treemap is the survivor bitmap as
	// stored.
	parts   []*part
	before  []uint64
	treemap []byte
	// Of a stable partition: where its labels are. before counts physical rows
	// there, for every one has a label.
	partition PartitionRef
	// Of an unknown mapping: the message as stored, and what in it is unknown.
	raw     []byte
	unknown string
	// Of a damaged one: the message as stored, and what is wrong with it.
	damage *TransitionError
	// encoded is the size of the stored message, digests included.
	encoded int
}

// DatasetVersion is the version recorded with the transition: of the table as the
// writer held it when it committed, or of the commit itself. The rewrite was
// committed at this version or later, never earlier. It is 0 if none is: not in a
// history yet, or in one as a tagged transition (index version 1), whose form has
// no place for it.
func (t *Transition) DatasetVersion() uint64 { return t.datasetVersion }

// Sources returns the fragments that were rewritten, in the order in which their
// rows were read. The caller does not modify it.
func (t *Transition) Sources() []Digest { return t.sources }

// Destinations returns the fragments that were written, in the order in which
// their rows were. The caller does not modify it.
func (t *Transition) Destinations() []Digest { return t.destinations }

// Mapping returns how rows were mapped.
func (t *Transition) Mapping() MappingKind { return t.mapping }

// Partition says where the labels of a stable partition are, and whether the
// transition is one.
func (t *Transition) Partition() (ref PartitionRef, ok bool) {
	return t.partition, t.mapping == StablePartition
}

// MovedRows returns the number of rows that survived; 0 if the mapping is unknown
// or damaged.
func (t *Transition) MovedRows() uint64 { return t.to.rows }

// DroppedRows returns the number of deleted rows that the rewrite left behind.
func (t *Transition) DroppedRows() uint64 {
	var n uint64
	if !t.Followed() {
		return 0
	}
	for _, s := range t.sources {
		n += s.DeletedRows
	}
	return n
}

// EncodedSize returns the bytes that the transition takes in a stored history.
func (t *Transition) EncodedSize() int { return t.encoded }

// String summarises the transition: sources -> destinations.
func (t *Transition) String() string {
	list := func(ds []Digest) string {
		if len(ds) == 0 {
			return "nothing"
		}
		s := make([]string, len(ds))
		for i, d := range ds {
			s[i] = d.String()
		}
		return strings.Join(s, " ")
	}
	return list(t.sources) + " -> " + list(t.destinations)
}

// WithDestinations returns the same transition with other destination ids, which
// are given in the order of the destinations. It is what a commit that lost a race
// needs, and it costs nothing: neither the bitmap nor anything decoded from it
// depends on the ids.
func (t *Transition) WithDestinations(ids []table.FragmentID) (*Transition, error) {
	if !t.Followed() {
		return nil, t.obstacle()
	}
	if len(ids) != len(t.destinations) {
		return nil, fmt.Errorf("fri: new transition: %d ids for %d destinations", len(ids), len(t.destinations))
	}
	out := *t
	out.datasetVersion = 0
	out.destinations = slices.Clone(t.destinations)
	for i := range out.destinations {
		out.destinations[i].ID = ids[i]
	}
	if err := checkDigests(out.sources, out.destinations); err != nil {
		return nil, err
	}
	out.to = newLayout(out.destinations)
	out.encoded = out.size()
	return &out, nil
}

// newTransition checks everything that one transition must satisfy by itself, in
// an order that never reads what was not checked.
func newTransition(sources, destinations []Digest, treemap []byte) (*Transition, error) {
	if err := checkDigests(sources, destinations); err != nil {
		return nil, err
	}
	t := &Transition{sources: sources, destinations: destinations, treemap: treemap}
	var live uint64
	for _, s := range sources {
		t.before = append(t.before, live)
		live += s.LiveRows()
	}
	t.to = newLayout(destinations)
	if live != t.to.rows {
		return nil, broken(RuleRowsMatch, "%d rows survive and %d arrive", live, t.to.rows)
	}
	var err error
	if t.parts, err = splitTreemap(treemap, sources); err != nil {
		return nil, err
	}
	t.encoded = t.size()
	return t, nil
}

// newPartition checks a stable partition as far as it can be without its labels.
func newPartition(sources, destinations []Digest, ref PartitionRef) (*Transition, error) {
	if err := checkDigests(sources, destinations); err != nil {
		return nil, err
	}
	if n := len(destinations); n == 0 || n > MaxPartitionDestinations {
		return nil, broken(RuleDestinationCount, "%d destinations", n)
	}
	if err := ref.check(); err != nil {
		return nil, err
	}
	t := &Transition{mapping: StablePartition, sources: sources, destinations: destinations, partition: ref}
	var physical, live uint64
	for _, s := range sources {
		t.before = append(t.before, physical)
		physical += s.PhysicalRows
		live += s.LiveRows()
	}
	t.to = newLayout(destinations)
	if live != t.to.rows {
		return nil, broken(RuleRowsMatch, "%d rows survive and %d arrive", live, t.to.rows)
	}
	t.encoded = t.size()
	return t, nil
}

// newUnknown keeps a transition that is not understood. Nothing is demanded of it
// but that it says which fragments it rewrote: what it says of them is a newer
// release's business.
func newUnknown(m *message) (*Transition, error) {
	t := &Transition{mapping: UnknownMapping, sources: m.sources, destinations: m.destinations, raw: m.raw, unknown: m.unknown}
	if len(t.sources) == 0 {
		return nil, violation(table.ErrUnsupported, RuleHasSources, "unknown %s, and no source fragments: which rows it moved cannot be told", t.unknown)
	}
	t.to = &layout{}
	t.encoded = len(m.raw)
	return t, nil
}

// unknownError says why nothing can be done with a transition that is not
// understood.
func unknownError(t *Transition) *TransitionError {
	return violation(table.ErrUnsupported, RuleComplete, "unknown %s", t.unknown)
}

// size returns the bytes of the stored form: that of index version 0 where it has
// one, which the other exceeds by a few bytes.
func (t *Transition) size() int {
	if t.mapping == OrderedCompaction {
		return groupSize(t)
	}
	return len(appendTagged(nil, t))
}

func checkDigests(sources, destinations []Digest) error {
	if len(sources) == 0 {
		return broken(RuleHasSources, "no source fragments")
	}
	seen := make(map[table.FragmentID]struct{}, len(sources)+len(destinations))
	for i, d := range slices.Concat(sources, destinations) {
		if err := d.check(); err != nil {
			return err
		}
		if i < len(sources) {
			// A source without rows has nothing to translate, and older
			// readers never come back from one.
			if d.PhysicalRows == 0 {
				return broken(RulePhysicalRows, "source fragment %d has no rows", d.ID)
			}
		} else if d.DeletedRows != 0 {
			return broken(RuleDestinationsAreWhole, "destination fragment %d has %d deleted rows", d.ID, d.DeletedRows)
		}
		if _, ok := seen[d.ID]; ok {
			return broken(RuleDistinctFragments, "fragment %d occurs twice", d.ID)
		}
		seen[d.ID] = struct{}{}
	}
	return nil
}
