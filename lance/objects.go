package lance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// objectDirs is where objects of each kind lie.
var objectDirs = map[table.ObjectKind]string{
	table.ObjectData:        dataDir,
	table.ObjectDeletion:    deletionsDir,
	table.ObjectReuseIndex:  indicesDir,
	table.ObjectTransaction: transactionsDir,
	table.ObjectIndex:       indicesDir,
	table.ObjectPartition:   partitionsDir,
}

// checkObject refuses a path that is not where objects of the kind lie. The names
// come from results of tasks that may have run elsewhere, and what is asked may be
// to delete.
func (e *Engine) checkObject(o table.Object) error {
	dir, known := objectDirs[o.Kind]
	if !known {
		return fmt.Errorf("lance: table %s: %q is no kind of object", e.store, o.Kind)
	}
	if !strings.HasPrefix(o.Path, dir+"/") {
		return fmt.Errorf("lance: table %s: %s is no %s object: those lie in %s", e.store, o.Path, o.Kind, dir)
	}
	return nil
}

// Stat implements table.ObjectStore.
func (e *Engine) Stat(ctx context.Context, o table.Object) (uint64, error) {
	if err := e.check(ctx); err != nil {
		return 0, err
	}
	if err := e.checkObject(o); err != nil {
		return 0, err
	}
	n, err := e.store.Stat(ctx, o.Path)
	if err != nil {
		return 0, fmt.Errorf("lance: table %s: %w", e.store, err)
	}
	return n, nil
}

// Delete implements table.ObjectStore.
func (e *Engine) Delete(ctx context.Context, o table.Object) error {
	if err := e.check(ctx); err != nil {
		return err
	}
	if err := e.checkObject(o); err != nil {
		return err
	}
	if err := e.store.Delete(ctx, o.Path); err != nil {
		return fmt.Errorf("lance: table %s: %w", e.store, err)
	}
	return nil
}

// missing marks the error of opening an object that a version refers to: if it
// is not there the table is damaged, which a version that is not there does not say.
func missing(err error) error {
	if errors.Is(err, table.ErrNotFound) {
		return table.Corruptf("the table refers to it and it does not exist: %w", err)
	}
	return err
}

// baseStores opens the roots of other tables whose files this one shares, once
// each.
type baseStores struct {
	open func(root string) (store.Store, error)
	mu   sync.Mutex
	by   map[string]store.Store
}

func (b *baseStores) get(root string) (store.Store, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.by[root]; ok {
		return s, nil
	}
	s, err := b.open(root)
	if err != nil {
		return nil, err
	}
	if b.by == nil {
		b.by = map[string]store.Store{}
	}
	b.by[root] = s
	return s, nil
}

// storeOf returns the store that an object lies in: the table's own, or that of a
// base.
func (e *Engine) storeOf(base string) (store.Store, error) {
	if base == "" {
		return e.store, nil
	}
	return e.bases.get(base)
}
