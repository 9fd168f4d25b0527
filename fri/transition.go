package fri

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// MappingKind says how a transition maps old rows to new ones.
type MappingKind int

// OrderedCompaction: the survivors, taken in the order of the sources and within
// a source by ascending offset, are the rows of the destinations laid end to end.
const OrderedCompaction MappingKind = 0

// String names the kind.
func (k MappingKind) String() string {
	if k == OrderedCompaction {
		return "ordered_compaction"
	}
	return fmt.Sprintf("mapping %d", int(k))
}

// Transition is one rewrite of fragments into others: a change of address for
// every row that survived it. It is immutable and safe for concurrent use.
type Transition struct {
	datasetVersion uint64
	sources        []Digest
	destinations   []Digest
	// parts and before are parallel to sources: which rows of the source
	// survived, and how many did in the sources before it. Both follow from what
	// the sources were, so transitions that differ only in their destinations'
	// ids share them.
	parts  []*part
	before []uint64
	to     *layout
	// treemap is the survivor bitmap as stored.
	treemap []byte
	// encoded is the size of the stored message, digests included.
	encoded int
}

// DatasetVersion is the version recorded with the transition: of the table as the
// writer held it when it committed, or of the commit itself. The rewrite was
// committed at this version or later, never earlier; 0 if not in a history yet.
func (t *Transition) DatasetVersion() uint64 { return t.datasetVersion }

// Sources returns the fragments that were rewritten, in the order in which their
// rows were read. The caller does not modify it.
func (t *Transition) Sources() []Digest { return t.sources }

// Destinations returns the fragments that were written, in the order in which
// their rows were. The caller does not modify it.
func (t *Transition) Destinations() []Digest { return t.destinations }

// Mapping returns how rows were mapped.
func (t *Transition) Mapping() MappingKind { return OrderedCompaction }

// MovedRows returns the number of rows that survived.
func (t *Transition) MovedRows() uint64 { return t.to.rows }

// DroppedRows returns the number of deleted rows that the rewrite left behind.
func (t *Transition) DroppedRows() uint64 {
	var n uint64
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
	out.encoded = len(appendGroup(nil, &out))
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
	t.encoded = len(appendGroup(nil, t))
	return t, nil
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

// layout lays the destinations end to end.
type layout struct {
	rows   uint64
	starts []uint64 // of each destination that has rows, ascending
	ids    []table.FragmentID
}

func newLayout(destinations []Digest) *layout {
	l := &layout{}
	for _, d := range destinations {
		// A destination without rows is never the answer; with it left out,
		// starts is strictly ascending.
		if d.PhysicalRows > 0 {
			l.starts = append(l.starts, l.rows)
			l.ids = append(l.ids, d.ID)
			l.rows += d.PhysicalRows
		}
	}
	return l
}

// locate returns the address of row k, which is below l.rows.
func (l *layout) locate(k uint64) table.RowAddr {
	i := 0
	if len(l.starts) > 1 {
		i = lastNotAbove(l.starts, k)
	}
	return table.NewRowAddr(l.ids[i], uint32(k-l.starts[i]))
}
