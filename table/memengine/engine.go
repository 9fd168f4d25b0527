package memengine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// Engine is one table in memory. Make it with [New]. It is safe for concurrent
// use, as the contract asks.
type Engine struct {
	name string

	mu       sync.RWMutex
	versions []version         // versions[i] is version i+1
	objects  map[string]object // by path
	made     int               // objects ever made, which keeps their paths unique
}

// version is what one commit left behind. Both are immutable.
type version struct {
	snapshot    *table.Snapshot
	transaction table.Transaction
}

// object is the content of one path: rows or deleted, by its kind. Immutable.
type object struct {
	table.Object
	rows    arrow.RecordBatch
	deleted *deletion.Vector
}

var _ table.Engine = (*Engine)(nil)

// New returns a table with the given columns and no rows, at version 1. The name
// is only for messages.
func New(name string, schema table.Schema) *Engine {
	e := &Engine{name: name, objects: map[string]object{}}
	e.publish(&table.Snapshot{Table: name, Schema: schema, DataFormat: "memory"},
		table.Transaction{ID: "create", Operation: table.Unknown{Name: "create"}})
	return e
}

// head is the newest version. The caller holds e.mu.
func (e *Engine) head() *table.Snapshot { return e.versions[len(e.versions)-1].snapshot }

// publish makes next the newest version. The caller holds e.mu, except New.
func (e *Engine) publish(next *table.Snapshot, t table.Transaction) {
	next.Version = uint64(len(e.versions) + 1)
	next.Timestamp = time.Now()
	t.Version = next.Version
	e.versions = append(e.versions, version{snapshot: next, transaction: t})
}

// Load implements table.Loader.
func (e *Engine) Load(ctx context.Context, v uint64) (*table.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	latest := uint64(len(e.versions))
	if v == 0 {
		v = latest
	}
	if v > latest {
		return nil, fmt.Errorf("memengine: table %s has no version %d, the latest is %d: %w", e.name, v, latest, table.ErrNotFound)
	}
	return e.versions[v-1].snapshot, nil
}

// TransactionsSince implements table.Loader.
func (e *Engine) TransactionsSince(ctx context.Context, after, upTo uint64) ([]table.Transaction, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	latest := uint64(len(e.versions))
	if upTo == 0 {
		upTo = latest
	}
	if after > upTo || upTo > latest {
		return nil, fmt.Errorf("memengine: table %s has no versions %d to %d, the latest is %d: %w", e.name, after, upTo, latest, table.ErrNotFound)
	}
	var out []table.Transaction
	for _, v := range e.versions[after:upTo] {
		out = append(out, v.transaction)
	}
	return out, nil
}

// ReuseIndex implements table.Loader. The entry's handle is the content itself.
func (e *Engine) ReuseIndex(ctx context.Context, s *table.Snapshot) ([]byte, error) {
	if err := ctx.Err(); err != nil || s.Reuse == nil {
		return nil, err
	}
	return slices.Clone(s.Reuse.Handle.([]byte)), nil
}

// put stores an object under a path that no other object ever had.
func (e *Engine) put(o object, stem string) table.Object {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.made++
	o.Path = fmt.Sprintf("%s-%d", stem, e.made)
	e.objects[o.Path] = o
	return o.Object
}

// get finds an object of the kind that the caller expects.
func (e *Engine) get(kind table.ObjectKind, path string) (object, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.find(kind, path)
}

// find is get for callers that hold e.mu.
func (e *Engine) find(kind table.ObjectKind, path string) (object, error) {
	o, ok := e.objects[path]
	if !ok || o.Kind != kind {
		return object{}, fmt.Errorf("memengine: table %s has no %s object %q: %w", e.name, kind, path, table.ErrNotFound)
	}
	return o, nil
}

// Stat implements table.ObjectStore.
func (e *Engine) Stat(ctx context.Context, o table.Object) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	found, err := e.get(o.Kind, o.Path)
	return found.Bytes, err
}

// Delete implements table.ObjectStore.
func (e *Engine) Delete(ctx context.Context, o table.Object) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.objects, o.Path)
	return nil
}

// Objects lists every object that exists, by path, whether a version refers to
// it or not. Tests compare lists to find what a failed attempt left behind.
func (e *Engine) Objects(ctx context.Context) ([]table.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	out := make([]table.Object, 0, len(e.objects))
	for _, o := range e.objects {
		out = append(out, o.Object)
	}
	slices.SortFunc(out, func(a, b table.Object) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}
