package lance

import (
	"fmt"
	"sync"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/lance/cache"
	"github.com/rehome-db/rehome/rebase"
)

// SessionOptions say how large a [Session] may become. The zero value is good.
type SessionOptions struct {
	// MaxBytes bounds what is kept of versions, transactions, deletion vectors and
	// the metadata of data files, as estimated. The default is 256 MiB.
	MaxBytes int64
	// ReuseBytes bounds the decoded segments of fragment reuse indexes. The default
	// is fri.DefaultSessionBytes.
	ReuseBytes int64
	// AddressBytes bounds the changes of address. The default is 64 MiB.
	AddressBytes int64
}

// EnsureDefaults sets what is not set.
func (o *SessionOptions) EnsureDefaults() {
	if o.MaxBytes == 0 {
		o.MaxBytes = 256 << 20
	}
	if o.ReuseBytes == 0 {
		o.ReuseBytes = fri.DefaultCacheBytes
	}
	if o.AddressBytes == 0 {
		o.AddressBytes = 64 << 20
	}
}

// Validate says what is wrong with the options.
func (o *SessionOptions) Validate() error {
	for name, n := range map[string]int64{"MaxBytes": o.MaxBytes, "ReuseBytes": o.ReuseBytes, "AddressBytes": o.AddressBytes} {
		if n < 0 {
			return fmt.Errorf("lance: session: %s is %d", name, n)
		}
	}
	return nil
}

// Session holds what engines decoded, so that none decodes it again: any number of
// engines, of any tables and of the same, given it as [Options.Session]. It is safe
// for concurrent use.
//
// A session is never asked whether something is still so. What it holds is immutable
// and found by identity: the store's place and the object's name, size and token
// ([store.Info.Token]) for versions and data files, the name alone for deletion files,
// whose names are random, the content for segments of fragment reuse indexes, the
// transaction's id for changes of address. Which version is the latest, and whether
// there is one, is asked of the store each time; so a table that was dropped and made
// again, or a version that was cleaned up, is seen as it is.
//
// A session changes no result, only what is read for it.
type Session struct {
	cache *cache.Cache

	// Both are nil once the session is closed. mu is held for reading while the
	// addresses are used.
	mu        sync.RWMutex
	reuse     *fri.Cache
	addresses rebase.Memory
}

// NewSession returns an empty session, which is to be closed when no engine uses it
// any more.
func NewSession(o SessionOptions) (*Session, error) {
	o.EnsureDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	reuse, err := fri.NewCache(fri.CacheOptions{MaxBytes: o.ReuseBytes})
	if err != nil {
		return nil, fmt.Errorf("lance: session: %w", err)
	}
	return &Session{cache: cache.New(o.MaxBytes), reuse: reuse, addresses: rebase.NewMemory(o.AddressBytes)}, nil
}

// Close drops everything. Engines that are given the session go on without.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.Close()
	if s.reuse == nil {
		return nil
	}
	err := s.reuse.Close()
	s.reuse, s.addresses = nil, nil
	return err
}

// CacheMetrics counts questions for one kind of thing.
type CacheMetrics struct {
	// Hits were answered from memory, Misses from the store.
	Hits, Misses uint64
}

// SessionMetrics is what a session did so far.
type SessionMetrics struct {
	Versions, Transactions, Deletions, Files CacheMetrics
	// Evictions is the number of values of these kinds that made room for others,
	// and Bytes what they are estimated to take now.
	Evictions uint64
	Bytes     int64
	// Reuse is about segments of fragment reuse indexes. It is zero once the
	// session is closed.
	Reuse fri.Metrics
}

// Metrics returns a snapshot; its numbers are each exact, and not all of the same
// instant.
func (s *Session) Metrics() SessionMetrics {
	c := s.cache
	count := func(k cache.Kind) CacheMetrics {
		hits, misses := c.Counts(k)
		return CacheMetrics{hits, misses}
	}
	m := SessionMetrics{
		Versions: count(cache.Versions), Transactions: count(cache.Transactions),
		Deletions: count(cache.Deletions), Files: count(cache.Files),
	}
	m.Evictions, m.Bytes = c.Size()
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.reuse != nil {
		m.Reuse = s.reuse.Metrics()
	}
	return m
}

// ReuseCache returns where histories of this engine's table keep what they decode,
// nil if the engine was given no session. It implements fri.Cacher.
func (e *Engine) ReuseCache() *fri.Cache {
	s := e.opts.Session
	if s == nil {
		return nil
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.reuse
}

var _ fri.Cacher = (*Engine)(nil)
