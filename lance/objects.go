package lance

import (
	"context"
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// Stat implements table.ObjectStore.
func (e *Engine) Stat(ctx context.Context, o table.Object) (uint64, error) {
	return e.root.Stat(ctx, o)
}

// Delete implements table.ObjectStore.
func (e *Engine) Delete(ctx context.Context, o table.Object) error {
	return e.root.Delete(ctx, o)
}

// ReadDeletions implements table.DeletionStore. The result is a *deletion.Vector.
func (e *Engine) ReadDeletions(ctx context.Context, s *table.Snapshot, f table.Fragment) (table.OffsetSet, error) {
	if err := e.root.Ready(ctx); err != nil {
		return nil, err
	}
	v, err := e.root.Deletions(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("lance: table %s version %d: %w", e.root.Store, s.Version, err)
	}
	return v, nil
}

// WriteDeletions implements table.DeletionStore.
func (e *Engine) WriteDeletions(ctx context.Context, id table.FragmentID, readVersion uint64, deleted table.OffsetSet) (table.DeletionRef, error) {
	if err := e.root.Ready(ctx); err != nil {
		return table.DeletionRef{}, err
	}
	ref, err := e.root.WriteDeletions(ctx, id, readVersion, deleted)
	if err != nil {
		return table.DeletionRef{}, fmt.Errorf("lance: table %s: deletion vector of fragment %d: %w", e.root.Store, id, err)
	}
	return ref, nil
}
