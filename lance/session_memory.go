package lance

import "github.com/rehome-db/rehome/rebase"

// Memory implements rebase.Rememberer: a change that is committed through an engine
// finds in its session where rows went in compactions that were committed through
// this engine, or another with the session. It is nil if the engine was given no
// session.
func (e *Engine) Memory() rebase.Memory {
	s := e.opts.Session
	if s == nil {
		return nil
	}
	return &tableMemory{session: s, place: e.root.Place("")}
}

// tableMemory is one table's part of a session's memory.
type tableMemory struct {
	session *Session
	place   string
}

// key names the table by its place: a snapshot names it for people only.
func (m *tableMemory) key(k rebase.MemoryKey) rebase.MemoryKey {
	return rebase.MemoryKey{Table: m.place, Transaction: k.Transaction}
}

// Put implements rebase.Memory.
func (m *tableMemory) Put(k rebase.MemoryKey, c *rebase.ChangeOfAddress) {
	m.session.mu.RLock()
	defer m.session.mu.RUnlock()
	if m.session.addresses != nil {
		m.session.addresses.Put(m.key(k), c)
	}
}

// Get implements rebase.Memory.
func (m *tableMemory) Get(k rebase.MemoryKey) *rebase.ChangeOfAddress {
	m.session.mu.RLock()
	defer m.session.mu.RUnlock()
	if m.session.addresses == nil {
		return nil
	}
	return m.session.addresses.Get(m.key(k))
}

var _ rebase.Rememberer = (*Engine)(nil)
