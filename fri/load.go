package fri

import (
	"context"
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// PartitionOpener is implemented by an engine whose tables can have stable
// partitions.
type PartitionOpener interface {
	// Partitions returns what opens the label files that the version's history
	// refers to. It reads nothing.
	Partitions(s *table.Snapshot) (PartitionSource, error)
}

// Cacher is implemented by an engine that has a cache for the histories of its
// tables.
type Cacher interface {
	// ReuseCache returns the cache, nil if there is none.
	ReuseCache() *Cache
}

// Load reads the history of a version, empty if it has none: in the engine's cache
// if that is [Cacher] and has one, and with a way to its label files if it is a
// [PartitionOpener]; those are read under ctx, which has to last as long as the
// history is used. Damaged transitions are set aside, see [Recover].
func Load(ctx context.Context, e table.Loader, s *table.Snapshot) (*History, error) {
	content, err := e.ReuseIndex(ctx, s)
	if err != nil {
		return nil, err
	}
	h := &History{}
	if s.Reuse != nil {
		if h, err = Recover(content, s.Reuse.IndexVersion); err != nil {
			return nil, fmt.Errorf("fri: table %s version %d: %w", s.Table, s.Version, err)
		}
	}
	if r, ok := table.As[Cacher](e); ok {
		if cache := r.ReuseCache(); cache != nil {
			h = cache.Attach(h)
		}
	}
	if p, ok := table.As[PartitionOpener](e); ok {
		open, err := p.Partitions(s)
		if err != nil {
			return nil, err
		}
		h = h.WithPartitions(ctx, open)
	}
	return h, nil
}
