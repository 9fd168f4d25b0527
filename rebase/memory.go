package rebase

import (
	"container/list"
	"sync"

	"github.com/rehome-db/rehome/table"
)

// MemoryKey names a rewrite: the table as its snapshots name it, and the id of the
// transaction that committed the rewrite. Both are immutable, so what is remembered
// under a key always stays right.
type MemoryKey struct{ Table, Transaction string }

// Memory remembers changes of address, so that whoever meets a rewrite in the same
// process need not find out again where its rows went. A session is one. It may
// forget anything at any time, and must be safe for concurrent use.
type Memory interface {
	Put(key MemoryKey, c *ChangeOfAddress)
	// Get returns what was put, nil if nothing was or it is forgotten.
	Get(key MemoryKey) *ChangeOfAddress
}

// Rememberer is implemented by an engine that has a [Memory], in its session. It is
// optional. Changes that are committed to it then need not be told of one.
type Rememberer interface {
	// Memory returns the engine's memory, nil if it has none.
	Memory() Memory
}

// memoryOf returns the memory of an engine, nil if it has none.
func memoryOf(e any) Memory {
	if r, ok := table.As[Rememberer](e); ok {
		return r.Memory()
	}
	return nil
}

// NewMemory returns a Memory that holds up to maxBytes bytes ([ChangeOfAddress.Bytes])
// and forgets what was not used for the longest time.
func NewMemory(maxBytes int64) Memory {
	return &recentMemory{max: maxBytes, entries: map[MemoryKey]*list.Element{}, order: list.New()}
}

type recentMemory struct {
	mu      sync.Mutex
	max     int64
	bytes   int64
	entries map[MemoryKey]*list.Element
	order   *list.List // of remembered, the one used last in front
}

type remembered struct {
	key   MemoryKey
	c     *ChangeOfAddress
	bytes int64
}

func (m *recentMemory) Put(key MemoryKey, c *ChangeOfAddress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(m.entries[key])
	r := remembered{key, c, c.Bytes()}
	m.entries[key] = m.order.PushFront(r)
	for m.bytes += r.bytes; m.bytes > m.max; {
		m.drop(m.order.Back())
	}
}

func (m *recentMemory) Get(key MemoryKey) *ChangeOfAddress {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, ok := m.entries[key]
	if !ok {
		return nil
	}
	m.order.MoveToFront(at)
	return at.Value.(remembered).c
}

// drop forgets an entry, if there is one. The caller holds m.mu.
func (m *recentMemory) drop(at *list.Element) {
	if at == nil {
		return
	}
	r := m.order.Remove(at).(remembered)
	delete(m.entries, r.key)
	m.bytes -= r.bytes
}
