package remap

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/rehome-db/rehome/table"
)

// AddrRange is rows of one fragment that lie one after the other.
type AddrRange struct {
	From table.RowAddr
	// Len is the number of rows, at least 1.
	Len uint64
}

// Missing yields the addresses of the live rows of the current version
// ([Options.Current], which is required) that an index with the given coverage does not
// hold, as ranges in the order of a scan: what its owner has to read and add. covered
// are the fragments that the index held all rows of when it was last brought up to date.
//
// They are the rows of fragments that the coverage does not come to (see
// [Remapper.Coverage]), without those that a rewrite mixed into such a fragment from a
// covered one: the index holds these, under addresses that are translated. Reading the
// deletion vectors of fragments that are not covered is all that it reads of the table.
//
// The last pair has the error, if there is one: of d, of ctx, or an
// [*UntranslatableError] if the rows of a covered fragment cannot be followed to where
// they were mixed with others. A covered fragment that is gone without a record is no
// error: its rows, if there are any, are in fragments that are missing as a whole.
func (r *Remapper) Missing(ctx context.Context, d table.DeletionStore, covered []table.FragmentID) iter.Seq2[AddrRange, error] {
	return func(yield func(AddrRange, error) bool) {
		if err := r.missing(ctx, d, covered, func(a AddrRange) bool { return yield(a, nil) }); err != nil {
			yield(AddrRange{}, err)
		}
	}
}

func (r *Remapper) missing(ctx context.Context, d table.DeletionStore, covered []table.FragmentID, yield func(AddrRange) bool) error {
	s := r.opts.Current
	if s == nil {
		return errors.New("remap: what is missing can only be told of a version: Options.Current is not set")
	}
	c, err := r.Coverage(covered)
	if err != nil {
		return err
	}
	whole := make(map[table.FragmentID]bool, len(c.Fragments))
	for _, id := range c.Fragments {
		whole[id] = true
	}
	held := collectors{of: make(map[table.FragmentID]*collector)}
	if len(c.Straddles) > 0 {
		if err := r.mixedIn(ctx, covered, whole, &held); err != nil {
			return err
		}
	}
	for _, f := range s.Fragments {
		if whole[f.ID] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		deleted, err := d.ReadDeletions(ctx, s, f)
		if err != nil {
			return fmt.Errorf("remap: table %s version %d fragment %d: %w", s.Table, s.Version, f.ID, err)
		}
		have := held.of[f.ID]
		if have == nil {
			have = &collector{}
		}
		for o := range deleted.All() {
			have.add(o, o)
		}
		next := uint64(0)
		for start, end := range have.all() {
			if n := min(uint64(start), f.PhysicalRows); n > next && !yield(AddrRange{table.NewRowAddr(f.ID, uint32(next)), n - next}) {
				return nil
			}
			next = max(next, end)
		}
		if next < f.PhysicalRows && !yield(AddrRange{table.NewRowAddr(f.ID, uint32(next)), f.PhysicalRows - next}) {
			return nil
		}
	}
	return nil
}

// mixedIn collects where rows of covered fragments are in fragments that are not
// covered.
func (r *Remapper) mixedIn(ctx context.Context, covered []table.FragmentID, whole map[table.FragmentID]bool, held *collectors) error {
	for _, id := range covered {
		if err := ctx.Err(); err != nil {
			return err
		}
		for run, err := range r.translator.Runs(id) {
			if err != nil {
				return &UntranslatableError{Fragments: []table.FragmentID{id}, Cause: err}
			}
			if !run.Deleted && !whole[run.To.Fragment()] {
				held.add(run.To, run.Len)
			}
		}
	}
	return nil
}

// all yields what was collected, ascending and apart.
func (k *collector) all() iter.Seq2[uint32, uint64] {
	if k.folded == nil {
		return k.ranges()
	}
	k.fold()
	return k.folded.Ranges()
}
