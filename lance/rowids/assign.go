package rowids

import (
	"context"
	"fmt"
	"math"
	"slices"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/table"
)

// This file gives ids to the rows of new fragments, in a table with stable row ids.
// It runs at every attempt to commit, over the version that is being replaced,
// because that says which ids are free and which number the new version gets.
//
//   - Rows that a rewrite moved keep what they have: the new fragments' lists are those
//     of the old ones, without the rows that were dead when the rewrite read them,
//     laid end to end and cut to the new fragments' lengths. A row that was deleted
//     since keeps its entry, hidden by the deletion vector that the new fragment is
//     published with.
//   - Rows that replace others, in an update, keep id and creation (Fragment.Kept), and
//     were last updated by the version that is being committed.
//   - All other rows are new: the next free ids, created and updated by that version.
//
// No two live rows share an id. An update therefore has to delete, in the same commit,
// the rows whose identities it keeps; checkKept checks this.

// Assigned holds the ids and versions of the rows of new fragments.
type Assigned struct {
	rows      map[table.FragmentID]rowLists
	nextRowID uint64
}

// NextFree is the lowest row id that is free once the fragments are there.
func (a *Assigned) NextFree() uint64 { return a.nextRowID }

// Write puts the ids and versions of the rows of a new fragment into its message.
func (a *Assigned) Write(id table.FragmentID, m *tablepb.DataFragment) { a.rows[id].write(m) }

// rowLists are the three lists of a fragment.
type rowLists struct {
	ids              *Sequence
	created, updated *Versions
}

// write puts the lists into a fragment's message.
func (l rowLists) write(m *tablepb.DataFragment) {
	m.RowIdSequence = &tablepb.DataFragment_InlineRowIds{InlineRowIds: l.ids.Encode()}
	m.CreatedAtVersionSequence = &tablepb.DataFragment_InlineCreatedAtVersions{InlineCreatedAtVersions: l.created.Encode()}
	m.LastUpdatedAtVersionSequence = &tablepb.DataFragment_InlineLastUpdatedAtVersions{InlineLastUpdatedAtVersions: l.updated.Encode()}
}

// Assign makes the lists for all fragments that p adds. The result is nil if the
// table has no stable row ids.
func (k *Keeper) Assign(ctx context.Context, base TableVersion, p table.Proposal) (*Assigned, error) {
	if !p.Base.StableRowIDs {
		for _, f := range p.Change.Add {
			if len(f.Kept) > 0 {
				return nil, fmt.Errorf("fragment %d is to keep the ids of %d rows, and the table has no stable row ids", f.ID, len(f.Kept))
			}
		}
		return nil, nil
	}
	a := &Assigned{rows: map[table.FragmentID]rowLists{}, nextRowID: base.NextRowID()}
	if op, ok := p.Transaction.Operation.(table.Rewrite); ok {
		return a, k.carryRows(ctx, base, p, op, a)
	}
	if err := k.checkKept(ctx, base, p, a.nextRowID); err != nil {
		return nil, err
	}
	for _, f := range p.Change.Add {
		if err := a.add(f, p.Base.Version+1); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// add makes the lists of a fragment that holds kept rows and new ones.
func (a *Assigned) add(f table.Fragment, version uint64) error {
	kept := uint64(len(f.Kept))
	if kept > f.PhysicalRows {
		return fmt.Errorf("fragment %d has %d rows and is to keep the ids of %d", f.ID, f.PhysicalRows, kept)
	}
	fresh := f.PhysicalRows - kept
	if fresh > math.MaxUint64-a.nextRowID {
		return table.Unsupportedf("fragment %d has %d new rows, and the row ids from %d on are not enough; write the rows into a new table", f.ID, fresh, a.nextRowID)
	}
	ids := make([]table.RowID, kept)
	created := make([]uint64, kept)
	for i, kept := range f.Kept {
		ids[i], created[i] = kept.ID, kept.CreatedAt
	}
	next := table.RowID(a.nextRowID)
	a.rows[f.ID] = rowLists{
		ids:     Concat(Of(ids...), Range(next, next+table.RowID(fresh))),
		created: ConcatVersions(VersionsOf(created...), Uniform(fresh, version)),
		updated: Uniform(f.PhysicalRows, version),
	}
	a.nextRowID += fresh
	return nil
}

// checkKept checks that every row whose identity is kept is alive in the version being
// replaced, and dead in the next. Else two live rows would have the id, or a row that
// was deleted meanwhile would come back.
func (k *Keeper) checkKept(ctx context.Context, base TableVersion, p table.Proposal, nextRowID uint64) error {
	var ids []table.RowID
	for _, f := range p.Change.Add {
		for _, kept := range f.Kept {
			if uint64(kept.ID) >= nextRowID || kept.CreatedAt > p.Base.Version {
				return fmt.Errorf("fragment %d is to keep the row id %d, created by version %d, and the table has given out only those below %d, and has version %d",
					f.ID, kept.ID, kept.CreatedAt, nextRowID, p.Base.Version)
			}
			ids = append(ids, kept.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	for i := 1; i < len(ids); i++ {
		if ids[i-1] == ids[i] {
			return fmt.Errorf("two rows are to keep the row id %d", ids[i])
		}
	}
	live, err := k.Find(ctx, p.Base, base, ids)
	if err != nil {
		return err
	}
	dies := newDying(k.root, p)
	for _, id := range ids {
		addr, ok := live[id]
		if !ok {
			return table.Conflictf("a row is to keep the row id %d, and no live row has it any more", id)
		}
		switch gone, err := dies.row(ctx, addr); {
		case err != nil:
			return err
		case !gone:
			return fmt.Errorf("a row is to keep the row id %d, and the row at %s, which has it, is not deleted", id, addr)
		}
	}
	return nil
}

// dying tells which rows a change deletes.
type dying struct {
	root     *objects.Root
	proposal table.Proposal
	removed  map[table.FragmentID]bool
	vectors  map[table.FragmentID]table.OffsetSet
}

func newDying(r *objects.Root, p table.Proposal) *dying {
	d := &dying{root: r, proposal: p, removed: map[table.FragmentID]bool{}, vectors: map[table.FragmentID]table.OffsetSet{}}
	for _, id := range p.Change.Remove {
		d.removed[id] = true
	}
	return d
}

func (d *dying) row(ctx context.Context, addr table.RowAddr) (bool, error) {
	id := addr.Fragment()
	ref, set := d.proposal.Change.SetDeletion[id]
	if d.removed[id] || !set || ref == nil {
		return d.removed[id], nil
	}
	v, ok := d.vectors[id]
	if !ok {
		f, _ := d.proposal.Base.Fragment(id)
		f.Deletion = ref
		var err error
		if v, err = d.root.Deletions(ctx, f); err != nil {
			return false, err
		}
		d.vectors[id] = v
	}
	return v.Contains(addr.Offset()), nil
}
