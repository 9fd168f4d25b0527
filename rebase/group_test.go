package rebase_test

import (
	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// source is a fragment as a rewrite read it.
type source struct {
	Fragment     table.FragmentID
	PhysicalRows uint64
	Deleted      *deletion.Vector
}

// move is a rewrite by the sizes of what it read and wrote.
type move struct {
	Sources      []source
	Destinations []uint64
}

func (m move) group() rebase.Group {
	g := rebase.Group{Deleted: rebase.RowSet{}}
	for _, s := range m.Sources {
		f := table.Fragment{ID: s.Fragment, PhysicalRows: s.PhysicalRows}
		if !s.Deleted.IsEmpty() {
			f.Deletion = &table.DeletionRef{Rows: s.Deleted.Cardinality()}
		}
		g.Old = append(g.Old, f)
		g.Deleted.Add(s.Fragment, s.Deleted)
	}
	for _, n := range m.Destinations {
		g.New = append(g.New, table.NewFragment{PhysicalRows: n})
	}
	return g
}

func groupsOf(moves ...move) (out []rebase.Group) {
	for _, m := range moves {
		out = append(out, m.group())
	}
	return out
}

// sourceNow is what became of a source: every row of it died, or these are dead.
type sourceNow struct {
	Removed bool
	Deleted *deletion.Vector
}

// carry returns, for each destination, which of its rows died since the rewrite read
// them.
func (m move) carry(now []sourceNow) ([]*deletion.Vector, error) {
	var to []table.FragmentID
	for i := range m.Destinations {
		to = append(to, table.FragmentID(1000+i))
	}
	c, err := rebase.NewChangeOfAddress(groupsOf(m), [][]table.FragmentID{to})
	if err != nil {
		return nil, err
	}
	died := rebase.RowSet{}
	for i, s := range m.Sources {
		dead := now[i].Deleted
		if now[i].Removed {
			dead = deletion.Range(0, s.PhysicalRows)
		}
		died.Add(s.Fragment, dead.Difference(s.Deleted))
	}
	moved, _, err := c.Relocate(died)
	if err != nil {
		return nil, err
	}
	out := make([]*deletion.Vector, len(to))
	for i, id := range to {
		out[i] = moved[id]
	}
	return out, nil
}
