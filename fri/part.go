package fri

import (
	"sync"
	"sync/atomic"

	"github.com/rehome-db/rehome/internal/roaringbytes"
)

// part is one source fragment's share of a transition: its survivors as stored,
// of which opening has read no more than the headers. Row counts before the
// fragment come from the digests, so a part is all that the fragment's addresses
// need, and each is checked and decoded by itself.
//
// A part depends on what its source was and on nothing else, so transitions that
// differ only in their destinations' ids share it. It is safe for concurrent use.
type part struct {
	source Digest
	bits   []byte // bitmap of the surviving offsets; empty if there are none

	// The segment, once an address asked for it, in histories without a cache.
	memo atomic.Pointer[decoded]
	mu   sync.Mutex // held while decoding, so that it happens once

	key atomic.Pointer[contentKey] // in the cache used last
}

// decoded is the outcome of decoding a part.
type decoded struct {
	segment *segment
	err     error
}

// segment returns the decoded part and keeps it. The error is a *TransitionError
// that is not placed yet.
func (p *part) segment() (*segment, error) {
	if d := p.memo.Load(); d != nil {
		return d.segment, d.err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	d := p.memo.Load()
	if d == nil {
		d = &decoded{}
		if d.err = p.check(); d.err == nil {
			d.segment = p.bind(newDirectory(p.source, p.bits))
		}
		p.memo.Store(d)
	}
	return d.segment, d.err
}

// bind puts a directory to the part's own bytes.
func (p *part) bind(d directory) *segment { return &segment{directory: d, raw: p.bits} }

// check reads the whole bitmap: only one that means the same set to every reader,
// of rows that the fragment has, as many as the digest says, is asked anything.
func (p *part) check() error {
	s := p.source
	if len(p.bits) == 0 {
		return nil // and no survivors, which opening has checked
	}
	shape, err := roaringbytes.Check(p.bits)
	switch {
	case err != nil:
		return broken(RuleBitmap, "survivors of fragment %d: %w", s.ID, err)
	case shape.Cardinality > 0 && uint64(shape.Max) >= s.PhysicalRows:
		return broken(RuleOwnAddresses, "row %d of fragment %d survives, which has %d rows", shape.Max, s.ID, s.PhysicalRows)
	case shape.Cardinality != s.LiveRows():
		return broken(RuleSurvivors, "%d rows of fragment %d survive, its digest says %d", shape.Cardinality, s.ID, s.LiveRows())
	}
	return nil
}
