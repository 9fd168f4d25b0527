package fri

import (
	"fmt"
	"iter"

	"github.com/rehome-db/rehome/internal/roaringbytes"
	"github.com/rehome-db/rehome/table"
)

// Builder makes a transition from what a rewrite read and wrote. The zero value
// is ready. It is not safe for concurrent use.
//
// Sources are added in the order in which the rewrite read them, each with the
// deletions that the rewrite read, not those of today: what was deleted since
// belongs into the deletion vectors of the destinations.
type Builder struct {
	sources []Digest
	bitmaps [][]byte
}

// AddSource adds a source fragment. deleted are the offsets that the rewrite
// skipped, nil for none; d.DeletedRows must be their number.
func (b *Builder) AddSource(d Digest, deleted table.OffsetSet) error {
	if err := d.check(); err != nil {
		return err
	}
	if n := cardinality(deleted); n != d.DeletedRows {
		return broken(RuleSurvivors, "fragment %d has %d deleted rows, its digest says %d", d.ID, n, d.DeletedRows)
	}
	var bitmap []byte
	if d.LiveRows() > 0 {
		var bad error
		var live uint64
		bitmap = roaringbytes.Append(nil, liveRanges(d, deleted, &live, &bad), roaringbytes.WithRuns)
		if bad == nil && live != d.LiveRows() {
			bad = fmt.Errorf("the set yields %d rows, not the %d it counts", d.PhysicalRows-live, d.DeletedRows)
		}
		if bad != nil {
			return broken(RuleOwnAddresses, "deletions of fragment %d: %w", d.ID, bad)
		}
	}
	b.sources = append(b.sources, d)
	b.bitmaps = append(b.bitmaps, bitmap)
	return nil
}

// Build returns the transition from the sources added to the given destinations,
// in the order in which they were written. Their rows must be as many as the
// sources' live rows; the ids may be provisional, see
// [Transition.WithDestinations]. The builder can be used no more.
func (b *Builder) Build(destinations []Digest) (*Transition, error) {
	return newTransition(b.sources, append([]Digest(nil), destinations...), joinTreemap(b.sources, b.bitmaps))
}

func cardinality(s table.OffsetSet) uint64 {
	if s == nil {
		return 0
	}
	return s.Cardinality()
}

// liveRanges yields the gaps between the deleted rows and counts what is in them.
// It does not trust the set, which is a caller's.
func liveRanges(d Digest, deleted table.OffsetSet, live *uint64, bad *error) iter.Seq2[uint32, uint64] {
	return func(yield func(uint32, uint64) bool) {
		next := uint64(0) // the first row not accounted for
		if deleted != nil {
			for o := range deleted.All() {
				at := uint64(o)
				if at < next || at >= d.PhysicalRows {
					*bad = fmt.Errorf("row %d is out of order or not one of %d rows", at, d.PhysicalRows)
					return
				}
				if at > next {
					*live += at - next
					if !yield(uint32(next), at) {
						return
					}
				}
				next = at + 1
			}
		}
		if next < d.PhysicalRows {
			*live += d.PhysicalRows - next
			yield(uint32(next), d.PhysicalRows)
		}
	}
}
