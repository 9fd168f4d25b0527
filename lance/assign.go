package lance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/rowids"
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
// A live row's id is no other live row's. An update therefore has to delete, in the
// same commit, the rows whose identities it keeps; that it does is checked here.

// assigned is what rows of new fragments are known by.
type assigned struct {
	rows      map[table.FragmentID]rowLists
	nextRowID uint64
}

// nextFree is the lowest row id that is free once the fragments are there.
func (a *assigned) nextFree() uint64 { return a.nextRowID }

// write puts what the rows of a new fragment are known by into its message.
func (a *assigned) write(id table.FragmentID, m *tablepb.DataFragment) { a.rows[id].write(m) }

// rowLists are the three lists of a fragment.
type rowLists struct {
	ids              *rowids.Sequence
	created, updated *rowids.Versions
}

// write puts the lists into a fragment's message.
func (l rowLists) write(m *tablepb.DataFragment) {
	m.RowIdSequence = &tablepb.DataFragment_InlineRowIds{InlineRowIds: l.ids.Encode()}
	m.CreatedAtVersionSequence = &tablepb.DataFragment_InlineCreatedAtVersions{InlineCreatedAtVersions: l.created.Encode()}
	m.LastUpdatedAtVersionSequence = &tablepb.DataFragment_InlineLastUpdatedAtVersions{InlineLastUpdatedAtVersions: l.updated.Encode()}
}

// assign makes the lists for all fragments that p adds. The result is nil if the
// table has no stable row ids.
func (k *keeper) assign(ctx context.Context, base tableVersion, p table.Proposal) (*assigned, error) {
	if !p.Base.StableRowIDs {
		for _, f := range p.Change.Add {
			if len(f.Kept) > 0 {
				return nil, fmt.Errorf("fragment %d is to keep the ids of %d rows, and the table has no stable row ids", f.ID, len(f.Kept))
			}
		}
		return nil, nil
	}
	a := &assigned{rows: map[table.FragmentID]rowLists{}, nextRowID: base.NextRowID()}
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
func (a *assigned) add(f table.Fragment, version uint64) error {
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
		ids:     rowids.Concat(rowids.Of(ids...), rowids.Range(next, next+table.RowID(fresh))),
		created: rowids.ConcatVersions(rowids.VersionsOf(created...), rowids.Uniform(fresh, version)),
		updated: rowids.Uniform(f.PhysicalRows, version),
	}
	a.nextRowID += fresh
	return nil
}

// checkKept checks that every row whose identity is kept lives in the version that is
// being replaced, and does not in the next. Else the id would be alive twice, or a
// row that was deleted meanwhile would be back.
func (k *keeper) checkKept(ctx context.Context, base tableVersion, p table.Proposal, nextRowID uint64) error {
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
	live, err := k.find(ctx, p.Base, base, ids)
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

// carryRows makes the lists of the fragments that a rewrite adds.
func (k *keeper) carryRows(ctx context.Context, base tableVersion, p table.Proposal, op table.Rewrite, a *assigned) error {
	added := map[table.FragmentID]table.Fragment{}
	for _, f := range p.Change.Add {
		if len(f.Kept) > 0 {
			return fmt.Errorf("fragment %d is to keep the ids of %d rows, and a rewrite keeps those of all", f.ID, len(f.Kept))
		}
		added[f.ID] = f
	}
	sources, err := k.rewriteSources(ctx, base, p, op)
	if err != nil {
		return err
	}
	for _, g := range op.Groups {
		if err := checkSurvivors(p, g); err != nil {
			return err
		}
		key := moveKey(g)
		lists, ok := k.moved.get(p.Transaction.ID, key)
		if !ok {
			if lists, err = k.survivors(ctx, sources, g); err != nil {
				return err
			}
			k.moved.put(p.Transaction.ID, key, lists)
		}
		for i, f := range g.New {
			now, ok := added[f.ID]
			if !ok || now.PhysicalRows != f.PhysicalRows {
				return fmt.Errorf("the rewrite describes fragment %d of %d rows, which is not what is to be added", f.ID, f.PhysicalRows)
			}
			delete(added, f.ID)
			a.rows[f.ID] = lists[i]
		}
	}
	for id := range added {
		return fmt.Errorf("fragment %d is to be added, and the rewrite does not say where its rows come from", id)
	}
	return nil
}

// survivors are the lists of the old fragments' rows that were alive when they were
// read, for each of the group's new fragments.
func (k *keeper) survivors(ctx context.Context, sources map[table.FragmentID]*tablepb.DataFragment, g table.RewriteGroup) ([]rowLists, error) {
	var ids []*rowids.Sequence
	var created, updated []*rowids.Versions
	for _, old := range g.Old {
		l, err := k.survivorsOf(ctx, sources[old.ID], old)
		if err != nil {
			return nil, fmt.Errorf("fragment %d: %w", old.ID, err)
		}
		ids, created, updated = append(ids, l.ids), append(created, l.created), append(updated, l.updated)
	}
	lengths := make([]uint64, len(g.New))
	for i, f := range g.New {
		lengths[i] = f.PhysicalRows
	}
	newIDs, ok1 := rowids.Rechunk(ids, lengths...)
	newCreated, ok2 := rowids.RechunkVersions(created, lengths...)
	newUpdated, ok3 := rowids.RechunkVersions(updated, lengths...)
	if !ok1 || !ok2 || !ok3 {
		return nil, fmt.Errorf("%d rows of fragment %d and those after it were alive, and the new fragments do not have as many", rowids.Concat(ids...).Len(), g.Old[0].ID)
	}
	lists := make([]rowLists, len(g.New))
	for i := range lists {
		lists[i] = rowLists{newIDs[i], newCreated[i], newUpdated[i]}
	}
	return lists, nil
}

// survivorsOf are the lists of the rows of old that were alive when it was read.
func (k *keeper) survivorsOf(ctx context.Context, m *tablepb.DataFragment, old table.Fragment) (l rowLists, err error) {
	dead, err := k.root.Deletions(ctx, old)
	if errors.Is(err, table.ErrNotFound) {
		err = table.Conflictf("the deletion vector that the rewrite read is gone, start again from the latest version: %v", err)
	}
	if err != nil {
		return l, err
	}
	if l.ids, err = k.readSequence(ctx, m); err != nil {
		return l, err
	}
	if l.created, err = k.createdAt(ctx, m); err != nil {
		return l, err
	}
	if l.updated, err = k.lastUpdatedAt(ctx, m); err != nil {
		return l, err
	}
	live := dead.Live(old.PhysicalRows)
	return rowLists{l.ids.Select(live), l.created.Select(live), l.updated.Select(live)}, nil
}

// movedRows keeps what the last transaction's groups came to. It depends on what the
// rewrite read and not on the version that is replaced, so that another attempt need
// not count through the rows again: what takes time there lets others commit first.
type movedRows struct {
	mu          sync.Mutex
	transaction string
	groups      map[string][]rowLists
}

// moveKey says which rows a group moved, and where they are cut.
func moveKey(g table.RewriteGroup) string {
	var b strings.Builder
	for _, f := range g.Old {
		path := ""
		if f.Deletion != nil {
			path = f.Deletion.Base + " " + f.Deletion.Path
		}
		fmt.Fprintf(&b, "%d %q ", f.ID, path)
	}
	for _, f := range g.New {
		fmt.Fprintf(&b, "-> %d", f.PhysicalRows)
	}
	return b.String()
}

func (m *movedRows) get(transaction, key string) ([]rowLists, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	lists, ok := m.groups[key]
	return lists, ok && m.transaction == transaction
}

func (m *movedRows) put(transaction, key string, lists []rowLists) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.transaction != transaction || m.groups == nil {
		m.transaction, m.groups = transaction, map[string][]rowLists{}
	}
	m.groups[key] = lists
}

// checkSurvivors checks that a group's new fragments have as many live rows as its old
// ones have by now. If they had more, rows would be alive that were deleted, or are
// elsewhere, under the same id.
func checkSurvivors(p table.Proposal, g table.RewriteGroup) error {
	if len(g.Old) == 0 {
		return fmt.Errorf("the rewrite has a group without old fragments")
	}
	var have, want uint64
	for _, f := range g.New {
		have += f.LiveRows()
	}
	for _, f := range g.Old {
		now, ok := p.Base.Fragment(f.ID)
		if !ok {
			continue
		}
		if !slices.Contains(p.Change.Remove, f.ID) {
			return fmt.Errorf("fragment %d was rewritten and is not to be removed", f.ID)
		}
		want += now.LiveRows()
	}
	if have != want {
		return fmt.Errorf("the fragments that replace %d and those after it have %d live rows, and those that they replace %d", g.Old[0].ID, have, want)
	}
	return nil
}

// rewriteSources finds the old fragments of a rewrite in the manifests of base or, if
// they are gone there because all their rows were deleted, of a version since they
// were read.
func (k *keeper) rewriteSources(ctx context.Context, base tableVersion, p table.Proposal, op table.Rewrite) (map[table.FragmentID]*tablepb.DataFragment, error) {
	out := map[table.FragmentID]*tablepb.DataFragment{}
	gone := map[table.FragmentID]table.Fragment{}
	now := messagesByID(base)
	for _, g := range op.Groups {
		for _, old := range g.Old {
			m, ok := now[old.ID]
			switch {
			case !ok:
				gone[old.ID] = old
			case !base.Fragment(m).SameData(old):
				return nil, fmt.Errorf("fragment %d has other files than the rewrite read", old.ID)
			default:
				out[old.ID] = m
			}
		}
	}
	for v := max(p.Transaction.ReadVersion, 1); len(gone) > 0 && v < p.Base.Version; v++ {
		at, err := k.load(ctx, v)
		if errors.Is(err, table.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		fragments := messagesByID(at)
		for id, old := range gone {
			if m, ok := fragments[id]; ok && at.Fragment(m).SameData(old) {
				out[id] = m
				delete(gone, id)
			}
		}
	}
	for id := range gone {
		return nil, table.Conflictf("fragment %d is gone, and so are the versions that say which row ids it had; start again from the latest", id)
	}
	return out, nil
}
