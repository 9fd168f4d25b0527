package fri

import (
	"context"
	"fmt"
	"slices"

	"github.com/rehome-db/rehome/table"
)

// PartitionBuilder makes the labels of a stable partition from what a rewrite read
// and where it put each row. Like [Builder] it takes the sources in the order in
// which the rewrite read them, with the deletions that it read. It is not safe for
// concurrent use.
//
// The labels are true only if each destination got its rows in the order in which
// they were read, and they were not sorted afterwards.
type PartitionBuilder struct {
	sources []Digest
	counts  countsBuilder
	labels  []uint16
	live    []uint64
	dead    bool // some row is
}

// maxWrittenDestinations is one less than there are labels: some readers take no
// more.
const maxWrittenDestinations = MaxPartitionDestinations - 1

// NewPartitionBuilder returns a builder of a partition into the given number of
// destinations, 1 to 65,535.
func NewPartitionBuilder(destinations int) (*PartitionBuilder, error) {
	if destinations < 1 || destinations > maxWrittenDestinations {
		return nil, broken(RuleDestinationCount, "%d destinations", destinations)
	}
	return &PartitionBuilder{counts: newCountsBuilder(destinations, BlockRows)}, nil
}

// AddSource adds a source fragment: the offsets that the rewrite skipped, nil for
// none, and the labels of the other rows in their order.
func (b *PartitionBuilder) AddSource(d Digest, deleted table.OffsetSet, labels []uint16) error {
	if err := d.check(); err != nil {
		return err
	}
	if n := cardinality(deleted); n != d.DeletedRows {
		return broken(RuleSurvivors, "fragment %d has %d deleted rows, its digest says %d", d.ID, n, d.DeletedRows)
	}
	if n := uint64(len(labels)); n != d.LiveRows() {
		return broken(RuleSurvivors, "%d labels for the %d live rows of fragment %d", n, d.LiveRows(), d.ID)
	}
	var live uint64
	var bad, err error
	at := uint64(0) // physical rows done
	for start, end := range liveRanges(d, deleted, &live, &bad) {
		for ; at < uint64(start) && err == nil; at++ {
			err = b.row(0, false)
		}
		for ; at < end && err == nil; at++ {
			if len(labels) == 0 {
				return broken(RuleOwnAddresses, "deletions of fragment %d: the set yields fewer rows than it counts", d.ID)
			}
			err = b.row(labels[0], true)
			labels = labels[1:]
		}
	}
	for ; at < d.PhysicalRows && err == nil; at++ {
		err = b.row(0, false)
	}
	if err != nil {
		return err
	}
	if bad == nil && live != d.LiveRows() {
		bad = fmt.Errorf("the set yields %d rows, not the %d it counts", d.PhysicalRows-live, d.DeletedRows)
	}
	if bad != nil {
		return broken(RuleOwnAddresses, "deletions of fragment %d: %w", d.ID, bad)
	}
	b.sources = append(b.sources, d)
	return nil
}

func (b *PartitionBuilder) row(label uint16, live bool) error {
	n := len(b.labels)
	if n%wordBits == 0 {
		b.live = append(b.live, 0)
	}
	if live {
		b.live[n/wordBits] |= 1 << (n % wordBits)
	} else {
		b.dead = true
	}
	b.labels = append(b.labels, label)
	return b.counts.row(label, live)
}

// Build returns the labels. The builder can be used no more.
func (b *PartitionBuilder) Build() *Partition {
	p := &Partition{sources: b.sources, counts: b.counts.finish(), labels: b.labels}
	if b.dead {
		p.live = b.live
	}
	return p
}

// Partition is the labels of a stable partition in memory, 2 bytes a physical row:
// what an engine stores in a label file, after which [Partition.Transition] makes the
// transition that refers to it. It is immutable and implements [PartitionMap].
type Partition struct {
	sources []Digest
	counts  *Counts
	labels  []uint16
	live    []uint64 // nil if all rows are
}

// Counts returns the matrix of counts.
func (p *Partition) Counts(context.Context) (*Counts, error) { return p.counts, nil }

// Labels returns the labels of the rows [from, to).
func (p *Partition) Labels(_ context.Context, from, to uint64) (LabelBlock, error) {
	if from > to || to > p.counts.Rows() {
		return LabelBlock{}, fmt.Errorf("fri: labels of rows %d to %d, and there are %d", from, to, p.counts.Rows())
	}
	b := LabelBlock{Labels: slices.Clone(p.labels[from:to])}
	switch {
	case p.live == nil:
	case from%wordBits == 0: // as blocks do
		b.Live = slices.Clone(p.live[from/wordBits : (to+wordBits-1)/wordBits])
	default:
		b.Live = make([]uint64, (to-from+wordBits-1)/wordBits)
		for i := range to - from {
			b.Live[i/wordBits] |= p.live[(from+i)/wordBits] >> ((from + i) % wordBits) & 1 << (i % wordBits)
		}
	}
	return b, nil
}

// Transition returns the transition to destinations with the given ids, in the order
// of the labels, whose label file is ref. The ids may be provisional, see
// [Transition.WithDestinations].
func (p *Partition) Transition(ids []table.FragmentID, ref PartitionRef) (*Transition, error) {
	if len(ids) != p.counts.Destinations() {
		return nil, fmt.Errorf("fri: new transition: %d ids for %d destinations", len(ids), p.counts.Destinations())
	}
	destinations := make([]Digest, len(ids))
	for i, id := range ids {
		destinations[i] = Digest{ID: id, PhysicalRows: p.counts.Total(i)}
	}
	return newPartition(p.sources, destinations, ref)
}
