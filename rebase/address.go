package rebase

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"sort"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// ChangeOfAddress says where the rows of rewritten fragments went, for one rewrite that
// is committed or about to be. It is immutable and safe for concurrent use.
//
// It stores no rows: each group of fragments that was rewritten together is a change of
// address by rank (see [Group]), or a transition of a fragment reuse index, which
// answers for runs of rows. It serves both orders: a row change follows its rows to
// their new addresses, and a rewrite carries the rows that died since it read them to
// the fragments that it wrote.
type ChangeOfAddress struct {
	groups []addressGroup
	// groupOf finds the group that a fragment is a source of.
	groupOf map[table.FragmentID]place
}

// place is where a source stands.
type place struct{ group, source int }

// addressGroup is one group of a rewrite.
type addressGroup struct {
	sources []addressSource
	to      []table.FragmentID
	ends    []uint64 // of the destinations, laid end to end
	// by translates the rows, if the rewrite did not move them by rank.
	by rowTranslator
}

// addressSource is a fragment as the rewrite read it.
type addressSource struct {
	id     table.FragmentID
	rows   uint64
	dead   uint64
	before uint64 // live rows of the sources before this one
	// deleted are the rows that were dead. A change of address that was derived for
	// some rows has them for the fragments of those rows only.
	deleted *deletion.Vector
	known   bool
}

// rowTranslator translates addresses; *fri.Translator is one.
type rowTranslator interface {
	// TranslateSorted translates addresses in place.
	TranslateSorted(addrs []table.RowAddr, states []fri.State) error
	// Runs yields what became of the rows of a fragment, by ascending address. It
	// leaves out rows that it does not know.
	Runs(id table.FragmentID) iter.Seq2[fri.Run, error]
}

// NewChangeOfAddress returns the change of address of a rewrite's groups. to are the
// ids of each group's new fragments, parallel to groups. An error wraps
// [table.ErrCorrupt]: the row counts do not add up.
func NewChangeOfAddress(groups []Group, to [][]table.FragmentID) (*ChangeOfAddress, error) {
	if len(groups) != len(to) {
		return nil, table.Corruptf("rebase: change of address: %d groups, and destinations of %d", len(groups), len(to))
	}
	var c ChangeOfAddress
	for i, from := range groups {
		if len(from.New) != len(to[i]) {
			return nil, table.Corruptf("rebase: change of address: %d destinations have %d ids", len(from.New), len(to[i]))
		}
		g := addressGroup{to: to[i]}
		for _, f := range from.Old {
			dead := from.Deleted[f.ID]
			if err := dead.Validate(f.PhysicalRows, 0); err != nil {
				return nil, table.Corruptf("rebase: change of address: fragment %d as it was read: %w", f.ID, err)
			}
			g.sources = append(g.sources, addressSource{id: f.ID, rows: f.PhysicalRows, dead: dead.Cardinality(), deleted: dead, known: true})
		}
		var written []uint64
		for _, f := range from.New {
			written = append(written, f.PhysicalRows)
		}
		if err := c.add(g, written); err != nil {
			return nil, err
		}
	}
	return &c, nil
}

// add checks a group that moved rows by rank and adds it. rows are the sizes of the
// destinations.
func (c *ChangeOfAddress) add(g addressGroup, rows []uint64) error {
	var live, written uint64
	for i := range g.sources {
		s := &g.sources[i]
		if s.dead > s.rows || s.rows > 1<<32 {
			return table.Corruptf("rebase: change of address: fragment %d has %d rows, %d of them deleted", s.id, s.rows, s.dead)
		}
		s.before = live
		live += s.rows - s.dead
	}
	for i, n := range rows {
		if n > 1<<32 {
			return table.Corruptf("rebase: change of address: destination %d has %d rows", i, n)
		}
		written += n
		g.ends = append(g.ends, written)
	}
	if live != written {
		return table.Corruptf("rebase: change of address: %d rows were alive in the sources, the destinations have %d", live, written)
	}
	return c.link(g)
}

// link adds a group.
func (c *ChangeOfAddress) link(g addressGroup) error {
	if c.groupOf == nil {
		c.groupOf = map[table.FragmentID]place{}
	}
	for i, s := range g.sources {
		if at, ok := c.groupOf[s.id]; ok {
			return table.Corruptf("rebase: change of address: fragment %d is a source of groups %d and %d", s.id, at.group, len(c.groups))
		}
		c.groupOf[s.id] = place{len(c.groups), i}
	}
	c.groups = append(c.groups, g)
	return nil
}

// Covers says whether the change of address can tell where the rows of a fragment
// went.
func (c *ChangeOfAddress) Covers(id table.FragmentID) bool {
	at, ok := c.groupOf[id]
	if !ok {
		return false
	}
	g := &c.groups[at.group]
	return g.by != nil || g.sources[at.source].known
}

// Bytes estimates the memory that the change of address takes, without what a session
// of package fri holds for it.
func (c *ChangeOfAddress) Bytes() int64 {
	var n int64
	for _, g := range c.groups {
		n += int64(12*len(g.to) + 64*len(g.sources))
		for _, s := range g.sources {
			if s.known {
				// A bitmap takes two bytes for each row, or one bit.
				n += int64(min(2*s.dead, s.rows/8))
			}
		}
	}
	return n
}

// Relocate follows rows through the rewrite. moved has the rows that the rewrite moved,
// at their new addresses, and the rows of untouched fragments at their unchanged ones.
// dead has the rows, at their old addresses, that were deleted when the rewrite read
// them.
//
// The work grows with the rows, or with runs of them, and with their fragments. An
// error wraps [table.ErrCorrupt] if a fragment has no such row, or [table.ErrNotFound]
// if the rewrite moved the rows of a fragment and the change of address does not know
// where to ([ChangeOfAddress.Covers]).
func (c *ChangeOfAddress) Relocate(rows RowSet) (moved, dead RowSet, err error) {
	moved, dead = RowSet{}, RowSet{}
	var by translated
	ranks := map[int][]span{}
	for _, id := range rows.Fragments() {
		at, ok := c.groupOf[id]
		if !ok {
			moved.Add(id, rows[id])
			continue
		}
		g := &c.groups[at.group]
		s := &g.sources[at.source]
		if err := rows[id].Validate(s.rows, 0); err != nil {
			return nil, nil, table.Corruptf("rebase: change of address: rows of fragment %d: %w", id, err)
		}
		switch {
		case g.by != nil:
			if err := g.translate(id, rows[id], &by); err != nil {
				return nil, nil, fmt.Errorf("rebase: change of address: rows of fragment %d: %w", id, err)
			}
		case !c.Covers(id):
			return nil, nil, fmt.Errorf("rebase: change of address: where the rows of fragment %d went is not known: %w", id, table.ErrNotFound)
		default:
			dead.Add(id, rows[id].Intersect(s.deleted))
			// No row that was dead lies inside a run of rows that were not.
			for start, end := range rows[id].Difference(s.deleted).Runs() {
				rank := s.rank(start)
				ranks[at.group] = append(ranks[at.group], span{rank, rank + end - start})
			}
		}
	}
	for i, r := range ranks {
		g := &c.groups[i]
		// Fragments need not have been read in the order of their ids.
		slices.SortFunc(r, func(a, b span) int { return cmp.Compare(a.start, b.start) })
		for d, v := range cutRanks(r, g.ends) {
			moved.Add(g.to[d], v)
		}
	}
	by.addTo(moved, dead)
	return moved, dead, nil
}

// rank returns the rank of the live row at an offset among the survivors of the group.
func (s *addressSource) rank(offset uint64) uint64 {
	return s.before + offset - s.deleted.Rank(uint32(offset))
}

// movedRun is a run of rows that stayed together.
type movedRun struct {
	from, to table.RowAddr
	rows     uint64
}

// runs pairs old with new addresses, for rows of groups that were moved by rank. The
// runs have at most limit rows and ascend by the old address; dead rows are left out.
func (c *ChangeOfAddress) runs(rows RowSet, limit uint64) (out []movedRun) {
	for _, id := range rows.Fragments() {
		at, ok := c.groupOf[id]
		if !ok {
			continue
		}
		g := &c.groups[at.group]
		s := &g.sources[at.source]
		for start, end := range rows[id].Difference(s.deleted).Runs() {
			for rank := s.rank(start); start < end; {
				d := sort.Search(len(g.ends), func(i int) bool { return g.ends[i] > rank })
				first := uint64(0)
				if d > 0 {
					first = g.ends[d-1]
				}
				n := min(end-start, g.ends[d]-rank, limit)
				out = append(out, movedRun{table.NewRowAddr(id, uint32(start)), table.NewRowAddr(g.to[d], uint32(rank-first)), n})
				start, rank = start+n, rank+n
			}
		}
	}
	return out
}

// span is a range of ranks [start, end).
type span struct{ start, end uint64 }

// cutRanks cuts ascending spans at the ends of the destinations. It returns the
// offsets in each destination, by its position.
func cutRanks(ranks []span, ends []uint64) map[int]*deletion.Vector {
	out := map[int]*deletion.Vector{}
	for len(ranks) > 0 {
		// The destination that holds the next row, past any that has none of them.
		d := sort.Search(len(ends), func(i int) bool { return ends[i] > ranks[0].start })
		var first uint64
		if d > 0 {
			first = ends[d-1]
		}
		n := sort.Search(len(ranks), func(i int) bool { return ranks[i].start >= ends[d] })
		out[d] = deletion.CollectRuns(within(ranks[:n], first, ends[d]))
		// What reaches beyond the destination is left for the next.
		if last := ranks[n-1]; last.end > ends[d] {
			n--
			ranks[n].start = ends[d]
		}
		ranks = ranks[n:]
	}
	return out
}

// within yields the parts of spans before end, counted from first.
func within(ranks []span, first, end uint64) iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		for _, s := range ranks {
			if !yield(s.start-first, min(s.end, end)-first) {
				return
			}
		}
	}
}
