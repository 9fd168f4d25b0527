package rebase

import (
	"context"
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// This file takes groups of rewritten fragments over what others committed. The new
// fragments hold copies of rows that may be dead by now, so they are published with
// deletion vectors: for each source the rows that are dead now and were alive when it
// was read, followed to where the rewrite put them. An update is a deletion here, too:
// its new rows are in fragments of their own.

// PublishedGroup is a group that was committed.
type PublishedGroup struct {
	Sources      []table.FragmentID `json:"sources"`
	Destinations []table.FragmentID `json:"destinations"`
	// RowsCarried is the number of rows that others deleted or updated meanwhile, and
	// that are deleted in the destinations.
	RowsCarried uint64 `json:"rows_carried,omitempty"`
	// Emptied are the destinations that have no live row left.
	Emptied []table.FragmentID `json:"emptied,omitempty"`
}

// LostGroup is a group that was not, because of what others committed.
type LostGroup struct {
	Sources []table.FragmentID `json:"sources"`
	Reason  string             `json:"reason"`
}

// Placed is a group about to replace its sources in a version.
type Placed struct {
	*Group
	// Present are the sources that are still there. The others lost their last row.
	Present []table.FragmentID
	// Now are the new fragments as they are to be committed. Before the group is
	// admitted there are none.
	Now []table.Fragment
}

// Rewriting is what the author of a rewrite decides, and is told, at each attempt.
// Each function may be nil.
type Rewriting struct {
	// Admit says which groups must not replace their sources in base, by position and
	// with the reason. They are lost.
	Admit func(ctx context.Context, base *table.Snapshot, groups []Placed) (map[int]string, error)
	// Complete adds to the change what depends on the ids of the new fragments: the
	// coverage of indexes, a fragment reuse index.
	Complete func(ctx context.Context, base *table.Snapshot, groups []Placed, change *table.Change) error
	// Lost is told of each group that is lost.
	Lost func(LostGroup)
}

// groupState is one group while it is carried.
type groupState struct {
	Group
	footprint *footprint
	// lost is why the group cannot be published; empty if it can.
	lost string
	// died are the rows of the sources that died since they were read, present the
	// sources that are there. Both are of the version that was looked at last.
	died    RowSet
	present []table.FragmentID
}

func groupStates(u Uncommitted) (out []*groupState) {
	for _, g := range u.Groups {
		if g.ReadVersion == 0 {
			g.ReadVersion = u.Transaction.ReadVersion
		}
		out = append(out, &groupState{Group: g, footprint: footprintOf(table.Rewrite{Groups: []table.RewriteGroup{{Old: g.Old}}})})
	}
	return out
}

// over compares the group with one transaction of the window.
func (g *groupState) over(tx table.Transaction, theirs *footprint) {
	if tx.Version <= g.ReadVersion || g.lost != "" {
		return // it read what that did; another group has not
	}
	if c := compare(g.footprint, theirs); c.Verdict > relocate {
		g.lost = fmt.Sprintf("version %d: %s", tx.Version, c.Reason)
	}
}

// look finds out what became of a group's sources in base, and which of those that are
// there have another deletion vector. What transactions said is believed where it is a
// reason to lose the group and checked where it is one to keep it: fragments that are
// there must have the files that were read, and one that is gone must have died, not
// moved.
func (r *rebasing) look(base *table.Snapshot, now Shape, g *groupState) (changed []table.Fragment) {
	g.died, g.present = RowSet{}, nil
	for _, then := range g.Old {
		f, ok := base.Fragment(then.ID)
		switch {
		case !ok && then.LiveRows() > 0 && !r.died[then.ID]:
			g.lost = fmt.Sprintf("fragment %d is gone", then.ID)
			return nil
		case !ok:
			g.died.Add(then.ID, deletion.Range(0, then.PhysicalRows).Difference(g.Deleted[then.ID]))
			continue
		case !f.SameData(then):
			g.lost = fmt.Sprintf("the files of fragment %d changed", then.ID)
			return nil
		case !f.Deletion.Same(then.Deletion):
			changed = append(changed, f)
		}
		g.present = append(g.present, then.ID)
	}
	if len(g.present) == 0 {
		g.lost = "no row of it is left"
	} else if why := g.Shape.misfit(now, false); why != "" {
		g.lost = "the schema changed: " + why
	}
	return changed
}

// diedSince are the rows of a fragment that are dead now and were alive when a
// rewrite read it. Rows that were dead then and live again are a conflict.
func (r *rebasing) diedSince(ctx context.Context, base *table.Snapshot, f table.Fragment, then *deletion.Vector) (*deletion.Vector, error) {
	now, err := r.readDeletions(ctx, base, f)
	if err != nil {
		return nil, err
	}
	if err := now.Validate(f.PhysicalRows, 0); err != nil {
		return nil, table.Corruptf("rebase: table %s version %d: fragment %d as it is: %w", r.u.Table, base.Version, f.ID, err)
	}
	died := now.Difference(then)
	if back := then.Cardinality() - (now.Cardinality() - died.Cardinality()); back > 0 {
		return nil, table.Conflictf("fragment %d: %d rows were deleted when it was read, and %d of them are alive again", f.ID, then.Cardinality(), back)
	}
	return died, nil
}

// admit looks at all groups and drops those that cannot replace their sources in base.
func (r *rebasing) admit(ctx context.Context, base *table.Snapshot) error {
	if len(r.groups) == 0 {
		return nil
	}
	type source struct {
		group *groupState
		now   table.Fragment
		died  *deletion.Vector
		back  error // rows that were dead are alive again
	}
	var changed []*source
	shape := ShapeOf(base.Schema)
	for _, g := range r.groups {
		// Not before the change was looked for in the table: what was committed by an
		// earlier call must not be deleted for this.
		for _, f := range g.Old {
			if n := g.Deleted[f.ID].Cardinality(); n != f.DeletedRows() {
				return table.Corruptf("rebase: table %s: a rewrite names %d deleted rows of fragment %d, the fragment had %d", r.u.Table, n, f.ID, f.DeletedRows())
			}
		}
		if g.lost == "" {
			for _, f := range r.look(base, shape, g) {
				changed = append(changed, &source{group: g, now: f})
			}
		}
	}
	if err := r.each(ctx, len(changed), func(ctx context.Context, i int) (err error) {
		s := changed[i]
		s.died, err = r.diedSince(ctx, base, s.now, s.group.Deleted[s.now.ID])
		if errors.Is(err, table.ErrConflict) {
			s.back, err = err, nil
		}
		return err
	}); err != nil {
		return err
	}
	for _, s := range changed {
		if s.back != nil && s.group.lost == "" {
			s.group.lost = s.back.Error()
		}
		s.group.died.Add(s.now.ID, s.died)
	}
	if err := r.drop(ctx, base); err != nil || r.opts.Rewriting.Admit == nil {
		return err
	}
	reasons, err := r.opts.Rewriting.Admit(ctx, base, r.placed())
	if err != nil {
		return err
	}
	for i, why := range reasons {
		r.groups[i].lost = why
	}
	return r.drop(ctx, base)
}

func (r *rebasing) placed() []Placed {
	out := make([]Placed, len(r.groups))
	for i, g := range r.groups {
		out[i] = Placed{Group: &g.Group, Present: g.present}
	}
	return out
}

// drop takes out the groups that are lost, and deletes what was written for them. The
// error is a *ConflictError if none is left.
func (r *rebasing) drop(ctx context.Context, base *table.Snapshot) error {
	var kept []*groupState
	for _, g := range r.groups {
		if g.lost == "" {
			kept = append(kept, g)
			continue
		}
		if r.unknown() {
			// It passed before, over the same version, and may be committed.
			return fmt.Errorf("rebase: table %s: %w", r.u.Table, table.ErrAmbiguousCommit)
		}
		lost := LostGroup{Sources: g.SourceIDs(), Reason: g.lost}
		r.lost = append(r.lost, lost)
		if r.opts.Rewriting.Lost != nil {
			r.opts.Rewriting.Lost(lost)
		}
		r.discard(ctx, g.Objects)
	}
	if r.groups = kept; len(kept) == 0 && len(r.lost) > 0 {
		return &ConflictError{Table: r.u.Table, Version: base.Version, Lost: r.lost, verdict: retry}
	}
	return nil
}

// publish numbers the new fragments of the groups and gives them deletion vectors for
// the rows that died.
func (r *rebasing) publish(ctx context.Context, base *table.Snapshot, next table.FragmentID, change *table.Change) ([]table.RewriteGroup, error) {
	placed := r.placed()
	var groups []Group
	var to [][]table.FragmentID
	died := RowSet{}
	for i, g := range r.groups {
		var err error
		if placed[i].Now, err = r.number(base, next, g.New); err != nil {
			return nil, err
		}
		next += table.FragmentID(len(g.New))
		groups, to = append(groups, g.Group), append(to, idsOf(placed[i].Now))
		died.AddAll(g.died)
		change.Remove = append(change.Remove, g.present...)
	}
	if len(groups) == 0 {
		return nil, nil
	}
	address, err := NewChangeOfAddress(groups, to)
	if err != nil {
		return nil, err
	}
	carried, dead, err := address.Relocate(died)
	if err == nil && !dead.IsEmpty() {
		err = table.Corruptf("rebase: table %s: %s died after they were dead", r.u.Table, dead)
	}
	if err != nil {
		return nil, err
	}
	var out []table.RewriteGroup
	for i, g := range r.groups {
		vectors := make([]*deletion.Vector, len(to[i]))
		for d, id := range to[i] {
			vectors[d] = carried[id]
		}
		if err := r.store(ctx, base, placed[i].Now, vectors); err != nil {
			return nil, err
		}
		change.Add = append(change.Add, placed[i].Now...)
		out = append(out, table.RewriteGroup{Old: g.Old, New: placed[i].Now})
	}
	if r.opts.Rewriting.Complete != nil {
		err = r.opts.Rewriting.Complete(ctx, base, placed, change)
	}
	return out, err
}

// publishes describes groups that were committed.
func publishes(groups []table.RewriteGroup) (out []PublishedGroup) {
	for _, g := range groups {
		p := PublishedGroup{Sources: idsOf(g.Old), Destinations: idsOf(g.New)}
		for _, f := range g.New {
			p.RowsCarried += f.DeletedRows()
			if f.LiveRows() == 0 {
				p.Emptied = append(p.Emptied, f.ID)
			}
		}
		out = append(out, p)
	}
	return out
}

// remember puts the change of address of groups that were committed into the memory:
// a change of rows that is committed later, in the same session, need not find out
// where its rows went.
func (r *rebasing) remember(published []PublishedGroup) {
	if r.opts.Memory == nil || len(published) == 0 || len(published) != len(r.groups) {
		return
	}
	var groups []Group
	var to [][]table.FragmentID
	for i, g := range r.groups {
		groups, to = append(groups, g.Group), append(to, published[i].Destinations)
	}
	if c, err := NewChangeOfAddress(groups, to); err == nil {
		r.opts.Memory.Put(MemoryKey{r.u.Table, r.u.Transaction.ID}, c)
	}
}

// discard deletes objects of groups and attempts that are lost. What cannot be deleted
// is told at the end.
func (r *rebasing) discard(ctx context.Context, objects []table.Object) {
	deleted, err := commit.Discard(ctx, r.engine, r.opts.By, objects)
	if len(objects) > 0 && r.opts.Discarded != nil {
		r.opts.Discarded(deleted, err)
	}
	var left *commit.LeftoverError
	if errors.As(err, &left) {
		r.left, r.leftErr = append(r.left, left.Objects...), errors.Join(r.leftErr, left.Err)
	}
}

// leavesIndexes refuses tables whose indexes cannot be left alone by a rewrite that
// says nothing of them; package compaction does.
func leavesIndexes(_ context.Context, base *table.Snapshot, _ []Placed) (map[int]string, error) {
	if base.Reuse != nil {
		return nil, table.Unsupportedf("rebase: table %s version %d has a fragment reuse index, and this rewrite would not be in it; publish it as a compaction", base.Table, base.Version)
	}
	for _, m := range base.Indexes {
		if base.StableRowIDs && !m.System {
			return nil, table.Unsupportedf("rebase: table %s version %d: the coverage of index %q would have to follow the rows of this rewrite; publish it as a compaction", base.Table, base.Version, m.Name)
		}
	}
	return nil, nil
}
