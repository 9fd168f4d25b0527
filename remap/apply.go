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

// apply translates addrs in place. Without a mask the entries of deleted rows are
// left out, and n is the number of those that stay; with one every entry keeps its
// place. On an error addrs is in between.
func (r *Remapper) apply(addrs []table.RowAddr, deleted Mask) (n int, c Counts, err error) {
	states := make([]fri.State, min(len(addrs), chunkAddrs))
	var bad refusals
	var block shuffled
	for at, end := 0, 0; at < len(addrs); at = end {
		end = min(at+chunkAddrs, len(addrs))
		// All of these answer every address, in any order; they differ in speed.
		var err error
		if ascends(addrs[at:end]) {
			err = r.translator.TranslateSorted(addrs[at:end], states)
		} else if end < len(addrs) && r.deep() {
			end = min(at+blockAddrs, len(addrs))
			if len(states) < end-at {
				states = make([]fri.State, end-at)
			}
			err = block.translate(r.translator, addrs[at:end], states)
		} else {
			err = r.translator.TranslateBatch(addrs[at:end], states)
		}
		chunk, st := addrs[at:end], states[:end-at]
		if !r.opts.Strict {
			r.check(chunk, st, &bad)
		}
		if err != nil {
			// The addresses that have no answer are still what they were.
			for i, s := range st {
				if s == fri.Untranslatable {
					if id := chunk[i].Fragment(); bad[id] == nil {
						_, err := r.translator.Translate(chunk[i])
						bad.add(id, err)
					}
				}
			}
			continue
		}
		if bad != nil {
			continue
		}
		// Whether a row was deleted is as good as random to the processor, so
		// nothing here jumps on it.
		var unaffected, dead int
		for _, s := range st {
			unaffected += one(s == fri.Unaffected)
			dead += one(s == fri.Deleted)
		}
		if r.opts.Strict {
			if unaffected > 0 {
				return n, c, &OutsideError{Addr: chunk[slices.Index(st, fri.Unaffected)]}
			}
			if r.check(chunk, st, &bad); bad != nil {
				continue
			}
		}
		c.Unaffected += uint64(unaffected)
		c.Deleted += uint64(dead)
		switch {
		case deleted != nil:
			for i, s := range st {
				deleted[(at+i)/64] |= uint64(one(s == fri.Deleted)) << ((at + i) % 64)
			}
		case dead > 0:
			for i, s := range st {
				addrs[n] = chunk[i]
				n += one(s != fri.Deleted)
			}
			continue
		case n < at:
			copy(addrs[n:], chunk)
		}
		n += len(chunk)
	}
	c.Moved = uint64(len(addrs)) - c.Deleted - c.Unaffected
	return n, c, bad.err()
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
