package memengine

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/rehome-db/rehome/table"
)

// Commit implements table.Committer.
func (e *Engine) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	head := e.head()
	if p.Base.Version != head.Version {
		return nil, fmt.Errorf("memengine: table %s is at version %d already, transaction %s was to replace version %d: %w",
			e.name, head.Version, p.Transaction.ID, p.Base.Version, table.ErrVersionTaken)
	}
	if err := head.CheckSuccessor(); err != nil {
		return nil, fmt.Errorf("memengine: %w", err)
	}
	next, err := e.apply(head, p.Change)
	if err != nil {
		return nil, fmt.Errorf("memengine: commit to table %s version %d: %w", e.name, head.Version, err)
	}
	e.publish(next, p.Transaction)
	return next, nil
}

// ReserveFragments implements table.Committer.
func (e *Engine) ReserveFragments(ctx context.Context, count uint32) (*table.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	head := e.head()
	next, err := e.apply(head, table.Change{Reserve: count})
	if err != nil {
		return nil, fmt.Errorf("memengine: reservation in table %s version %d: %w", e.name, head.Version, err)
	}
	e.publish(next, table.Transaction{ID: rand.Text(), ReadVersion: head.Version, Operation: table.ReserveFragments{Count: count}})
	return next, nil
}

// apply makes the version that the change turns base into. Every check comes
// from the contract of [table.Committer]; base itself is not touched.
func (e *Engine) apply(base *table.Snapshot, c table.Change) (*table.Snapshot, error) {
	next := *base
	next.Fragments = slices.Clone(base.Fragments)
	next.Indexes = slices.Clone(base.Indexes)
	if err := e.applyFragments(&next, c); err != nil {
		return nil, err
	}
	if err := applyIndexes(&next, c); err != nil {
		return nil, err
	}
	if c.DropReuse {
		if base.Reuse == nil || c.Reuse != nil {
			return nil, fmt.Errorf("the fragment reuse index is to be dropped and not there, or to be replaced, too: %w", table.ErrNotFound)
		}
		next.Reuse = nil
	}
	if c.Reuse != nil {
		next.Reuse = &table.ReuseIndexMeta{
			UUID:         uuid(base.Version + 1),
			IndexVersion: c.Reuse.IndexVersion,
			Bytes:        uint64(len(c.Reuse.Content)),
			Handle:       slices.Clone(c.Reuse.Content),
		}
	}
	return &next, nil
}

func (e *Engine) applyFragments(next *table.Snapshot, c table.Change) error {
	at := func(id table.FragmentID) int {
		return slices.IndexFunc(next.Fragments, func(f table.Fragment) bool { return f.ID == id })
	}
	for _, id := range c.Remove {
		i := at(id)
		if i < 0 {
			return fmt.Errorf("fragment %d is to be removed and not there: %w", id, table.ErrNotFound)
		}
		next.Fragments = slices.Delete(next.Fragments, i, i+1)
	}
	for id, ref := range c.SetDeletion {
		i := at(id)
		if i < 0 {
			return fmt.Errorf("fragment %d is to get deletions and not there: %w", id, table.ErrNotFound)
		}
		next.Fragments[i].Deletion = ref
		if err := e.checkDeletion(next.Fragments[i]); err != nil {
			return err
		}
	}
	for _, f := range c.Add {
		// The counter has passed every id that was ever used or reserved.
		if f.ID < next.NextFragmentID || f.ID > table.MaxFragmentID {
			return fmt.Errorf("fragment id %d is not new: the next free one is %d, the last %d", f.ID, next.NextFragmentID, table.MaxFragmentID)
		}
		if err := e.checkFiles(f); err != nil {
			return err
		}
		if err := e.checkDeletion(f); err != nil {
			return err
		}
		next.Fragments = append(next.Fragments, f)
		next.NextFragmentID = f.ID + 1
	}
	if left := uint32(table.MaxFragmentID + 1 - next.NextFragmentID); c.Reserve > left {
		return fmt.Errorf("%d fragment ids are to be reserved and %d are left", c.Reserve, left)
	}
	next.NextFragmentID += table.FragmentID(c.Reserve)
	return nil
}

// checkFiles makes sure that a new fragment can be read.
func (e *Engine) checkFiles(f table.Fragment) error {
	if len(f.Files) != 1 {
		return fmt.Errorf("fragment %d has %d files, this engine keeps a fragment in one", f.ID, len(f.Files))
	}
	file, err := e.find(table.ObjectData, f.Files[0].Path)
	if err != nil {
		return fmt.Errorf("fragment %d: %w", f.ID, err)
	}
	if rows := uint64(file.rows.NumRows()); rows != f.PhysicalRows {
		return fmt.Errorf("fragment %d has %d rows, its file %q has %d", f.ID, f.PhysicalRows, file.Path, rows)
	}
	return nil
}

// checkDeletion makes sure that a fragment's deletion vector, if any, is there.
func (e *Engine) checkDeletion(f table.Fragment) error {
	if f.Deletion == nil {
		return nil
	}
	if _, err := e.find(table.ObjectDeletion, f.Deletion.Path); err != nil {
		return fmt.Errorf("fragment %d: %w", f.ID, err)
	}
	if f.Deletion.Rows > f.PhysicalRows {
		return fmt.Errorf("fragment %d has %d rows, %d of them deleted", f.ID, f.PhysicalRows, f.Deletion.Rows)
	}
	return nil
}

func applyIndexes(next *table.Snapshot, c table.Change) error {
	at := func(id table.UUID) int {
		return slices.IndexFunc(next.Indexes, func(m table.IndexMeta) bool { return m.UUID == id })
	}
	for id, coverage := range c.SetCoverage {
		i := at(id)
		if i < 0 {
			return fmt.Errorf("index segment %s is to get a coverage and not there: %w", id, table.ErrNotFound)
		}
		next.Indexes[i].Coverage = slices.Sorted(slices.Values(coverage))
		next.Indexes[i].CoverageKnown = true
	}
	for _, id := range c.DropIndexes {
		i := at(id)
		if i < 0 {
			return fmt.Errorf("index segment %s is to be dropped and not there: %w", id, table.ErrNotFound)
		}
		next.Indexes = slices.Delete(next.Indexes, i, i+1)
	}
	return nil
}
