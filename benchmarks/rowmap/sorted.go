package rowmap

import (
	"slices"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// Intervals is the map as runs of rows that moved together: 16 bytes a run. Each
// source fragment's runs lie together, so a lookup searches those only.
type Intervals struct {
	first []uint32        // offset of the run's first row in its source fragment
	rows  []uint32        // rows of the run
	to    []table.RowAddr // where the first row is now
	spans spans
}

// OpenIntervals decodes the maps of transactions, given in the order of their
// commits.
func OpenIntervals(txs []*Transaction) (*Intervals, error) {
	v := &Intervals{}
	err := v.fill(txs, func(m Move, later *Intervals, keep func(from, to table.RowAddr, rows uint64)) {
		later.each(m.To, m.Rows, func(skip, rows uint64, t fri.Translation) {
			if t.State != fri.Deleted {
				keep(m.From+table.RowAddr(skip), t.Addr, rows)
			}
		})
	})
	return v, err
}

// fill appends the runs of all transactions, newest first. compose splits a run by
// what became of it later.
func (v *Intervals) fill(txs []*Transaction, compose func(m Move, later *Intervals, keep func(from, to table.RowAddr, rows uint64))) error {
	by := make(map[table.FragmentID]span)
	for _, t := range slices.Backward(txs) {
		later := &Intervals{first: v.first, rows: v.rows, to: v.to, spans: newSpans(by)}
		if err := claim(by, t.Groups); err != nil {
			return err
		}
		var at span
		var id table.FragmentID
		open := false
		closeSpan := func() {
			if open {
				at.end, at.rows = len(v.first), by[id].rows
				by[id] = at
			}
		}
		keep := func(from, to table.RowAddr, rows uint64) {
			if f := from.Fragment(); !open || f != id {
				closeSpan()
				id, at, open = f, span{start: len(v.first)}, true
			}
			// What was split may meet again.
			if n := len(v.first) - 1; n >= at.start && v.first[n]+v.rows[n] == from.Offset() && v.to[n]+table.RowAddr(v.rows[n]) == to {
				v.rows[n] += uint32(rows)
				return
			}
			v.first = append(v.first, from.Offset())
			v.rows = append(v.rows, uint32(rows))
			v.to = append(v.to, to)
		}
		for m, err := range t.Moves() {
			if err != nil {
				return err
			}
			compose(m, later, keep)
		}
		closeSpan()
	}
	// Growing left room that nobody will use.
	v.first, v.rows, v.to = slices.Clip(slices.Clone(v.first)), slices.Clip(slices.Clone(v.rows)), slices.Clip(slices.Clone(v.to))
	v.spans = newSpans(by)
	return nil
}

// each says what became of a range of rows, piece by piece.
func (v *Intervals) each(a table.RowAddr, rows uint64, piece func(skip, rows uint64, t fri.Translation)) {
	s := v.spans.find(a.Fragment())
	offset := uint64(a.Offset())
	if s.rows == 0 {
		piece(0, rows, fri.Translation{State: fri.Unaffected, Addr: a})
		return
	}
	first := v.first[s.start:s.end]
	i := max(lastNotAbove(first, uint32(offset)), 0)
	for skip := uint64(0); skip < rows; {
		at := offset + skip
		for i < len(first) && uint64(first[i])+uint64(v.rows[s.start+i]) <= at {
			i++
		}
		switch {
		case i == len(first):
			piece(skip, rows-skip, fri.Translation{State: fri.Deleted})
			return
		case at < uint64(first[i]):
			n := min(uint64(first[i])-at, rows-skip)
			piece(skip, n, fri.Translation{State: fri.Deleted})
			skip += n
		default:
			into := at - uint64(first[i])
			n := min(uint64(v.rows[s.start+i])-into, rows-skip)
			piece(skip, n, fri.Translation{State: fri.Moved, Addr: v.to[s.start+i] + table.RowAddr(into)})
			skip += n
		}
	}
}

// claim enters the fragments that a transaction rewrote, each with no rows yet.
func claim(by map[table.FragmentID]span, groups []Group) error {
	for _, g := range groups {
		for _, d := range g.Sources {
			if _, ok := by[d.ID]; ok {
				return table.Corruptf("rowmap: fragment %d is rewritten twice", d.ID)
			}
			by[d.ID] = span{rows: d.PhysicalRows}
		}
	}
	return nil
}

// Translate implements ChangeOfAddress.
func (v *Intervals) Translate(a table.RowAddr) (fri.Translation, error) {
	s := v.spans.find(a.Fragment())
	if uint64(a.Offset()) >= s.rows {
		return fri.Translation{State: fri.Unaffected, Addr: a}, nil
	}
	return v.at(a.Offset(), s.start+lastNotAbove(v.first[s.start:s.end], a.Offset()), s), nil
}

// at answers for an offset whose run, if any, is i.
func (v *Intervals) at(offset uint32, i int, s span) fri.Translation {
	if i < s.start || offset-v.first[i] >= v.rows[i] {
		return fri.Translation{State: fri.Deleted}
	}
	return fri.Translation{State: fri.Moved, Addr: v.to[i] + table.RowAddr(offset-v.first[i])}
}

// TranslateSorted implements ChangeOfAddress, walking runs and addresses together.
func (v *Intervals) TranslateSorted(addrs []table.RowAddr, states []fri.State) error {
	for i := 0; i < len(addrs); {
		id := addrs[i].Fragment()
		s := v.spans.find(id)
		first, at := v.first[s.start:s.end], 0
		for ; i < len(addrs) && addrs[i].Fragment() == id; i++ {
			a := addrs[i]
			switch {
			case uint64(a.Offset()) >= s.rows:
				states[i] = fri.Unaffected
			case len(first) == 0 || first[0] > a.Offset():
				states[i] = fri.Deleted
			default:
				at = gallop(first, at, a.Offset())
				if into := a.Offset() - first[at]; into < v.rows[s.start+at] {
					addrs[i], states[i] = v.to[s.start+at]+table.RowAddr(into), fri.Moved
				} else {
					states[i] = fri.Deleted
				}
			}
		}
	}
	return nil
}

// Sorted is the map as rows ordered by old address, 12 bytes a row: the offset in
// the source fragment, which the row's place in the array tells, and the new
// address.
type Sorted struct {
	offset []uint32
	to     []table.RowAddr
	spans  spans
}

// OpenSorted decodes the maps of transactions, given in the order of their
// commits.
func OpenSorted(txs []*Transaction) (*Sorted, error) {
	n := uint64(0)
	for _, t := range txs {
		n += moved(t.Groups)
	}
	v := &Sorted{offset: make([]uint32, 0, n), to: make([]table.RowAddr, 0, n)}
	by := make(map[table.FragmentID]span)
	for _, t := range slices.Backward(txs) {
		later := &Sorted{offset: v.offset, to: v.to, spans: newSpans(by)}
		composed := len(by) > 0
		if err := claim(by, t.Groups); err != nil {
			return nil, err
		}
		for m, err := range t.Moves() {
			if err != nil {
				return nil, err
			}
			id := m.From.Fragment()
			s := by[id]
			if s.end == 0 { // nothing of this fragment yet
				s.start = len(v.offset)
			}
			if !composed {
				for i := range m.Rows {
					v.offset = append(v.offset, m.From.Offset()+uint32(i))
					v.to = append(v.to, m.To+table.RowAddr(i))
				}
			} else {
				for i := range m.Rows {
					if now := later.translate(m.To + table.RowAddr(i)); now.State != fri.Deleted {
						v.offset = append(v.offset, m.From.Offset()+uint32(i))
						v.to = append(v.to, now.Addr)
					}
				}
			}
			s.end = len(v.offset)
			by[id] = s
		}
	}
	v.spans = newSpans(by)
	return v, nil
}

func (v *Sorted) translate(a table.RowAddr) fri.Translation {
	s := v.spans.find(a.Fragment())
	if uint64(a.Offset()) >= s.rows {
		return fri.Translation{State: fri.Unaffected, Addr: a}
	}
	return v.at(a.Offset(), s.start+lastNotAbove(v.offset[s.start:s.end], a.Offset()), s)
}

func (v *Sorted) at(offset uint32, i int, s span) fri.Translation {
	if i < s.start || v.offset[i] != offset {
		return fri.Translation{State: fri.Deleted}
	}
	return fri.Translation{State: fri.Moved, Addr: v.to[i]}
}

// Translate implements ChangeOfAddress.
func (v *Sorted) Translate(a table.RowAddr) (fri.Translation, error) { return v.translate(a), nil }

// TranslateSorted implements ChangeOfAddress, walking rows and addresses together.
func (v *Sorted) TranslateSorted(addrs []table.RowAddr, states []fri.State) error {
	for i := 0; i < len(addrs); {
		id := addrs[i].Fragment()
		s := v.spans.find(id)
		rows, at := v.offset[s.start:s.end], 0
		for ; i < len(addrs) && addrs[i].Fragment() == id; i++ {
			a := addrs[i]
			switch {
			case uint64(a.Offset()) >= s.rows:
				states[i] = fri.Unaffected
			case len(rows) == 0 || rows[0] > a.Offset():
				states[i] = fri.Deleted
			default:
				at = gallop(rows, at, a.Offset())
				if rows[at] == a.Offset() {
					addrs[i], states[i] = v.to[s.start+at], fri.Moved
				} else {
					states[i] = fri.Deleted
				}
			}
		}
	}
	return nil
}
