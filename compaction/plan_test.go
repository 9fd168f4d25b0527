package compaction

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// TestPlan reads testdata/plan, one file a theme. "shared" in the options stands
// for an engine that advises table.ReuseWhenRead, as the Lance engine does.
func TestPlan(t *testing.T) {
	datadriven.Walk(t, "testdata/plan", func(t *testing.T, path string) {
		var s *table.Snapshot
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "define":
				s = defineTable(t, d.Input)
				return ""
			case "plan":
				plan, err := Plan(s, defineOptions(t, d))
				if err != nil {
					require.Empty(t, plan)
					return describeError(err)
				}
				out := describePlan(plan, d.HasArg("policy") || d.HasArg("fri") || len(s.Indexes) > 0)
				if d.HasArg("order") || d.HasArg("keep-order") {
					out += fmt.Sprintf("keeps the order of rows: %v\n", plan.KeepsOrder)
				}
				return out
			}
			t.Fatalf("command %s", d.Cmd)
			return ""
		})
	})
}

func describeError(err error) string {
	kind := "error"
	if errors.Is(err, table.ErrUnsupported) {
		kind = "not supported"
	}
	return kind + ": " + err.Error() + "\n"
}

func describePlan(p Planned, indexes bool) string {
	var b strings.Builder
	for _, t := range p.Tasks {
		fmt.Fprintf(&b, "%s: %d rows, %d bytes -> files of %d rows\n  %s\n", table.FragmentList(t.SourceIDs()), t.Rows, t.Bytes, t.Writing.MaxRows, t.Reason)
	}
	if len(p.Tasks) == 0 {
		b.WriteString("nothing to do\n")
	}
	for i := 0; i < len(p.Kept); {
		j := i
		var run []table.FragmentID
		for ; j < len(p.Kept) && p.Kept[j].Reason == p.Kept[i].Reason; j++ {
			run = append(run, p.Kept[j].Fragment)
		}
		fmt.Fprintf(&b, "kept %s: %s\n", table.FragmentList(run), p.Kept[i].Reason)
		i = j
	}
	if indexes {
		b.WriteString(describeDecision(p.Decision))
	}
	return b.String()
}

func describeDecision(d Decision) string {
	var b strings.Builder
	fmt.Fprintf(&b, "policy %s, fragment reuse index %v: %s\n", d.Policy, d.PublishFRI, d.Reason)
	for _, m := range d.Indexes {
		fmt.Fprintf(&b, "  %s %s: %s\n", m.Name, m.Action, m.Reason)
	}
	return b.String()
}

// genTable draws a table of fragments, and indexes if asked for.
func genTable(t *rapid.T, indexed bool) *table.Snapshot {
	s := &table.Snapshot{Table: "t", Version: 3}
	n := rapid.IntRange(0, 40).Draw(t, "fragments")
	for i := range n {
		rows := rapid.Uint64Range(0, 130).Draw(t, "rows")
		f := table.Fragment{ID: table.FragmentID(i), PhysicalRows: rows, Files: []table.DataFile{{Path: fmt.Sprint(i), Bytes: rows * 8000}}}
		if dead := rapid.Uint64Range(0, rows).Draw(t, "deleted"); dead > 0 && rapid.Bool().Draw(t, "any deleted") {
			f.Deletion = &table.DeletionRef{Path: fmt.Sprint(i), Rows: dead}
		}
		s.Fragments = append(s.Fragments, f)
	}
	s.NextFragmentID = table.FragmentID(n)
	for i := range rapid.IntRange(0, 3).Draw(t, "indexes") {
		if !indexed || n == 0 {
			break
		}
		m := table.IndexMeta{UUID: table.UUID{15: byte(i + 1)}, Name: fmt.Sprint("i", i), CoverageKnown: true}
		m.Reuse = rapid.SampledFrom([]table.ReuseSupport{table.ReuseThrough, table.ReuseThrough, table.ReuseMasked}).Draw(t, "kind")
		for id := range n {
			if rapid.Bool().Draw(t, "covered") {
				m.Coverage = append(m.Coverage, table.FragmentID(id))
			}
		}
		s.Indexes = append(s.Indexes, m)
	}
	return s
}

// published is the table after the plan was carried out, as a writer would that
// closes files at exactly the rows it is asked for, of rows that are all alike.
func published(t *rapid.T, s *table.Snapshot, plan Planned) *table.Snapshot {
	out := *s
	out.Version++
	out.Fragments = nil
	gone := map[table.FragmentID]bool{}
	var placed []rebase.Placed
	var added []table.Fragment
	for _, task := range plan.Tasks {
		var new []table.FragmentID
		for _, id := range task.SourceIDs() {
			require.False(t, gone[id], "fragment %d is in two tasks", id)
			gone[id] = true
		}
		live := uint64(0)
		for _, f := range task.Sources {
			live += liveBytes(f)
		}
		for left := task.Rows; left > 0; {
			rows := min(left, task.Writing.MaxRows)
			left -= rows
			id := out.NextFragmentID
			out.NextFragmentID++
			new = append(new, id)
			added = append(added, table.Fragment{ID: id, PhysicalRows: rows, Files: []table.DataFile{{
				Path: fmt.Sprint(id), Bytes: uint64(float64(live) * float64(rows) / float64(task.Rows)),
			}}})
		}
		require.EqualValues(t, task.Files, len(new))
		placed = append(placed, placedGroup(task.SourceIDs(), new))
	}
	for _, f := range s.Fragments {
		if !gone[f.ID] {
			out.Fragments = append(out.Fragments, f)
		}
	}
	out.Fragments = append(out.Fragments, added...)
	coverage := plan.Decision.coverage(s.Indexes, placed)
	out.Indexes = nil
	for _, m := range s.Indexes {
		if c, ok := coverage[m.UUID]; ok {
			m.Coverage = c
		}
		out.Indexes = append(out.Indexes, m)
	}
	return &out
}

// TestCompactingTwiceFindsNothingTheSecondTime is what keeps a table from being
// rewritten again and again: see the comment on Plan.
func TestCompactingTwiceFindsNothingTheSecondTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genTable(t, true)
		opts := Options{
			TargetRows:      rapid.Uint64Range(1, 200).Draw(t, "target"),
			MaxBytesPerFile: rapid.Uint64Range(8000, 2_000_000).Draw(t, "max bytes"),
			AnyDeletion:     rapid.IntRange(0, 3).Draw(t, "any deletion") == 0, DeletionThreshold: rapid.SampledFrom([]float64{0.1, 0.5, 1}).Draw(t, "threshold"),
			IndexPolicy: rapid.SampledFrom([]IndexPolicy{IndexAuto, IndexLeave, IndexThrough}).Draw(t, "policy"),
			Advice:      rapid.SampledFrom([]table.ReusePolicy{table.ReuseAlways, table.ReuseWhenRead}).Draw(t, "advice"),
		}
		first, err := Plan(s, opts)
		require.NoError(t, err)
		next := published(t, s, first)
		second, err := Plan(next, opts)
		require.NoError(t, err)
		require.Empty(t, second.Tasks, "first plan:\n%s\nsecond:\n%s", describePlan(first, true), describePlan(second, true))
	})
}

// TestPlanInvariants: what holds for every plan.
func TestPlanInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genTable(t, true)
		opts := Options{
			TargetRows:         rapid.Uint64Range(1, 200).Draw(t, "target"),
			IndexPolicy:        rapid.SampledFrom([]IndexPolicy{IndexAuto, IndexLeave, IndexThrough}).Draw(t, "policy"),
			Advice:             rapid.SampledFrom([]table.ReusePolicy{table.ReuseAlways, table.ReuseWhenRead}).Draw(t, "advice"),
			MaxSourceFragments: rapid.SampledFrom([]int{0, 3, 10}).Draw(t, "source fragments"),
			MaxSourceRows:      rapid.SampledFrom([]uint64{0, 100, 500}).Draw(t, "source rows"),
		}
		plan, err := Plan(s, opts)
		require.NoError(t, err)
		fate := map[table.FragmentID]int{}
		var rows uint64
		for _, task := range plan.Tasks {
			require.NoError(t, task.validate())
			require.NotEmpty(t, task.Reason)
			for i, f := range task.Sources {
				fate[f.ID]++
				own, ok := s.Fragment(f.ID)
				require.True(t, ok && own.Same(f))
				require.True(t, i == 0 || task.Sources[i-1].ID < f.ID)
			}
			if plan.Decision.Policy == IndexThrough {
				require.Empty(t, straddles(s.Indexes, readsThrough, task.SourceIDs(), task.SourceIDs()))
			}
			require.LessOrEqual(t, task.Writing.MaxRows, uint64(float64(opts.TargetRows)*(1+overshoot))+1)
			rows += task.Rows
		}
		for _, k := range plan.Kept {
			fate[k.Fragment]++
		}
		require.Len(t, fate, len(s.Fragments))
		for id, n := range fate {
			require.Equal(t, 1, n, "fragment %d is planned and kept, or twice", id)
		}
		if n := opts.MaxSourceFragments; n > 0 {
			require.LessOrEqual(t, len(s.Fragments)-len(plan.Kept), n)
		}
		if n := opts.MaxSourceRows; n > 0 {
			require.LessOrEqual(t, rows, n)
		}
	})
}

// TestTaskSurvivesJSON: a task goes to another machine and comes back the same.
func TestTaskSurvivesJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := genTable(t, false)
		plan, err := Plan(s, Options{
			TargetRows: 100, NoSync: true, KeepCached: true, Force: true, FRI: FRIAlways, IndexPolicy: IndexThrough,
			Advice: table.ReuseWhenRead, Mode: ModeReencode, Threads: 3, MemoryLimit: 1 << 30,
		})
		require.NoError(t, err)
		for _, task := range plan.Tasks {
			data, err := json.Marshal(task)
			require.NoError(t, err)
			var back Task
			require.NoError(t, json.Unmarshal(data, &back))
			require.Equal(t, task, back)
			require.Equal(t, Publishing{FRI: FRIAlways, IndexPolicy: IndexThrough, Advice: table.ReuseWhenRead, Force: true}, back.Publishing)
			require.True(t, back.Writing.NoSync)
			require.True(t, back.Writing.KeepCached)
			require.Equal(t, ModeReencode, back.Writing.Mode)
		}
	})
}
