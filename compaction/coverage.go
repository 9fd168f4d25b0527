package compaction

import (
	"fmt"
	"slices"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// retarget replaces, in the coverage of m, the old fragments of every group that
// m covers by the new ones. Of an old fragment that died since no row is anywhere,
// so that it does not matter whether an index covers it. A group without new fragments, because no row of it
// was left, is not replaced: the claim on the vanished fragments is then what
// keeps readers from following the index's addresses into them.
func retarget(m table.IndexMeta, groups []rebase.Placed) (coverage []table.FragmentID, changed bool) {
	coverage = slices.Clone(m.Coverage)
	for _, g := range groups {
		if len(g.Now) == 0 || covered(m, g.Present) < len(g.Present) {
			continue
		}
		changed = true
		coverage = append(without(coverage, g.SourceIDs()), fragmentIDs(g.Now)...)
	}
	slices.Sort(coverage)
	return coverage, changed
}

// uncover takes the old fragments of every group out of the coverage of m.
func uncover(m table.IndexMeta, groups []rebase.Placed) (coverage []table.FragmentID, changed bool) {
	coverage = slices.Clone(m.Coverage)
	for _, g := range groups {
		coverage = without(coverage, g.SourceIDs())
	}
	if coverage == nil {
		coverage = []table.FragmentID{}
	}
	return coverage, len(coverage) < len(m.Coverage)
}

func fragmentIDs(fragments []table.Fragment) []table.FragmentID {
	ids := make([]table.FragmentID, len(fragments))
	for i, f := range fragments {
		ids[i] = f.ID
	}
	return ids
}

// straddles names an index of those that may be re-targeted and that covers some of
// the group's fragments but not all, or returns "". Rows that such an index does not
// hold would be claimed by it in the new fragments, or the reverse. Of the group's
// fragments those that are present have to be covered; one that died may be.
func straddles(indexes []table.IndexMeta, may func(table.IndexMeta) bool, group, present []table.FragmentID) string {
	for _, m := range indexes {
		if may(m) && covered(m, group) > 0 && covered(m, present) < len(present) {
			return fmt.Sprintf("index %q covers %d of its %d fragments", m.Name, covered(m, present), len(present))
		}
	}
	return ""
}

// signature tells apart fragments that must not share a group: it is the set of
// segments that cover the fragment, of those that may be re-targeted.
func signature(indexes []table.IndexMeta, may func(table.IndexMeta) bool, id table.FragmentID) string {
	var out []byte
	for _, m := range indexes {
		if may(m) && m.Covers(id) {
			out = append(out, m.UUID[:]...)
		}
	}
	return string(out)
}
