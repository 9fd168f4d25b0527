package rebase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// This file follows rows through a rewrite that somebody committed. It takes the change
// of address from the first of these sources that has the right one:
//
//	given      a change of address that the caller brought, or the memory holds
//	recorded   the transition in the fragment reuse index of the version that is
//	           being replaced, or of the one that the rewrite made
//	identity   stable row ids, where the table has them
//	derived    from the rewrite itself, by rank, and proven: see derive.go
//
// The right one has the source and destination fragments that the transaction names. A
// fragment is rewritten once in its life, but after a restore another rewrite of the
// same fragments may be on record.

// overRewrite follows the change's rows through a rewrite.
func (r *rebasing) overRewrite(ctx context.Context, base *table.Snapshot, tx table.Transaction, op table.Rewrite) error {
	for _, g := range op.Groups {
		rows := RowSet{}
		var old []table.Fragment
		for _, f := range g.Old {
			if r.rows[f.ID].IsEmpty() {
				continue
			}
			old = append(old, f)
			if err := r.settleBefore(ctx, base, f.ID); err != nil {
				return err
			}
			rows.Add(f.ID, r.rows[f.ID])
		}
		if rows.IsEmpty() {
			continue
		}
		if err := r.checkCopied(ctx, tx, old); err != nil {
			return err
		}
		moved, err := r.follow(ctx, base, tx, g, rows)
		if err == nil {
			err = r.expectFiles(ctx, base, tx, g.New, moved)
		}
		if err != nil {
			return err
		}
		for id := range rows {
			delete(r.rows, id)
			delete(r.deletes, id)
		}
		r.rows.AddAll(moved)
		r.footprint = nil
	}
	return nil
}

// follow returns the new addresses of rows of one group. All were alive when the rewrite
// was committed.
func (r *rebasing) follow(ctx context.Context, base *table.Snapshot, tx table.Transaction, g table.RewriteGroup, rows RowSet) (RowSet, error) {
	var why []string
	for _, source := range []struct {
		name string
		find func() (*ChangeOfAddress, error)
	}{
		{"given", func() (*ChangeOfAddress, error) { return r.given(tx, g, rows) }},
		{"fragment reuse index", func() (*ChangeOfAddress, error) { return r.recorded(ctx, base, tx, g, rows) }},
		{"stable row ids", func() (*ChangeOfAddress, error) { return r.identified(ctx, tx, g, rows) }},
		{"derived", func() (*ChangeOfAddress, error) { return r.derived(ctx, tx, g, rows) }},
	} {
		c, err := source.find()
		var moved, dead RowSet
		if err == nil {
			moved, dead, err = c.Relocate(rows)
		}
		var no *unknownAddress
		switch {
		case err == nil && dead.IsEmpty():
			return moved, nil
		case err == nil:
			// By all committed transactions they were alive.
			why = append(why, fmt.Sprintf("%s: it left %s behind as dead", source.name, dead))
		case errors.As(err, &no):
			if no.reason != "" {
				why = append(why, source.name+": "+no.reason)
			}
		case errors.Is(err, table.ErrCorrupt), errors.Is(err, table.ErrUnsupported), errors.Is(err, table.ErrNotFound):
			why = append(why, source.name+": "+err.Error())
		default:
			return nil, fmt.Errorf("rebase: table %s version %d: where %s went: %w", r.u.Table, tx.Version, rows, err)
		}
	}
	return nil, r.conflict(tx, retry, rows, "it moved what this change is about, and where to cannot be told ("+strings.Join(why, "; ")+")")
}

// unknownAddress says that a source cannot tell where rows went, and why; without a
// reason there is no such source.
type unknownAddress struct{ reason string }

func (e *unknownAddress) Error() string { return e.reason }

func unknownf(format string, args ...any) error {
	return &unknownAddress{fmt.Sprintf(format, args...)}
}

// given looks for a change of address from the caller or from the memory.
func (r *rebasing) given(tx table.Transaction, g table.RewriteGroup, rows RowSet) (*ChangeOfAddress, error) {
	known := r.opts.Addresses
	if m := r.opts.Memory; m != nil {
		if c := m.Get(MemoryKey{r.u.Table, tx.ID}); c != nil {
			known = append(known[:len(known):len(known)], c)
		}
	}
	var why error = &unknownAddress{}
	for _, c := range known {
		if err := c.fits(g, rows); err != nil {
			why = err
			continue
		}
		return c, nil
	}
	return nil, why
}

// fits says why the change of address is not that of the group, as far as the rows
// are concerned; nil if it is.
func (c *ChangeOfAddress) fits(g table.RewriteGroup, rows RowSet) error {
	for _, id := range rows.Fragments() {
		if !c.Covers(id) {
			return unknownf("it does not know the rows of fragment %d", id)
		}
		mine := &c.groups[c.groupOf[id].group]
		var old, to []fri.Digest
		for _, s := range mine.sources {
			old = append(old, fri.Digest{ID: s.id, PhysicalRows: s.rows})
		}
		var before uint64
		for i, id := range mine.to {
			to = append(to, fri.Digest{ID: id, PhysicalRows: mine.ends[i] - before})
			before = mine.ends[i]
		}
		if err := sameRewrite(g, old, to); err != nil {
			return err
		}
	}
	return nil
}

// sameRewrite says why a group is not the rewrite of the given fragments into others;
// nil if it is. Only ids and physical rows are compared: formats are free in what
// they record as deleted. Sources may be missing: one without a live row moved
// nothing.
func sameRewrite(g table.RewriteGroup, old, to []fri.Digest) error {
	rows := map[table.FragmentID]uint64{}
	for _, f := range g.Old {
		rows[f.ID] = f.PhysicalRows
	}
	for _, d := range old {
		if n, ok := rows[d.ID]; !ok || n != d.PhysicalRows {
			return unknownf("it is of another rewrite, in which fragment %d of %d rows was rewritten", d.ID, d.PhysicalRows)
		}
	}
	clear(rows)
	for _, f := range g.New {
		rows[f.ID] = f.PhysicalRows
	}
	for _, d := range to {
		if n, ok := rows[d.ID]; !ok || n != d.PhysicalRows {
			return unknownf("it is of another rewrite, which wrote fragment %d of %d rows", d.ID, d.PhysicalRows)
		}
	}
	if len(to) != len(rows) {
		return unknownf("it is of another rewrite, which wrote %d fragments", len(to))
	}
	return nil
}

// recorded searches the fragment reuse index of the version being replaced and, if the
// transition is not in it, that of the version that the rewrite made.
func (r *rebasing) recorded(ctx context.Context, base *table.Snapshot, tx table.Transaction, g table.RewriteGroup, rows RowSet) (*ChangeOfAddress, error) {
	c, err := r.recordedIn(ctx, base, g, rows)
	if err == nil || base.Version == tx.Version {
		return c, err
	}
	s, gone := r.load(ctx, tx.Version)
	if errors.Is(gone, table.ErrConflict) { // the version was cleaned up
		return nil, err
	}
	if gone != nil {
		return nil, gone
	}
	if c, then := r.recordedIn(ctx, s, g, rows); then == nil {
		return c, nil
	}
	return nil, err
}

func (r *rebasing) recordedIn(ctx context.Context, s *table.Snapshot, g table.RewriteGroup, rows RowSet) (*ChangeOfAddress, error) {
	if s.Reuse == nil {
		return nil, &unknownAddress{}
	}
	h, err := r.history(ctx, s)
	if err != nil {
		return nil, err
	}
	c := &ChangeOfAddress{}
	for _, id := range rows.Fragments() {
		if _, ok := c.groupOf[id]; ok {
			continue // of a transition that was looked at
		}
		at, ok := h.Consumer(id)
		if !ok {
			return nil, unknownf("that of version %d does not have fragment %d", s.Version, id)
		}
		t := h.At(at)
		if !t.Followed() {
			return nil, unknownf("the rewrite of fragment %d is recorded in a way that is not understood, or the record is damaged", id)
		}
		if err := sameRewrite(g, t.Sources(), t.Destinations()); err != nil {
			return nil, err
		}
		group := addressGroup{}
		for _, d := range t.Sources() {
			group.sources = append(group.sources, addressSource{id: d.ID, rows: d.PhysicalRows})
		}
		if group.by, err = singleStep(ctx, r.engine, s, h, at); err != nil {
			return nil, err
		}
		if err := c.link(group); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// history loads the history of a version; the one that was asked for last is kept.
func (r *rebasing) history(ctx context.Context, s *table.Snapshot) (*fri.History, error) {
	if h := r.loaded[s.Version]; h != nil {
		return h, nil
	}
	h, err := fri.Load(ctx, r.engine, s)
	if err != nil {
		return nil, err
	}
	clear(r.loaded)
	r.loaded[s.Version] = h
	return h, nil
}

// singleStep returns a translator that follows rows through one transition and no
// further: what happened later comes later.
func singleStep(ctx context.Context, e table.Engine, s *table.Snapshot, h *fri.History, at int) (rowTranslator, error) {
	t := h.At(at)
	if !slices.ContainsFunc(t.Destinations(), func(d fri.Digest) bool { return h.Touched(d.ID) }) {
		return h.Translator(), nil
	}
	// A history of one transition, in the form that has room for every kind.
	one, err := (&fri.History{}).Upgrade(1)
	if err == nil {
		one, err = one.Append(1, t)
	}
	if err != nil {
		return nil, err
	}
	if p, ok := table.As[fri.PartitionOpener](e); ok {
		open, err := p.Partitions(s)
		if err != nil {
			return nil, err
		}
		one = one.WithPartitions(ctx, open)
	}
	return one.Translator(), nil
}

// unlessConflict makes "unknown" of a conflict: there may be another way to know.
func unlessConflict(err error) error {
	var c *ConflictError
	if errors.As(err, &c) {
		return unknownf("version %d: %s", c.Version, c.Reason)
	}
	return err
}
