package lance

import (
	"strconv"
	"sync/atomic"

	"golang.org/x/sync/singleflight"

	"github.com/rehome-db/rehome/lance/store"
)

// cache keeps what was decoded of immutable objects, found by their identity. It
// only saves time: it may forget or refuse anything.
type cache struct {
	lru     *lru[any]
	flights singleflight.Group
	hits    [entryKinds]atomic.Uint64
	misses  [entryKinds]atomic.Uint64
}

func newCache(maxBytes int64) *cache { return &cache{lru: newLRU[any](maxBytes, nil)} }

// entryKind says what an entry of a cache is.
type entryKind byte

// The kinds, with the types of their values.
const (
	versionEntry     entryKind = iota // *table.Snapshot
	transactionEntry                  // table.Transaction
	deletionEntry                     // *deletion.Vector
	fileEntry                         // *datafile.Metadata
	entryKinds
)

// entry names what is in a cache: the kind of value and the identity of the object
// that it was decoded from.
type entry struct {
	kind entryKind
	key  string
}

// entryOf names a value that is decoded from an object, which lies in the table or in
// the base with the given root. Size and token are left out where the name alone
// is never given to other bytes.
func (e *Engine) entryOf(kind entryKind, base, name string, size uint64, token string) entry {
	b := make([]byte, 0, 128)
	b = append(append(b, 'a'+byte(kind)), e.placeOf(base)...)
	b = append(append(b, 0), name...)
	if size > 0 || token != "" {
		b = strconv.AppendUint(append(b, 0), size, 36)
		b = append(append(b, 0), token...)
	}
	return entry{kind, string(b)}
}

// placeOf is the identity of the store that an object lies in.
func (e *Engine) placeOf(base string) string {
	s, err := e.storeOf(base)
	if err == nil && s.ID() != "" {
		return s.ID()
	}
	// Known to this engine alone.
	return "engine:" + strconv.FormatUint(e.number, 36) + ":" + base
}

// lookup returns an entry's value if it is there. A miss is not counted.
func lookup[V any](c *cache, at entry) (v V, ok bool) {
	found, ok := c.lru.get(at.key, nil)
	if !ok {
		return v, false
	}
	c.hits[at.kind].Add(1)
	return found.(V), true
}

// cached returns an entry's value, which load makes if it is not there, together with
// its cost in bytes. Goroutines that miss the same entry at once make it once. But
// what made one of them fail, such as the end of its context, is nothing to the
// others: they try by themselves.
func cached[V any](c *cache, at entry, load func() (V, int64, error)) (V, error) {
	if v, ok := lookup[V](c, at); ok {
		return v, nil
	}
	c.misses[at.kind].Add(1)
	first := false
	v, err, _ := c.flights.Do(at.key, func() (any, error) {
		first = true
		if v, ok := c.lru.get(at.key, nil); ok {
			return v, nil // since this goroutine looked
		}
		v, cost, err := load()
		if err != nil {
			return nil, err
		}
		kept, _ := c.lru.getOrAdd(at.key, v, cost+int64(len(at.key))+entryOverhead, nil)
		return kept, nil
	})
	switch {
	case err == nil:
		return v.(V), nil
	case first:
		var none V
		return none, err
	}
	own, _, err := load()
	return own, err
}

// entryOverhead is what an entry costs beside its value.
const entryOverhead = 200

// cachedFile is cached for a value that is decoded from an open object. One that has
// no token is not cached.
func cachedFile[V any](e *Engine, kind entryKind, base, name string, f store.File, load func() (V, int64, error)) (V, error) {
	if f.Token() == "" {
		v, _, err := load()
		return v, err
	}
	return cached(e.cache, e.entryOf(kind, base, name, uint64(f.Size()), f.Token()), load)
}
