package cache

import (
	"context"
	"sync/atomic"
)

// Cache keeps what was decoded of immutable objects, found by their identity. It
// only saves time: it may forget or refuse anything.
type Cache struct {
	lru     *LRU[any]
	flights flights
	hits    [entryKinds]atomic.Uint64
	misses  [entryKinds]atomic.Uint64
}

// New returns an empty cache that keeps up to maxBytes.
func New(maxBytes int64) *Cache { return &Cache{lru: NewLRU[any](maxBytes, nil)} }

// Close drops everything, and takes in nothing more.
func (c *Cache) Close() { c.lru.Close() }

// Counts returns how often values of a kind were found, and had to be made.
func (c *Cache) Counts(kind Kind) (hits, misses uint64) {
	return c.hits[kind].Load(), c.misses[kind].Load()
}

// Size returns how many values made room for others, and the bytes that those which
// are there are estimated to take.
func (c *Cache) Size() (evicted uint64, bytes int64) {
	c.lru.mu.Lock()
	defer c.lru.mu.Unlock()
	return c.lru.evicted, c.lru.cost
}

// Kind says what an entry of a cache is.
type Kind byte

// The kinds, with the types of their values.
const (
	Versions     Kind = iota // *table.Snapshot
	Transactions             // table.Transaction
	Deletions                // *deletion.Vector
	Files                    // *datafile.Metadata
	entryKinds
)

// Entry names what is in a cache: the kind of value and the identity of the object
// that it was decoded from.
type Entry struct {
	Kind Kind
	Key  string
}

// Lookup returns an entry's value if it is there. A miss is not counted.
func Lookup[V any](c *Cache, at Entry) (v V, ok bool) {
	found, ok := c.lru.Get(at.Key, nil)
	if !ok {
		return v, false
	}
	c.hits[at.Kind].Add(1)
	return found.(V), true
}

// Load returns an entry's value, which load makes if it is not there, together with
// its cost in bytes. Goroutines that miss the same entry at once make it once. But
// what made one of them fail, such as the end of its context, is nothing to the
// others: they try by themselves. None waits longer than its own context.
func Load[V any](ctx context.Context, c *Cache, at Entry, load func() (V, int64, error)) (V, error) {
	if v, ok := Lookup[V](c, at); ok {
		return v, nil
	}
	c.misses[at.Kind].Add(1)
	v, first, err := c.flights.do(ctx, at.Key, func() (any, error) {
		if v, ok := c.lru.Get(at.Key, nil); ok {
			return v, nil // since this goroutine looked
		}
		v, cost, err := load()
		if err != nil {
			return nil, err
		}
		kept, _ := c.lru.GetOrAdd(at.Key, v, cost+int64(len(at.Key))+entryOverhead, nil)
		return kept, nil
	})
	if err == nil {
		return v.(V), nil
	}
	if first || ctx.Err() != nil {
		var none V
		return none, err
	}
	own, _, err := load()
	return own, err
}

// entryOverhead is what an entry costs beside its value.
const entryOverhead = 200
