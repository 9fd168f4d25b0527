package rowids

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/table"
)

// carryRows makes the lists of the fragments that a rewrite adds.
func (k *Keeper) carryRows(ctx context.Context, base TableVersion, p table.Proposal, op table.Rewrite, a *Assigned) error {
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
func (k *Keeper) survivors(ctx context.Context, sources map[table.FragmentID]*tablepb.DataFragment, g table.RewriteGroup) ([]rowLists, error) {
	var ids []*Sequence
	var created, updated []*Versions
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
	newIDs, ok1 := Rechunk(ids, lengths...)
	newCreated, ok2 := RechunkVersions(created, lengths...)
	newUpdated, ok3 := RechunkVersions(updated, lengths...)
	if !ok1 || !ok2 || !ok3 {
		return nil, fmt.Errorf("%d rows of fragment %d and those after it were alive, and the new fragments do not have as many", Concat(ids...).Len(), g.Old[0].ID)
	}
	lists := make([]rowLists, len(g.New))
	for i := range lists {
		lists[i] = rowLists{newIDs[i], newCreated[i], newUpdated[i]}
	}
	return lists, nil
}

// survivorsOf are the lists of the rows of old that were alive when it was read.
func (k *Keeper) survivorsOf(ctx context.Context, m *tablepb.DataFragment, old table.Fragment) (l rowLists, err error) {
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
	if l.created, err = k.CreatedAt(ctx, m); err != nil {
		return l, err
	}
	if l.updated, err = k.LastUpdatedAt(ctx, m); err != nil {
		return l, err
	}
	live := dead.Live(old.PhysicalRows)
	return rowLists{l.ids.Select(live), l.created.Select(live), l.updated.Select(live)}, nil
}

// movedRows caches the lists of the last transaction's groups. They depend on what the
// rewrite read and not on the version being replaced, so another attempt need not count
// through the rows again, which would give others time to commit first.
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
// ones have now. With more, deleted rows would be alive again, or two live rows would
// have the same id.
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
func (k *Keeper) rewriteSources(ctx context.Context, base TableVersion, p table.Proposal, op table.Rewrite) (map[table.FragmentID]*tablepb.DataFragment, error) {
	out := map[table.FragmentID]*tablepb.DataFragment{}
	gone := map[table.FragmentID]table.Fragment{}
	now := ByID(base)
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
		fragments := ByID(at)
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
