package objects

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rehome-db/rehome/lance/cache"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// CleanupTimeout bounds what is done after a change's context may be over: finding out
// the outcome of a commit, and deleting what a failed attempt wrote.
const CleanupTimeout = 30 * time.Second

// Root is where the objects of one table are: its own store, and those of the tables
// that it shares files with. It is safe for concurrent use.
type Root struct {
	// Store is the table's own.
	Store store.Store
	// Cache keeps what was decoded of the objects.
	Cache *cache.Cache

	number uint64 // no other root's
	closed atomic.Bool
	files  *cache.LRU[*DataFile]
	bases  baseStores
}

// roots counts them.
var roots atomic.Uint64

// NewRoot returns the root of the table in a store. What is decoded is kept in c, and
// up to openFiles data files stay open between reads. openBase opens the root of
// another table, by the path or URI that this one records for it.
func NewRoot(s store.Store, c *cache.Cache, openFiles int, openBase func(root string) (store.Store, error)) *Root {
	return &Root{
		Store: s, Cache: c, number: roots.Add(1), files: newFileCache(openFiles),
		bases: baseStores{open: openBase},
	}
}

// Close closes the files that are open. Reads that are under way fail.
func (r *Root) Close() {
	if !r.closed.Swap(true) {
		r.files.Close()
	}
}

// Ready is how every method of an engine begins: it fails once the root is closed or
// ctx is over.
func (r *Root) Ready(ctx context.Context) error {
	if r.closed.Load() {
		return fmt.Errorf("lance: table %s: the engine is closed", r.Store)
	}
	return ctx.Err()
}

// Stat returns the size of an object in bytes. It is table.ErrNotFound if there is
// none.
func (r *Root) Stat(ctx context.Context, o table.Object) (uint64, error) {
	if err := r.Ready(ctx); err != nil {
		return 0, err
	}
	if err := r.checkObject(o); err != nil {
		return 0, err
	}
	n, err := r.Store.Stat(ctx, o.Path)
	if err != nil {
		return 0, fmt.Errorf("lance: table %s: %w", r.Store, err)
	}
	return n, nil
}

// Delete deletes an object. That it is not there is no error.
func (r *Root) Delete(ctx context.Context, o table.Object) error {
	if err := r.Ready(ctx); err != nil {
		return err
	}
	if err := r.checkObject(o); err != nil {
		return err
	}
	if err := r.Store.Delete(ctx, o.Path); err != nil {
		return fmt.Errorf("lance: table %s: %w", r.Store, err)
	}
	return nil
}

// deleteAll deletes what a failed change wrote, also when ctx is over.
func (r *Root) deleteAll(ctx context.Context, objects []table.Object) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanupTimeout)
	defer cancel()
	var errs []error
	for _, o := range objects {
		errs = append(errs, r.Delete(ctx, o))
	}
	return errors.Join(errs...)
}

// Missing marks the error of opening an object that a version refers to: if it
// is not there the table is damaged, which a version that is not there does not say.
func Missing(err error) error {
	if errors.Is(err, table.ErrNotFound) {
		return table.Corruptf("the table refers to it and it does not exist: %w", err)
	}
	return err
}

// baseStores opens the roots of other tables whose files this one shares, once
// each.
type baseStores struct {
	open func(root string) (store.Store, error)

	mu sync.Mutex
	by map[string]store.Store
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

// StoreOf returns the store that an object lies in: the table's own, or that of a
// base.
func (r *Root) StoreOf(base string) (store.Store, error) {
	if base == "" {
		return r.Store, nil
	}
	return r.bases.get(base)
}

// Place is the identity of the store that an object lies in.
func (r *Root) Place(base string) string {
	s, err := r.StoreOf(base)
	if err == nil && s.ID() != "" {
		return s.ID()
	}
	// Known to this engine alone.
	return "engine:" + strconv.FormatUint(r.number, 36) + ":" + base
}

// Entry names a value that is decoded from an object, which lies in the table or in
// the base with the given root. Size and token are left out where the name alone
// is never given to other bytes.
func (r *Root) Entry(kind cache.Kind, base, name string, size uint64, token string) cache.Entry {
	b := make([]byte, 0, 128)
	b = append(append(b, 'a'+byte(kind)), r.Place(base)...)
	b = append(append(b, 0), name...)
	if size > 0 || token != "" {
		b = strconv.AppendUint(append(b, 0), size, 36)
		b = append(append(b, 0), token...)
	}
	return cache.Entry{Kind: kind, Key: string(b)}
}

// Cached is [cache.Load] for a value that is decoded from an open object. One that has
// no token is not cached.
func Cached[V any](ctx context.Context, r *Root, kind cache.Kind, base, name string, f store.File, load func() (V, int64, error)) (V, error) {
	if f.Token() == "" {
		v, _, err := load()
		return v, err
	}
	return cache.Load(ctx, r.Cache, r.Entry(kind, base, name, uint64(f.Size()), f.Token()), load)
}
