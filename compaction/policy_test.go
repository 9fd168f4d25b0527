package compaction

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// TestPolicy reads testdata/policy. A decision is about groups, one a line, each
// written "old -> new"; new may be empty. What is printed after the decision is
// what the commit writes into the coverage of indexes.
func TestPolicy(t *testing.T) {
	datadriven.Walk(t, "testdata/policy", func(t *testing.T, path string) {
		var s *table.Snapshot
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "define" {
				s = defineTable(t, d.Input)
				return ""
			}
			require.Equal(t, "decide", d.Cmd)
			o := defineOptions(t, d)
			o.EnsureDefaults()
			if err := o.Validate(); err != nil {
				return describeError(err)
			}
			var placed []rebase.Placed
			var groups [][]table.FragmentID
			for line := range strings.Lines(d.Input) {
				from, to, ok := strings.Cut(strings.TrimSpace(line), "->")
				require.True(t, ok, line)
				var new []table.FragmentID
				if to = strings.TrimSpace(to); to != "" {
					new = ids(t, to)
				}
				placed = append(placed, placedGroup(ids(t, strings.TrimSpace(from)), new))
				groups = append(groups, placed[len(placed)-1].Present)
			}
			v := indexView{indexes: s.Indexes}
			if slices.ContainsFunc(d.CmdArgs, func(a datadriven.CmdArg) bool { return a.Key == "unreadable" }) {
				v.obstacle = "the table has a fragment reuse index that cannot be extended"
			}
			decision, err := decide(s, v, o.publishing(), groups, anyGain(s.Indexes, groups))
			if err != nil {
				return describeError(err)
			}
			var b strings.Builder
			b.WriteString(describeDecision(decision))
			if decision.Forced {
				b.WriteString("forced\n")
			}
			coverage := decision.coverage(s.Indexes, placed)
			for _, m := range s.Indexes {
				if c, ok := coverage[m.UUID]; ok {
					require.True(t, slices.IsSorted(c))
					require.NotNil(t, c, "nil is unknown coverage, not an empty one")
					fmt.Fprintf(&b, "write %s covers=%s\n", m.Name, table.FragmentList(c))
				}
			}
			return b.String()
		})
	})
}

// placedGroup is a group all of whose sources are there.
func placedGroup(old, new []table.FragmentID) rebase.Placed {
	p := rebase.Placed{Group: &rebase.Group{}, Present: old}
	for _, id := range old {
		p.Old = append(p.Old, table.Fragment{ID: id})
	}
	for _, id := range new {
		p.Now = append(p.Now, table.Fragment{ID: id})
	}
	return p
}
