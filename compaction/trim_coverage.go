package compaction

import (
	"slices"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// What a trim drops, an index may have been about. Two cases change what an index
// claims, in the trim's own commit, and both rest on one fact: readers drop an address
// of a fragment that is gone as long as the index claims that fragment (see policy.go,
// leave).
//
// Doubt. Versions were cleaned up, so nobody knows any more what an index covered
// before a transition; today it covers nothing that the transition has to do with.
// It is made to claim the sources: if its files hold addresses of them, readers drop
// those, and if not, a claim on a fragment that is gone is about no row.
//
// Damage. No row can be followed through the transition, so what it made of its
// sources is taken out of the claims and scanned, and the sources are claimed. On a
// table with stable row ids indexes hold ids, which are right: there the fragments
// that the commit made take the sources' place.

// claims works out the coverage of the indexes of base once the transitions at dropped
// are gone. The error, for what cannot be told, is a table.ErrUnsupported that says
// what to do.
func (p trimPlan) claims() (map[table.UUID][]table.FragmentID, error) {
	c := claims{plan: p, of: map[table.UUID][]table.FragmentID{}}
	for _, i := range p.dropped {
		sources := digestIDs(p.history.At(i).Sources())
		for _, x := range p.needs[i].Doubts {
			c.set(x, func(ids []table.FragmentID) []table.FragmentID { return append(ids, sources...) })
		}
		if !p.needs[i].Discard {
			continue
		}
		for _, x := range p.needs[i].Indexes {
			if err := c.damaged(i, x, sources); err != nil {
				return nil, err
			}
		}
	}
	return c.of, nil
}

type claims struct {
	plan trimPlan
	of   map[table.UUID][]table.FragmentID
}

// set changes the coverage of a segment, in addition to what was changed already.
func (c *claims) set(x table.IndexMeta, change func([]table.FragmentID) []table.FragmentID) {
	ids, ok := c.of[x.UUID]
	if !ok {
		ids = slices.Clone(x.Coverage)
	}
	ids = change(ids)
	slices.Sort(ids)
	if ids = slices.Compact(ids); ids == nil {
		ids = []table.FragmentID{} // known to be none
	}
	if !slices.Equal(ids, x.Coverage) {
		c.of[x.UUID] = ids
	}
}

// damaged changes the claims of an index that needs a damaged transition.
func (c *claims) damaged(i int, x table.IndexMeta, sources []table.FragmentID) error {
	base, commit := c.plan.base, c.plan.commits[i]
	refuse := func(why string) error {
		return table.Unsupportedf("index %s may hold rows that a damaged transition moved (fragments %s), and %s: build the index again or drop it, then drop what is damaged",
			x.Name, table.FragmentList(sources), why)
	}
	if !x.CoverageKnown {
		return refuse("does not record what it covers")
	}
	if !base.StableRowIDs || x.ByAddress {
		heirs := c.plan.history.Descendants(i)
		c.set(x, func(ids []table.FragmentID) []table.FragmentID {
			return append(without(ids, heirs), sources...)
		})
		return nil
	}
	made := c.plan.made[i]
	switch {
	case !slices.ContainsFunc(sources, x.Covers):
		return nil // ids are followed by no transition, and what it claims is right
	case !commit.Exact:
		return refuse("which fragments they became cannot be told any more, because old versions were cleaned up")
	}
	// All that the commit removed, not only what the history says of it: a part of that
	// may have been trimmed.
	for _, id := range c.plan.gone[i] {
		if !x.Covers(id) {
			return refuse("the commit mixed rows that it covers with others")
		}
	}
	for _, id := range made {
		if _, ok := base.Fragment(id); !ok {
			return refuse("the fragments that they became were rewritten since")
		}
	}
	c.set(x, func(ids []table.FragmentID) []table.FragmentID { return append(without(ids, sources), made...) })
	return nil
}

// without returns ids that are not in what is to go.
func without(ids, gone []table.FragmentID) []table.FragmentID {
	set := make(map[table.FragmentID]bool, len(gone))
	for _, id := range gone {
		set[id] = true
	}
	return slices.DeleteFunc(ids, func(id table.FragmentID) bool { return set[id] })
}

// commitText says in which version a transition was committed, where that is not
// known. It is empty where it is.
func commitText(c fri.Commit) string {
	switch {
	case c.Version == 0:
		return "commit version unknown: its fragments are not gone, or never were"
	case !c.Exact:
		return "commit version unknown: cleaned up"
	}
	return ""
}
