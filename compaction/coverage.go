package compaction

import (
	"fmt"
	"slices"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// retarget replaces, in the coverage of m, the old fragments of every group that m
// covers by the new ones. An old fragment that died since has no row left, so it need
// not be covered. A group without new fragments, because none of its rows was left,
// keeps its old fragments in the coverage: readers drop the index's addresses in
// vanished fragments only while the index claims them.
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

// straddles names an index that may be re-targeted and that covers some of the group's
// fragments but not all, or returns "". In the new fragments such an index would claim
// rows that it does not hold, or not claim rows that it holds. Only the fragments that
// are present count; one that died may be covered or not.
func straddles(indexes []table.IndexMeta, may func(table.IndexMeta) bool, group, present []table.FragmentID) string {
	for _, m := range indexes {
		if may(m) && covered(m, group) > 0 && covered(m, present) < len(present) {
			return fmt.Sprintf("index %q covers %d of its %d fragments", m.Name, covered(m, present), len(present))
		}
	}
	return ""
}

// signature is the set of re-targetable segments that cover the fragment. Fragments of
// different signatures must not share a group.
func signature(indexes []table.IndexMeta, may func(table.IndexMeta) bool, id table.FragmentID) string {
	var out []byte
	for _, m := range indexes {
		if may(m) && m.Covers(id) {
			out = append(out, m.UUID[:]...)
		}
	}
	return string(out)
}
