package remap

import (
	"cmp"
	"maps"
	"slices"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

const (
	// chunkAddrs are translated at a time: the addresses and their states stay in
	// the processor's cache between the translation and what follows it.
	chunkAddrs = 4096
	// smallInput is the number of addresses up to which a copy to go back to on an
	// error is cheaper than the proof that there can be none.
	smallInput = 1 << 16
)

// inPlace is apply, and leaves addrs as they were on an error.
func (r *Remapper) inPlace(addrs []table.RowAddr, deleted Mask) (int, Counts, error) {
	if !r.opts.Strict && r.opts.Unchecked && r.current == nil && len(addrs) > smallInput && r.known(addrs) {
		return r.apply(addrs, deleted)
	}
	was := slices.Clone(addrs)
	n, c, err := r.apply(addrs, deleted)
	if err != nil {
		copy(addrs, was)
		return len(addrs), Counts{}, err
	}
	return n, c, nil
}

// apply translates addrs in place, a chunk after the other. Without a mask the entries
// of deleted rows are left out, and n is the number of those that stay; with one every
// entry keeps its place. On an error addrs is in between.
//
// Once a fragment is refused nothing is placed any more: the chunks that are left are
// only translated, to tell of every fragment that is refused.
func (r *Remapper) apply(addrs []table.RowAddr, deleted Mask) (n int, c Counts, err error) {
	x := application{r: r, states: make([]fri.State, min(len(addrs), chunkAddrs))}
	for at, end := 0, 0; at < len(addrs); at = end {
		var failed error
		end, failed = x.translate(addrs, at)
		chunk, st := addrs[at:end], x.states[:end-at]
		if !r.opts.Strict {
			r.check(chunk, st, &x.bad)
		}
		if failed != nil {
			x.refuse(chunk, st)
		}
		if failed != nil || x.bad != nil {
			continue
		}
		unaffected, dead := tally(st)
		if r.opts.Strict {
			if unaffected > 0 {
				return n, c, &OutsideError{Addr: chunk[slices.Index(st, fri.Unaffected)]}
			}
			if r.check(chunk, st, &x.bad); x.bad != nil {
				continue
			}
		}
		c.Unaffected += uint64(unaffected)
		c.Deleted += uint64(dead)
		n = place(addrs, n, at, st, dead, deleted)
	}
	c.Moved = uint64(len(addrs)) - c.Deleted - c.Unaffected
	return n, c, x.bad.err()
}

// application is what one apply keeps from chunk to chunk.
type application struct {
	r      *Remapper
	states []fri.State // of the chunk
	block  shuffled
	bad    refusals
}

// translate translates the chunk that begins at a position, and returns where it ends.
// All ways answer every address, in any order; they differ in speed.
func (x *application) translate(addrs []table.RowAddr, at int) (end int, err error) {
	end = min(at+chunkAddrs, len(addrs))
	switch {
	case ascends(addrs[at:end]):
		return end, x.r.translator.TranslateSorted(addrs[at:end], x.states)
	case end < len(addrs) && x.r.deep():
		end = min(at+blockAddrs, len(addrs))
		if len(x.states) < end-at {
			x.states = make([]fri.State, end-at)
		}
		return end, x.block.translate(x.r.translator, addrs[at:end], x.states)
	}
	return end, x.r.translator.TranslateBatch(addrs[at:end], x.states)
}

// refuse notes the fragments of addresses that have no answer, which are still what
// they were.
func (x *application) refuse(chunk []table.RowAddr, states []fri.State) {
	for i, s := range states {
		if s != fri.Untranslatable {
			continue
		}
		if id := chunk[i].Fragment(); x.bad[id] == nil {
			_, err := x.r.translator.Translate(chunk[i])
			x.bad.add(id, err)
		}
	}
}

// tally counts states. Whether a row was deleted is as good as random to the processor,
// so nothing here jumps on it, nor in place.
func tally(states []fri.State) (unaffected, dead int) {
	for _, s := range states {
		unaffected += one(s == fri.Unaffected)
		dead += one(s == fri.Deleted)
	}
	return unaffected, dead
}

// place puts the answers of the chunk at a position, dead of which are deleted rows,
// where they belong: behind the n that are placed. It returns how many then are.
func place(addrs []table.RowAddr, n, at int, states []fri.State, dead int, deleted Mask) int {
	chunk := addrs[at : at+len(states)]
	switch {
	case deleted != nil:
		for i, s := range states {
			deleted[(at+i)/64] |= uint64(one(s == fri.Deleted)) << ((at + i) % 64)
		}
	case dead > 0:
		for i, s := range states {
			addrs[n] = chunk[i]
			n += one(s != fri.Deleted)
		}
		return n
	case n < at:
		copy(addrs[n:], chunk)
	}
	return n + len(chunk)
}

// check notes the fragments of answers that may not be given. Those are what is known
// by then: the addresses asked for were replaced.
func (r *Remapper) check(addrs []table.RowAddr, states []fri.State, bad *refusals) {
	if r.current == nil {
		if r.opts.Unchecked {
			return
		}
		for i, s := range states {
			if s == fri.Unaffected && (*bad)[addrs[i].Fragment()] == nil {
				bad.add(addrs[i].Fragment(), r.doubt(addrs[i], addrs[i]))
			}
		}
		return
	}
	var last table.FragmentID // the fragment looked up last, and its rows
	var rows uint64
	for i, a := range addrs {
		if states[i] == fri.Deleted || states[i] == fri.Untranslatable {
			continue
		}
		id := a.Fragment()
		if rows == 0 || id != last {
			last, rows = id, r.current.rows[id]
		}
		if uint64(a.Offset()) >= rows && (*bad)[id] == nil {
			bad.add(id, r.doubt(a, a))
		}
	}
}

// one is 1 if b, which compiles to no jump.
func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// ascends says whether the addresses ascend, but for a few.
func ascends(addrs []table.RowAddr) bool {
	falls := 0
	for i := 1; i < len(addrs); i++ {
		if addrs[i] < addrs[i-1] {
			falls++
		}
	}
	return falls <= len(addrs)/16
}

// refusals collects fragments that cannot be translated, with why.
type refusals map[table.FragmentID]error

func (f *refusals) add(id table.FragmentID, cause error) {
	if *f == nil {
		*f = make(refusals)
	}
	(*f)[id] = cause
}

func (f refusals) err() error {
	if len(f) == 0 {
		return nil
	}
	ids := slices.SortedFunc(maps.Keys(f), cmp.Compare[table.FragmentID])
	return &UntranslatableError{Fragments: ids, Cause: f[ids[0]]}
}
