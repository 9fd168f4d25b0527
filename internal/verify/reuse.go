package verify

import (
	"context"
	"fmt"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

const reuseIndex = "fragment reuse index"

// reuse checks the fragment reuse index by itself and against the fragments.
func (r *run) reuse(ctx context.Context) error {
	s := r.snapshot
	if s.Reuse == nil {
		return nil
	}
	if s.StableRowIDs {
		r.problemf("fri", reuseIndex, "the table has stable row ids, which readers would translate as if they were addresses")
	}
	content, err := r.engine.ReuseIndex(ctx, s)
	if err != nil {
		if stop(err) {
			return err
		}
		r.problem("fri", reuseIndex, err)
		return nil
	}
	// Decoding checks that the transitions are a history, and leaves the bitmaps of
	// survivors for later.
	h, err := fri.Recover(content, s.Reuse.IndexVersion)
	if err == nil {
		h, err = h.SetAsideDamage()
	}
	if err != nil {
		r.problem("fri", reuseIndex, err)
		return nil
	}
	for i, t := range h.All() {
		r.report.Checked[Transitions]++
		where := fmt.Sprintf("%s transition %d", reuseIndex, i)
		if damage := h.Damage(i); damage != nil {
			r.problem("fri", where, damage)
			continue // what it says of fragments is not believed
		}
		for _, d := range t.Sources() {
			if _, ok := s.Fragment(d.ID); ok {
				r.problemf("fri", where, "fragment %d is said to be rewritten and is in the table", d.ID)
			}
		}
		for _, d := range t.Destinations() {
			switch f, ok := s.Fragment(d.ID); {
			case !ok:
				// Rewritten again, or all its rows were deleted since.
			case f.PhysicalRows != d.PhysicalRows:
				r.problemf("fri", where, "fragment %d is said to have %d rows and has %d", d.ID, d.PhysicalRows, f.PhysicalRows)
			}
			if d.ID >= s.NextFragmentID {
				r.problemf("fri", where, "fragment %d is said to be written, and no fragment had an id from %d up yet", d.ID, s.NextFragmentID)
			}
		}
	}
	r.translations(h)
	return nil
}

// translations follows the first and the last row of every source: decoding has
// checked the counts, and this checks that what they lead to can be there.
func (r *run) translations(h *fri.History) {
	for i, t := range h.All() {
		if !t.Followed() {
			continue
		}
		for _, d := range t.Sources() {
			for _, offset := range []uint64{0, d.PhysicalRows - 1} {
				old := table.NewRowAddr(d.ID, uint32(offset))
				got := h.Translate(old)
				if got.State != fri.Moved {
					continue
				}
				f, ok := r.snapshot.Fragment(got.Addr.Fragment())
				if ok && uint64(got.Addr.Offset()) >= f.PhysicalRows {
					r.problemf("fri", fmt.Sprintf("%s transition %d", reuseIndex, i),
						"address %s leads to %s, and fragment %d has %d rows", old, got.Addr, f.ID, f.PhysicalRows)
				}
			}
		}
	}
}
