package fri_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/fri/fritest"
	"github.com/rehome-db/rehome/table"
)

// trimSpec runs "trim HISTORY [readers=VERSION] [claim]". Its lines:
//
//	index NAME version=V covers=IDS [was=IDS] [remapped] [unknown] [masks] [system]
//	commit N version=V [forgotten]
//
// covers is the coverage as stored now, was that of the versions which the commits
// replaced (the same, if not given), of a segment with another id if it was remapped
// since. "masks" is a kind that is right when masked.
// With "claim" an index in doubt is made to claim what is dropped.
//
// Without a commit line a transition was committed in the version that it records,
// and what was before is known, unless it is forgotten.
func trimSpec(t *testing.T, d *datadriven.TestData, h *fri.History) string {
	trimming := fri.Trimming{Commits: make([]fri.Commit, h.Len())}
	d.MaybeScanArgs(t, "readers", &trimming.OldestReader)
	trimming.ClaimDoubts = d.HasArg("claim")
	for i, tr := range h.All() {
		trimming.Commits[i] = fri.Commit{Version: tr.DatasetVersion(), BeforeKnown: true}
	}
	var before []table.IndexMeta
	for _, line := range strings.Split(d.Input, "\n") {
		what, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "":
		case "commit":
			n, kv := attrs(rest)
			c := &trimming.Commits[number(t, n)]
			c.Version, c.BeforeKnown = number(t, kv["version"]), !strings.Contains(rest, " forgotten")
		case "index":
			x := index(t, rest)
			copy(x.UUID[:], x.Name)
			x.Reuse = table.ReuseThrough
			if strings.Contains(rest, " masks") {
				x.Reuse = table.ReuseMasked
			}
			trimming.Indexes = append(trimming.Indexes, x)
			if _, kv := attrs(rest); kv["was"] != "" {
				x.Coverage = nil
				for o := range offsets(t, kv["was"]).All() {
					x.Coverage = append(x.Coverage, table.FragmentID(o))
				}
			}
			if strings.Contains(rest, " remapped") {
				x.UUID[15] = 0xff
			}
			before = append(before, x)
		default:
			t.Fatalf("%s: unknown line %q", d.Pos, line)
		}
	}
	for i := range trimming.Commits {
		if trimming.Commits[i].BeforeKnown {
			trimming.Commits[i].Before = before
		}
	}
	needs, err := h.Needs(trimming)
	if err != nil {
		return describe(t, err)
	}
	kept, dropped, err := h.Trim(trimming)
	require.NoError(t, err)
	require.Equal(t, h.Len(), kept.Len()+len(dropped))
	again, err := fri.Decode(kept.Encode(), kept.IndexVersion())
	require.NoError(t, err)
	require.Equal(t, list(kept), list(again), "what is stored is what was kept")
	var b strings.Builder
	for i, tr := range h.All() {
		fate := "kept for " + needs[i].String()
		if slices.Contains(dropped, i) {
			require.False(t, needs[i].Needed())
			fate = "dropped"
			for _, x := range needs[i].Doubts {
				fate += ", to be claimed by " + x.Name
			}
		}
		fmt.Fprintf(&b, "%d: %s %s\n", i, digestNames(tr), fate)
	}
	return b.String()
}

func digestNames(tr *fri.Transition) string {
	ids := func(ds []fri.Digest) string {
		var out []string
		for _, d := range ds {
			out = append(out, fmt.Sprint(d.ID))
		}
		return strings.Join(out, " ")
	}
	return ids(tr.Sources()) + " -> " + ids(tr.Destinations()) + ":"
}

// Trimming what was trimmed changes nothing, and a trim of a part of one commit
// carries the rest of it.
func TestTrimKeepsTheRest(t *testing.T) {
	m := fritest.New(0)
	for range 6 {
		m.Add(5)
	}
	a := m.Compact(t, []int{0, 1}, nil, false) // 6
	b := m.Compact(t, []int{0, 1}, nil, false) // 7
	h, err := m.History.Append(2, a, b)
	require.NoError(t, err)
	c := m.Compact(t, []int{0, 1}, nil, false) // 4 5
	h, err = h.Append(3, c)
	require.NoError(t, err)

	x := table.IndexMeta{Name: "x", Coverage: []table.FragmentID{2, 3}, CoverageKnown: true, DatasetVersion: 1, Reuse: table.ReuseThrough}
	known := fri.Commit{BeforeKnown: true, Before: []table.IndexMeta{x}}
	commits := []fri.Commit{known, known, known}
	for i, v := range []uint64{2, 2, 3} {
		commits[i].Version = v
	}
	kept, dropped, err := h.Trim(fri.Trimming{Indexes: []table.IndexMeta{x}, Commits: commits})
	require.NoError(t, err)
	require.Equal(t, []int{0, 2}, dropped)
	require.Equal(t, 1, kept.Len())
	require.Equal(t, b.String(), kept.At(0).String())
	require.EqualValues(t, 2, kept.At(0).DatasetVersion())
	require.Equal(t, fri.Translation{State: fri.Moved, Addr: table.NewRowAddr(7, 1)}, kept.Translate(table.NewRowAddr(2, 1)))
	require.Equal(t, fri.Unaffected, kept.Translate(table.NewRowAddr(0, 1)).State)
	require.Less(t, len(kept.Encode()), len(h.Encode()))

	same, dropped, err := kept.Trim(fri.Trimming{Indexes: []table.IndexMeta{x}, Commits: commits[1:2]})
	require.NoError(t, err)
	require.Empty(t, dropped)
	require.Same(t, kept, same)

	// The old history is as it was.
	require.Equal(t, 3, h.Len())
	_, _, err = h.Trim(fri.Trimming{Commits: commits[:1]})
	require.ErrorContains(t, err, "1 commits for 3 transitions")
}

// Transitions in the form of index version 1 record no version of their own, and
// are carried or dropped one by one.
func TestTrimTagged(t *testing.T) {
	m := fritest.New(0)
	for range 4 {
		m.Add(5)
	}
	h, err := m.History.Append(2, m.Compact(t, []int{0}, nil, false)) // 4
	require.NoError(t, err)
	h, err = h.Upgrade(1)
	require.NoError(t, err)
	a, b := m.Compact(t, []int{0}, nil, false), m.Compact(t, []int{0}, nil, false) // 1 -> 5, 2 -> 6
	h, err = h.Append(3, a, b)
	require.NoError(t, err)
	x := table.IndexMeta{Name: "x", Coverage: []table.FragmentID{2}, CoverageKnown: true, DatasetVersion: 1, Reuse: table.ReuseThrough}
	c := fri.Commit{Version: 3, BeforeKnown: true}
	kept, dropped, err := h.Trim(fri.Trimming{Indexes: []table.IndexMeta{x}, Commits: []fri.Commit{c, c, c}})
	require.NoError(t, err)
	require.Equal(t, []int{0, 1}, dropped)
	require.EqualValues(t, 1, kept.IndexVersion())
	again, err := fri.Decode(kept.Encode(), 1)
	require.NoError(t, err)
	require.Equal(t, b.String(), again.At(0).String())

	kept, dropped, err = h.Trim(fri.Trimming{Commits: []fri.Commit{c, c, c}})
	require.NoError(t, err)
	require.Len(t, dropped, 3)
	require.Empty(t, kept.Encode())
}
