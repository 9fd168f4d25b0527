package fri

import (
	"fmt"
	"iter"
	"math/bits"
	"sync/atomic"

	"github.com/rehome-db/rehome/table"
)

// Translator answers for a history and holds, for its own life, the segments that
// its answers needed. So it is as fast as an answer can be, whatever a cache's
// cache evicts in the meantime, and its memory is bounded by what it was asked:
// it is made for one piece of work and dropped after it. Safe for concurrent use.
type Translator struct {
	h        *History
	segments []atomic.Pointer[segment] // parallel to h.hops
}

// Translator returns a new handle. It decodes nothing yet.
func (h *History) Translator() *Translator {
	return &Translator{h: h, segments: make([]atomic.Pointer[segment], len(h.hops))}
}

// History returns the history that the translator answers for.
func (t *Translator) History() *History { return t.h }

// Translate is [History.Translate], and says why where it says [Untranslatable]:
// the error names the transition and the fragment. It does not allocate once the
// fragments that the address leads through are decoded.
func (t *Translator) Translate(addr table.RowAddr) (Translation, error) {
	h, state := t.h, Unaffected
	for {
		i, ok := h.hopOf.find(addr.Fragment())
		if !ok {
			return Translation{state, addr}, nil
		}
		hop := &h.hops[i]
		offset := addr.Offset()
		if uint64(offset) >= hop.physical {
			return Translation{state, addr}, nil
		}
		s := t.segments[i].Load()
		if s == nil {
			var live bool
			var err error
			if s, addr, live, _, err = t.first(i, addr); err != nil {
				return Translation{State: Untranslatable}, err
			}
			if s == nil { // a rowMap has answered
				if !live {
					return Translation{State: Deleted}, nil
				}
				state = Moved
				continue
			}
		}
		rank, live := s.rank(offset)
		if !live {
			return Translation{State: Deleted}, nil
		}
		addr = hop.to.locate(hop.before + uint64(rank))
		if state = Moved; hop.last {
			return Translation{state, addr}, nil
		}
	}
}

// first gets hop i its segment; or, if a rowMap is in its place, the answer.
func (t *Translator) first(i int, addr table.RowAddr) (s *segment, to table.RowAddr, live bool, n uint64, err error) {
	hop := &t.h.hops[i]
	if hop.part == nil {
		if to, live, n, err = hop.rows.row(hop.before + uint64(addr.Offset())); err != nil {
			err = t.h.place(i, err)
		}
		// Rows after the fragment's are another one's.
		return nil, to, live, min(n, hop.physical-uint64(addr.Offset())), err
	}
	if s, err = t.h.segment(i); err == nil {
		t.segments[i].Store(s)
	}
	return s, addr, false, 0, err
}

// TranslateBatch translates addresses in place, in any order and with any number of
// duplicates: addrs[i] becomes the new address if the row moved and stays as it is
// otherwise, and states[i] says which. states is at least as long as addrs.
//
// Every address gets an answer, also after an error, which is the first of those
// that made addresses [Untranslatable].
func (t *Translator) TranslateBatch(addrs []table.RowAddr, states []State) error {
	if err := checkBatch(addrs, states); err != nil {
		return err
	}
	var first error
	for i, a := range addrs {
		to, err := t.Translate(a)
		if err != nil && first == nil {
			first = err
		}
		if to.State == Moved {
			addrs[i] = to.Addr
		}
		states[i] = to.State
	}
	return first
}

// TranslateSorted is [Translator.TranslateBatch] for ascending addresses,
// duplicates included. It walks the addresses along the runs of rows that moved
// together, composed over all rewrites, so that an address costs little more than
// an addition wherever several share a run. Addresses that do not ascend get the
// right answers too, later.
func (t *Translator) TranslateSorted(addrs []table.RowAddr, states []State) error {
	if err := checkBatch(addrs, states); err != nil {
		return err
	}
	var first error
	w := walker{t: t}
	for i := 0; i < len(addrs); {
		if n := t.inBits(addrs[i:], states[i:]); n > 0 {
			i += n
			continue
		}
		run := w.seek(addrs[i])
		if run.err != nil && first == nil {
			first = run.err
		}
		// One comparison for both ends: below from, the difference wraps.
		from, length, delta := run.from, run.last-run.from, table.RowAddr(run.delta)
		if run.state == Moved {
			for ; i < len(addrs) && uint64(addrs[i])-from <= length; i++ {
				addrs[i] += delta
				states[i] = Moved
			}
			continue
		}
		for ; i < len(addrs) && uint64(addrs[i])-from <= length; i++ {
			states[i] = run.state
		}
	}
	return first
}

// inBits translates the addresses at the front that lie in the block of the first,
// if that is one in bits and the rewrite is the last. There runs are short, and
// counting bits costs less than finding where a run ends. It returns how many.
func (t *Translator) inBits(addrs []table.RowAddr, states []State) int {
	h, first := t.h, addrs[0]
	at, ok := h.hopOf.find(first.Fragment())
	if !ok || !h.hops[at].last {
		return 0
	}
	hop, s := &h.hops[at], t.segments[at].Load()
	if s == nil || int(first.Offset()>>blockShift) >= len(s.blocks) {
		return 0
	}
	b := &s.blocks[first.Offset()>>blockShift]
	if b.form != formBits {
		return 0
	}
	start := first &^ (blockRows - 1)
	rows := min(blockRows, hop.physical-uint64(start.Offset()))
	var from, length uint64 // the destination that the last survivor went to
	var to table.RowAddr
	n := 0
	for n < len(addrs) && uint64(addrs[n]-start) < rows {
		i := uint32(addrs[n]-start) / wordRows
		word := s.word(b, i)
		before := hop.before + uint64(b.base) + uint64(s.counts[b.counts+i])
		wordStart := start + table.RowAddr(i*wordRows)
		end := min(rows-uint64(i)*wordRows, wordRows)
		for ; n < len(addrs) && uint64(addrs[n]-wordStart) < end; n++ {
			bit := uint64(addrs[n]) % wordRows
			if word>>bit&1 == 0 {
				states[n] = Deleted
				continue
			}
			k := before + uint64(bits.OnesCount64(word&(1<<bit-1)))
			if k-from >= length { // below from it wraps
				from, length, to = hop.to.span(k)
			}
			addrs[n], states[n] = to+table.RowAddr(k-from), Moved
		}
	}
	return n
}

func checkBatch(addrs []table.RowAddr, states []State) error {
	if len(states) < len(addrs) {
		return fmt.Errorf("fri: %d addresses to translate, and room for %d states", len(addrs), len(states))
	}
	return nil
}

// Runs is [History.Runs] with the translator's segments.
func (t *Translator) Runs(id table.FragmentID) iter.Seq2[Run, error] {
	return func(yield func(Run, error) bool) { runs(t, id, yield) }
}
