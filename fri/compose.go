package fri

import (
	"math"

	"github.com/rehome-db/rehome/table"
)

// walker composes the rewrites that rows went through, as far as it is asked. It
// is for addresses that ascend; others get the right answers at the price of
// looking them up. Not safe for concurrent use.
//
// For each rewrite on the way of the last address it keeps the rows around that
// address which share its fate in this rewrite, and those which share it from here
// on to the present. The way of the next address is followed only until it meets one
// of the latter, and looked up only where it leaves one of the former. So each
// rewrite is looked up once for each of its own runs that is passed, however the
// other rewrites cut them.
//
//	asked     depth 0          depth 1          depth 2
//	0:5       rows 4-9 of 0 -> rows 0-99 of 7 -> rows 0-99 of 9    three lookups
//	0:12      rows 11-20 of 0 -> in 0-99 of 7, known from there    one lookup
type walker struct {
	t     *Translator
	known []level // by depth
	// steps counts the lookups in one rewrite.
	steps int
}

// level is what is known of one rewrite on the way.
type level struct {
	own  stretch // fate in this rewrite alone
	more bool    // own leads to a fragment that was rewritten
	all  stretch // fate from here on
}

// stretch is the addresses from..last (inclusive: the last one of all has no
// successor) of one fragment, which share their fate.
type stretch struct {
	from, last uint64
	delta      uint64 // new address minus old, modulo 2^64
	state      State
	err        error // if the state is Untranslatable
}

func (s *stretch) has(a uint64) bool { return a-s.from <= s.last-s.from }

// seek returns a stretch that has the address. It is good until the next seek.
//
// Fragment 0 was rewritten into 7 (rows 4-9 to 7:0-5, row 10 died, rows 11-20 to
// 7:6-15), and 7 into 9 (rows 0-99 to 9:50-149). Nothing is known yet.
//
//	seek 0:5    down: depth 0, 0:4-9 moved by 7:0-0:4; depth 1, 7:0-99 moved by 9:50-7:0;
//	            depth 2, 9:all is where it is: the end
//	            up: what follows 7:1 holds for 7:1-99, so that all of depth 0 is 0:5-9,
//	            moved by both deltas: the answer is 9:51
//	seek 0:7    depth 0 knows it: no lookup
//	seek 0:12   depth 0 does not have it, and is looked up: 0:12-20 goes to 7:7-15;
//	            depth 1 knows 7:7, and the way down ends there
//	            up: 0:12-20, moved by both deltas: the answer is 9:57
func (w *walker) seek(addr table.RowAddr) *stretch {
	// Down, to the first depth that knows the rest of the way.
	at, depth := uint64(addr), 0
	for ; ; depth++ {
		fresh := depth == len(w.known)
		if fresh {
			w.known = append(w.known, level{})
		}
		l := &w.known[depth]
		if !fresh && l.all.has(at) {
			break
		}
		if fresh || !l.own.has(at) {
			l.own, l.more = w.step(table.RowAddr(at))
		}
		l.all = l.own
		if !l.more {
			break
		}
		l.all.from = at
		at += l.own.delta
	}
	// Up: compose what is new with what follows, the deepest first.
	for depth--; depth >= 0; depth-- {
		s, rest := &w.known[depth].all, &w.known[depth+1].all
		s.last = s.from + min(s.last-s.from, rest.last-(s.from+s.delta))
		switch rest.state {
		case Moved:
			s.delta += rest.delta
		case Deleted, Untranslatable:
			s.state, s.err = rest.state, rest.err
		}
	}
	return &w.known[0].all
}

// step looks an address up in the rewrite of its fragment. If there are more
// rewrites to come, the stretch is that of one alone, from the address on.
func (w *walker) step(addr table.RowAddr) (s stretch, more bool) {
	h := w.t.h
	a := uint64(addr)
	i, ok := h.hopOf.find(addr.Fragment())
	if !ok {
		return stretch{from: a &^ math.MaxUint32, last: a | math.MaxUint32}, false
	}
	hop := &h.hops[i]
	offset := addr.Offset()
	if uint64(offset) >= hop.physical {
		return stretch{from: a, last: a | math.MaxUint32}, false
	}
	w.steps++
	var to table.RowAddr
	var live bool
	var n uint64
	var err error
	seg := w.t.segments[i].Load()
	if seg == nil {
		seg, to, live, n, err = w.t.first(i, addr)
	}
	switch {
	case err != nil:
		if hop.part != nil { // nothing of the fragment is to be had
			n = hop.physical - uint64(offset)
		}
		return stretch{from: a, last: a + max(n, 1) - 1, state: Untranslatable, err: err}, false
	case seg != nil:
		var rank uint32
		var end uint64
		rank, live, end = seg.state(offset)
		n = end - uint64(offset)
		if live {
			var left uint64
			to, left = hop.to.place(hop.before + uint64(rank))
			n = min(n, left)
		}
	}
	s = stretch{from: a, last: a + n - 1, state: Deleted}
	if live {
		s.delta, s.state = uint64(to)-a, Moved
		more = h.Touched(to.Fragment())
	}
	return s, more
}
