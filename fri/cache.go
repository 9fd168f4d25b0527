package fri

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
	"golang.org/x/sync/singleflight"
)

// DefaultCacheBytes is how much a cache holds if it is not told.
const DefaultCacheBytes = 64 << 20

// CacheOptions say how large a cache may become.
type CacheOptions struct {
	// MaxBytes is the most bytes of decoded segments that the cache holds;
	// [DefaultCacheBytes] if it is 0.
	MaxBytes int64
}

// Cache holds the decoded segments of any number of histories, of any number of
// tables, bounded. What it holds is found by content: by the bytes of
// a source fragment's bitmap and its rows. So the successive versions of a table's
// history share what they have in common, and nothing ever has to be invalidated.
// Safe for concurrent use.
//
// A cache only saves time. It may drop, evict or refuse anything, and the answers
// are the same: a caller uses the segment that it decoded whether the cache kept it or
// not, and a miss means decoding and never "unaffected". Goroutines that miss the same
// segment at once decode it once.
//
// A history in a cache holds at most the one segment that it used last by itself;
// a [Translator] holds those that it used.
type Cache struct {
	seeds   [2]maphash.Seed
	flights singleflight.Group

	// mu is held for reading around every use of the cache: unlike its other
	// methods, Close must not run beside any.
	mu      sync.RWMutex
	entries *ristretto.Cache[string, *directory] // nil once closed

	hits, misses, drops, evictions atomic.Uint64
	decodes                        atomic.Uint64
	decodeTime                     atomic.Int64
}

// Metrics is what a cache did so far.
type Metrics struct {
	// Hits and Misses count questions to the cache, not translated addresses: one
	// for each segment that a translator begins to use.
	Hits, Misses uint64
	// Decodes is the number of segments decoded. It is below Misses where several
	// goroutines wanted the same one.
	Decodes uint64
	// DecodeTime is the time spent on that, checks included.
	DecodeTime time.Duration
	// Drops is the number of segments that the cache did not take in, because it
	// was too busy or valued others higher, or because they exceed it.
	Drops uint64
	// Evictions is the number of segments that made room for others.
	Evictions uint64
	// Bytes is what the cache holds now, its own bookkeeping included.
	Bytes int64
}

// NewCache returns a cache, which is to be closed.
func NewCache(o CacheOptions) (*Cache, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultCacheBytes
	}
	if o.MaxBytes < 0 {
		return nil, fmt.Errorf("fri: cache of %d bytes", o.MaxBytes)
	}
	c := &Cache{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	entries, err := ristretto.NewCache(&ristretto.Config[string, *directory]{
		// Frequencies are kept for ten times as many segments as fit, at the size
		// of one of a fragment of a million rows, within reason.
		NumCounters: min(max(10*(o.MaxBytes>>14), 1<<10), 1<<20),
		MaxCost:     o.MaxBytes,
		BufferItems: 64,
		KeyToHash:   hashKey,
		OnEvict:     func(*ristretto.Item[*directory]) { c.evictions.Add(1) },
		OnReject:    func(*ristretto.Item[*directory]) { c.drops.Add(1) },
	})
	if err != nil {
		return nil, fmt.Errorf("fri: cache: %w", err)
	}
	c.entries = entries
	return c, nil
}

// Close ends the cache's goroutines and drops what it holds. Histories that were
// attached to it still answer, and decode each time that they need to.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries != nil {
		c.entries.Close()
		c.entries = nil
	}
	return nil
}

// Open is [Decode] and [Cache.Attach].
func (c *Cache) Open(content []byte, indexVersion int32) (*History, error) {
	h, err := Decode(content, indexVersion)
	if err != nil {
		return nil, err
	}
	return c.Attach(h), nil
}

// Attach returns the same history with its segments in the cache, and so will be
// all that is appended to it. The history itself stays as it is; used beside the
// attached one, it holds segments of its own.
func (c *Cache) Attach(h *History) *History {
	out := *h
	out.attached = &attachment{cache: c}
	return &out
}

// Metrics returns a snapshot; its numbers are each exact, and not all of the same
// instant.
func (c *Cache) Metrics() Metrics {
	m := Metrics{
		Hits: c.hits.Load(), Misses: c.misses.Load(), Drops: c.drops.Load(), Evictions: c.evictions.Load(),
		Decodes: c.decodes.Load(), DecodeTime: time.Duration(c.decodeTime.Load()),
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.entries != nil {
		m.Bytes = c.entries.MaxCost() - c.entries.RemainingCost()
	}
	return m
}

// segment returns the decoded part, from the cache if it is there.
func (c *Cache) segment(p *part) (*segment, error) {
	key := c.contentKey(p)
	if d, ok := c.get(key); ok {
		c.hits.Add(1)
		return p.bind(*d), nil
	}
	c.misses.Add(1)
	v, err, _ := c.flights.Do(key, func() (any, error) {
		start := time.Now()
		if err := p.check(); err != nil {
			return nil, err
		}
		d := newDirectory(p.source, p.bits)
		c.decodes.Add(1)
		c.decodeTime.Add(int64(time.Since(start)))
		c.put(key, &d)
		return &d, nil
	})
	if err != nil {
		// The flight may have been that of another fragment with the same bytes;
		// the error must name this one.
		var e *TransitionError
		if own := p.check(); errors.As(own, &e) {
			err = own
		}
		return nil, err
	}
	return p.bind(*v.(*directory)), nil
}

func (c *Cache) get(key string) (*directory, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.entries == nil {
		return nil, false
	}
	return c.entries.Get(key)
}

func (c *Cache) put(key string, d *directory) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.entries != nil && !c.entries.Set(key, d, int64(d.bytes())) {
		c.drops.Add(1)
	}
}

// contentKey names a part by all that its directory depends on: the bytes, the rows
// and how many of them live. The hash has 128 bits and secret seeds of its own, so
// that a table made to collide with another's cannot be. It is computed once for a
// part and cache.
func (c *Cache) contentKey(p *part) string {
	if k := p.key.Load(); k != nil && k.cache == c {
		return k.key
	}
	b := make([]byte, 0, 32)
	for _, seed := range c.seeds {
		b = binary.LittleEndian.AppendUint64(b, maphash.Bytes(seed, p.bits))
	}
	b = binary.LittleEndian.AppendUint64(b, p.source.PhysicalRows)
	b = binary.LittleEndian.AppendUint64(b, p.source.DeletedRows)
	k := &contentKey{cache: c, key: string(b)}
	p.key.Store(k)
	return k.key
}

// contentKey is a part's name in a cache.
type contentKey struct {
	cache *Cache
	key   string
}

// hashKey gives the cache both halves of a key's hash, with the row counts mixed in;
// it compares both. The second must not be 0, which it takes for "not known".
func hashKey(key string) (uint64, uint64) {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64([]byte(key[8*i : 8*i+8])) }
	rows := word(2) ^ word(3)<<32
	return word(0) ^ rows, word(1) ^ rows*0x9e3779b97f4a7c15 | 1
}

// inCacheOf attaches h, made of other, to the cache that other is in.
func (h *History) inCacheOf(other *History) *History {
	if other.attached == nil {
		return h
	}
	return other.attached.cache.Attach(h)
}

// attachment is a history's place in a cache.
type attachment struct {
	cache  *Cache
	recent atomic.Pointer[recent]
}

// recent is the segment used last. It is kept so that translating address after
// address of one fragment does not decode it each time if the cache will not have
// it.
type recent struct {
	hop     int
	segment *segment
}

func (a *attachment) segment(hop int, p *part) (*segment, error) {
	if r := a.recent.Load(); r != nil && r.hop == hop {
		return r.segment, nil
	}
	s, err := a.cache.segment(p)
	if err == nil {
		a.recent.Store(&recent{hop, s})
	}
	return s, err
}
