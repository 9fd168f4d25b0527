package rebase

import (
	"context"

	"github.com/rehome-db/rehome/table"
)

// This file commits a rewrite over changes of rows: what was deleted since the
// rewrite read its fragments is carried to the new ones, by [Move.Relocate]. It
// leaves indexes as they are. A table whose indexes would have to be told is refused:
// package compaction does that, for many groups at a time.

// proposeRewrite makes the proposal of a change that is a rewrite.
func (r *TransactionRebase) proposeRewrite(ctx context.Context, base *table.Snapshot, g table.RewriteGroup) (*table.Proposal, error) {
	if err := r.checkIndexes(base); err != nil {
		return nil, err
	}
	m, err := r.move(ctx, base, g)
	if err != nil {
		return nil, err
	}
	now, left, err := r.sourcesNow(ctx, base, m, g)
	if err != nil {
		return nil, err
	}
	carried, err := m.Relocate(now)
	if err != nil {
		return nil, err
	}
	added, err := r.number(base)
	if err != nil {
		return nil, err
	}
	if err := r.store(ctx, base, added, carried.Deleted); err != nil {
		return nil, err
	}
	r.proposed = r.outcome(base.Version + 1)
	r.proposed.RowsRelocated = carried.Rows
	for _, f := range added {
		r.proposed.Added = append(r.proposed.Added, f.ID)
	}
	tx := r.u.Transaction
	tx.Operation = table.Rewrite{Groups: []table.RewriteGroup{{Old: g.Old, New: added}}}
	return &table.Proposal{Base: base, Transaction: tx, Change: table.Change{Remove: left, Add: added}}, nil
}

// checkIndexes refuses tables whose indexes cannot be left alone.
func (r *TransactionRebase) checkIndexes(base *table.Snapshot) error {
	if base.Reuse != nil {
		return table.Unsupportedf("rebase: table %s version %d has a fragment reuse index, and this rewrite would not be in it; publish it as a compaction", r.u.Table, base.Version)
	}
	for _, m := range base.Indexes {
		if base.StableRowIDs && !m.System {
			return table.Unsupportedf("rebase: table %s version %d: the coverage of index %q would have to follow the rows of this rewrite; publish it as a compaction", r.u.Table, base.Version, m.Name)
		}
	}
	return nil
}

// move is how the rewrite moved rows: as given, or by the fragments that it read.
func (r *TransactionRebase) move(ctx context.Context, s *table.Snapshot, g table.RewriteGroup) (Move, error) {
	var m Move
	for _, f := range r.u.New {
		m.Destinations = append(m.Destinations, f.PhysicalRows)
	}
	given := r.ownAddress(g)
	for i, f := range g.Old {
		from := MoveSource{Fragment: f.ID, PhysicalRows: f.PhysicalRows}
		if given != nil {
			from.Deleted = given.sources[i].deleted
		} else {
			v, err := r.readDeletions(ctx, s, f)
			if err != nil {
				return m, err
			}
			from.Deleted = v
		}
		m.Sources = append(m.Sources, from)
	}
	return m, nil
}

// ownAddress finds the group of a given change of address that has the sources of
// the rewrite, in order; nil if there is none.
func (r *TransactionRebase) ownAddress(g table.RewriteGroup) *addressGroup {
	for _, c := range r.builder.addresses {
	next:
		for i := range c.groups {
			got := &c.groups[i]
			if got.by != nil || len(got.sources) != len(g.Old) || len(got.ends) != len(r.u.New) {
				continue
			}
			for j, s := range got.sources {
				if s.id != g.Old[j].ID || !s.known {
					continue next
				}
			}
			return got
		}
	}
	return nil
}

// sourcesNow is what became of the sources, and which of them are left.
func (r *TransactionRebase) sourcesNow(ctx context.Context, base *table.Snapshot, m Move, g table.RewriteGroup) ([]SourceNow, []table.FragmentID, error) {
	now := make([]SourceNow, len(g.Old))
	var left []table.FragmentID
	for i, then := range g.Old {
		f, ok := base.Fragment(then.ID)
		switch {
		case !ok && then.LiveRows() > 0 && !r.died[then.ID]:
			return nil, nil, r.conflictAt(base.Version, nil, "fragment %d is gone", then.ID)
		case !ok:
			now[i].Removed = true
			continue
		case !f.SameData(then):
			return nil, nil, r.conflictAt(base.Version, nil, "the files of fragment %d changed", then.ID)
		case f.Deletion.Same(then.Deletion):
			now[i].Deleted = m.Sources[i].Deleted
		default:
			v, err := r.readDeletions(ctx, base, f)
			if err != nil {
				return nil, nil, err
			}
			now[i].Deleted = v
		}
		left = append(left, then.ID)
	}
	if len(left) == 0 {
		return nil, nil, r.conflictAt(base.Version, nil, "no row of the fragments that were rewritten is left")
	}
	return now, left, nil
}

// remember puts the change of address of a rewrite that was committed into the
// memory.
func (r *TransactionRebase) remember(ctx context.Context, s *table.Snapshot, added []table.FragmentID) {
	op, ok := r.u.Transaction.Operation.(table.Rewrite)
	if !ok || r.builder.memory == nil {
		return
	}
	m, err := r.move(ctx, s, op.Groups[0])
	if err != nil {
		return // others will find out by themselves
	}
	if c, err := NewChangeOfAddress([]Move{m}, [][]table.FragmentID{added}); err == nil {
		r.builder.memory.Put(MemoryKey{r.u.Table, r.u.Transaction.ID}, c)
	}
}
