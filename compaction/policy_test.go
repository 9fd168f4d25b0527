package compaction

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

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
			var swaps []swap
			var groups [][]table.FragmentID
			for line := range strings.Lines(d.Input) {
				from, to, ok := strings.Cut(strings.TrimSpace(line), "->")
				require.True(t, ok, line)
				w := swap{old: ids(t, strings.TrimSpace(from))}
				if to = strings.TrimSpace(to); to != "" {
					w.new = ids(t, to)
				}
				swaps = append(swaps, w)
				groups = append(groups, w.old)
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
			coverage := decision.coverage(s.Indexes, swaps)
			for _, m := range s.Indexes {
				if c, ok := coverage[m.UUID]; ok {
					require.True(t, slices.IsSorted(c))
					require.NotNil(t, c, "nil is unknown coverage, not an empty one")
					fmt.Fprintf(&b, "write %s covers=%s\n", m.Name, idList(c))
				}
			}
			return b.String()
		})
	})
}
