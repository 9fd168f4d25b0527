package rebase

import (
	"iter"
	"sort"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// This file asks a translator where rows went. It translates few rows one by one. For
// many it merges the runs of the fragment with the runs of the rows, so that the work
// grows with the runs and not with the rows in them.

// askEach is the largest number of rows of a fragment that are translated one by one.
const askEach = 1 << 14

// translated are the answers.
type translated struct {
	moved, dead map[table.FragmentID]*deletion.Builder
}

// run records where n rows from the address from on went.
func (t *translated) run(from, to table.RowAddr, n uint64, dead bool) {
	if t.moved == nil {
		t.moved, t.dead = map[table.FragmentID]*deletion.Builder{}, map[table.FragmentID]*deletion.Builder{}
	}
	into, at := t.moved, to
	if dead {
		into, at = t.dead, from
	}
	for n > 0 {
		b := into[at.Fragment()]
		if b == nil {
			b = &deletion.Builder{}
			into[at.Fragment()] = b
		}
		// A full fragment may have its last row beside the next one's first.
		start := uint64(at.Offset())
		part := min(n, 1<<32-start)
		b.AddRun(start, start+part)
		at, n = at+table.RowAddr(part), n-part
	}
}

// addTo adds the answers to sets.
func (t *translated) addTo(moved, dead RowSet) {
	for id, b := range t.moved {
		moved.Add(id, b.Vector())
	}
	for id, b := range t.dead {
		dead.Add(id, b.Vector())
	}
}

// translate asks the translator for rows of a fragment.
func (g *addressGroup) translate(id table.FragmentID, rows *deletion.Vector, out *translated) error {
	if rows.Cardinality() <= askEach {
		return g.translateEach(id, rows, out)
	}
	return g.translateRuns(id, rows, out)
}

// translateRuns goes through the runs of the fragment and of the rows together.
func (g *addressGroup) translateRuns(id table.FragmentID, rows *deletion.Vector, out *translated) error {
	next, stop := iter.Pull2(rows.Runs())
	defer stop()
	start, end, more := next()
	for r, err := range g.by.Runs(id) {
		if err != nil {
			return err
		}
		first := uint64(r.From.Offset())
		for more && start < first+r.Len {
			if start < first {
				break
			}
			upTo, skip := min(end, first+r.Len), start-first
			out.run(r.From+table.RowAddr(skip), r.To+table.RowAddr(skip), upTo-start, r.Deleted)
			if start = upTo; start == end {
				start, end, more = next()
			}
		}
		if more && start < first {
			break
		}
	}
	if more {
		return table.Corruptf("where row %s went is not recorded", table.NewRowAddr(id, uint32(start)))
	}
	return nil
}

// translateEach asks for each row, some at a time.
func (g *addressGroup) translateEach(id table.FragmentID, rows *deletion.Vector, out *translated) error {
	size := min(rows.Cardinality(), 1<<12)
	asked := make([]table.RowAddr, 0, size)
	addrs := make([]table.RowAddr, size)
	states := make([]fri.State, size)
	ask := func() error {
		addrs := addrs[:copy(addrs, asked)]
		if err := g.by.TranslateSorted(addrs, states); err != nil {
			return err
		}
		for i, a := range addrs {
			if states[i] != fri.Moved && states[i] != fri.Deleted {
				return table.Corruptf("row %s is %s", asked[i], states[i])
			}
			out.run(asked[i], a, 1, states[i] == fri.Deleted)
		}
		asked = asked[:0]
		return nil
	}
	for o := range rows.All() {
		if asked = append(asked, table.NewRowAddr(id, o)); len(asked) == cap(asked) {
			if err := ask(); err != nil {
				return err
			}
		}
	}
	return ask()
}

// addressList is a translator that knows some rows, as runs that ascend by the old
// address.
type addressList []movedRun

// add adds a row behind those that are there.
func (l *addressList) add(from, to table.RowAddr) {
	if n := len(*l); n > 0 {
		last := &(*l)[n-1]
		if rows := table.RowAddr(last.rows); last.from+rows == from && last.to+rows == to {
			last.rows++
			return
		}
	}
	*l = append(*l, movedRun{from, to, 1})
}

// from is the position of the first run that ends behind an address.
func (l addressList) from(a table.RowAddr) int {
	return sort.Search(len(l), func(i int) bool { return l[i].from+table.RowAddr(l[i].rows) > a })
}

// TranslateSorted implements rowTranslator.
func (l addressList) TranslateSorted(addrs []table.RowAddr, states []fri.State) error {
	for i, a := range addrs {
		states[i] = fri.Untranslatable
		if at := l.from(a); at < len(l) && l[at].from <= a {
			addrs[i], states[i] = l[at].to+a-l[at].from, fri.Moved
		}
	}
	return nil
}

// Runs implements rowTranslator.
func (l addressList) Runs(id table.FragmentID) iter.Seq2[fri.Run, error] {
	return func(yield func(fri.Run, error) bool) {
		for _, r := range l[l.from(table.NewRowAddr(id, 0)):] {
			if r.from.Fragment() != id || !yield(fri.Run{From: r.from, To: r.to, Len: r.rows}, nil) {
				return
			}
		}
	}
}
