package memengine

import (
	"context"
	"fmt"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// ReadDeletions implements table.DeletionStore.
func (e *Engine) ReadDeletions(ctx context.Context, s *table.Snapshot, f table.Fragment) (table.OffsetSet, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	v, err := e.deletions(f)
	if err != nil {
		return nil, fmt.Errorf("memengine: table %s version %d: %w", e.name, s.Version, err)
	}
	return v, nil
}

// deletions finds the fragment's deletion vector and checks that it fits.
func (e *Engine) deletions(f table.Fragment) (*deletion.Vector, error) {
	if f.Deletion == nil {
		return deletion.Of(), nil
	}
	o, err := e.get(table.ObjectDeletion, f.Deletion.Path)
	if err != nil {
		return nil, fmt.Errorf("fragment %d: %w", f.ID, err)
	}
	if err := o.deleted.Validate(f.PhysicalRows, f.Deletion.Rows); err != nil {
		return nil, table.Corruptf("fragment %d: %s: %w", f.ID, o.Path, err)
	}
	return o.deleted, nil
}

// WriteDeletions implements table.DeletionStore. The set is copied: the caller's
// may be of any type and may change.
func (e *Engine) WriteDeletions(ctx context.Context, id table.FragmentID, readVersion uint64, deleted table.OffsetSet) (table.DeletionRef, error) {
	if err := ctx.Err(); err != nil {
		return table.DeletionRef{}, err
	}
	v := deletion.Collect(deleted.All())
	o := e.put(object{
		Object:  table.Object{Kind: table.ObjectDeletion, Bytes: 4 * v.Cardinality()}, // as if a list of uint32
		deleted: v,
	}, fmt.Sprintf("deletions/%d-%d", id, readVersion))
	return table.DeletionRef{Path: o.Path, Rows: v.Cardinality()}, nil
}

// addDeletions is the union of the fragment's deletions and offsets.
func (e *Engine) addDeletions(f table.Fragment, offsets []uint32) (*deletion.Vector, error) {
	old, err := e.deletions(f)
	if err != nil {
		return nil, err
	}
	all := old.Union(deletion.Of(offsets...))
	if err := all.Validate(f.PhysicalRows, 0); err != nil {
		return nil, fmt.Errorf("fragment %d: %w", f.ID, err)
	}
	return all, nil
}
