package fri_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/fri/fritest"
	"github.com/rehome-db/rehome/table"
)

// questions are addresses of every fragment that the model ever had, ascending:
// all of small ones, every few of large ones and those around the edges of blocks,
// words and groups, and some that no row ever had.
func questions(m *fritest.Model) []table.RowAddr {
	var out []table.RowAddr
	for _, f := range m.All {
		step := 1 + f.Rows/1500
		var at []uint64
		for o := uint64(0); o < f.Rows; o += step {
			at = append(at, o)
		}
		for _, edge := range []uint64{64, 128, 4096, 65536, f.Rows} {
			at = append(at, edge-1, edge, edge+1)
		}
		at = append(at, 1<<32-1)
		slices.Sort(at)
		for _, o := range slices.Compact(at) {
			out = append(out, table.NewRowAddr(f.ID, uint32(o)))
		}
	}
	out = append(out, table.NewRowAddr(m.Next+7, 0), 1<<64-1, 0)
	slices.Sort(out)
	return out
}

// checkPrimitives compares every way to ask a history with the model.
func checkPrimitives(t require.TestingT, m *fritest.Model, h *fri.History) {
	asked := questions(m)
	tr := h.Translator()
	want := make([]fri.Translation, len(asked))
	for i, a := range asked {
		want[i] = m.Translate(a)
		got, err := tr.Translate(a)
		if err != nil || got != want[i] {
			require.Fail(t, "wrong answer", "%v: got %v, want %v, error %v", a, got, want[i], err)
		}
	}
	check := func(name string, translate func([]table.RowAddr, []fri.State) error, order []int) {
		addrs, states := make([]table.RowAddr, len(order)), make([]fri.State, len(order))
		for i, k := range order {
			addrs[i] = asked[k]
		}
		require.NoError(t, translate(addrs, states))
		for i, k := range order {
			addr := want[k].Addr
			if want[k].State == fri.Deleted {
				addr = asked[k] // is left as it is
			}
			if states[i] != want[k].State || addrs[i] != addr {
				require.Fail(t, "wrong answer", "%s: %v: got %v %v, want %v", name, asked[k], states[i], addrs[i], want[k])
			}
		}
	}
	var order []int
	for i := range asked {
		order = append(order, i)
		if i%3 == 0 {
			order = append(order, i)
		}
	}
	check("sorted", h.Translator().TranslateSorted, order)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	check("batch", h.Translator().TranslateBatch, order)
	check("sorted, asked in disorder", tr.TranslateSorted, order)

	for _, f := range m.All {
		checkRuns(t, m, h, f)
	}
	for range h.Runs(m.Next + 7) {
		require.Fail(t, "runs of a fragment that never was")
	}
}

// checkRuns: the runs of a fragment cover its rows, are true at both ends and are
// maximal.
func checkRuns(t require.TestingT, m *fritest.Model, h *fri.History, f fritest.Fragment) {
	next, any := uint64(0), false
	var prev fri.Run
	for run, err := range h.Runs(f.ID) {
		if err != nil || run.From != table.NewRowAddr(f.ID, uint32(next)) || run.Len == 0 {
			require.Fail(t, "wrong run", "%v, error %v, want one from row %d on", run, err, next)
		}
		for _, i := range []uint64{0, run.Len / 2, run.Len - 1} {
			want := m.Translate(run.From + table.RowAddr(i))
			got := fri.Translation{State: fri.Moved, Addr: run.To + table.RowAddr(i)}
			if run.Deleted {
				got = fri.Translation{State: fri.Deleted}
			}
			if got != want {
				require.Fail(t, "wrong run", "%v + %d: want %v", run, i, want)
			}
		}
		if any {
			if prev.Deleted && run.Deleted || !prev.Deleted && !run.Deleted && prev.To+table.RowAddr(prev.Len) == run.To {
				require.Fail(t, "one run in two", "%v and %v", prev, run)
			}
		}
		next += run.Len
		prev, any = run, true
	}
	require.Equal(t, h.Touched(f.ID), any)
	if any {
		require.Equal(t, f.Rows, next, "rows of fragment %d in runs", f.ID)
	}
}

func TestPrimitivesAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		checkPrimitives(t, m, m.History)
	})
}

// Chains of up to two hundred rewrites, each of what the one before it wrote.
func TestPrimitivesOnStackedTransitions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := fritest.New(0)
		m.Add(rapid.Uint64Range(1, 40).Draw(t, "rows"))
		m.Add(rapid.Uint64Range(1, 40).Draw(t, "rows"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		sparse := rapid.Bool().Draw(t, "few deletions")
		for range rapid.SampledFrom([]int{1, 2, 3, 5, 7, 10, 20, 50, 200}).Draw(t, "stacked") {
			var at []int
			for i := range m.Live {
				f := &m.Live[i]
				if !sparse || rng.IntN(10) == 0 {
					f.Dead = f.Dead.Union(deletion.Of(uint32(rng.Uint64N(f.Rows))))
				}
				at = append(at, i)
			}
			if len(at) == 0 {
				break
			}
			m.Commit(t, m.Compact(t, at, []uint64{rng.Uint64N(60)}, rng.IntN(2) == 0))
		}
		checkPrimitives(t, m, m.History)
	})
}

// Every form of a block, at every kind of edge: sources of several blocks, with
// deletions that make the writer choose each container.
func TestForms(t *testing.T) {
	every := func(n, of uint64, rows uint64) *deletion.Vector { // n rows deleted of every so many
		v := deletion.Of()
		for at := uint64(0); at < rows; at += of {
			v = v.Union(deletion.Range(at, min(at+n, rows)))
		}
		return v
	}
	for _, rows := range []uint64{1, 64, 128, 4097, 65535, 65536, 65537, 3*65536 + 100} {
		for name, dead := range map[string]*deletion.Vector{
			"none": nil, "all": deletion.Range(0, rows), "first": deletion.Of(0), "last": deletion.Of(uint32(rows - 1)),
			"all but the first": deletion.Range(min(1, rows), rows), "all but the last": deletion.Range(0, rows-1),
			"every second": every(1, 2, min(rows, 20000)), "one of ten": every(1, 10, min(rows, 30000)),
			"clusters": every(100, 1000, rows), "nearly all": every(99, 100, rows), "half": deletion.Range(rows/3, rows),
			"second block": deletion.Range(min(65536, rows), min(2*65536, rows)),
		} {
			t.Run(fmt.Sprintf("%d/%s", rows, name), func(t *testing.T) {
				m := fritest.New(0)
				m.Add(3)
				m.Add(rows)
				m.Live[1].Dead = dead
				tr := m.Compact(t, []int{0, 1}, []uint64{0, 2, rows / 2, 0}, false)
				h, err := m.History.Append(2, tr)
				require.NoError(t, err)
				checkPrimitives(t, m, h)
				f := m.All[1]
				for o := range f.Rows {
					a := table.NewRowAddr(f.ID, uint32(o))
					if got, want := h.Translate(a), m.Translate(a); got != want {
						t.Fatalf("%v: got %v, want %v", a, got, want)
					}
				}
			})
		}
	}
}

// A bulk remap through stacked rewrites looks each stretch of rows up once in the
// rewrite that cut it and not once in every rewrite.
func TestRunsComposeInOnePass(t *testing.T) {
	const rows, stacked = 100000, 100
	h := &fri.History{}
	physical, id := uint64(rows), table.FragmentID(0)
	gaps := 0
	for i := range stacked {
		dead := deletion.Of()
		if i == 0 { // a thousand gaps in the first rewrite, one in each of the others
			for o := uint64(50); o < physical; o += 100 {
				dead = dead.Union(deletion.Range(o, o+10))
			}
		} else {
			dead = deletion.Of(uint32(i * 500))
		}
		gaps += int(dead.Cardinality())
		var b fri.Builder
		d := fri.Digest{ID: id, PhysicalRows: physical, DeletedRows: dead.Cardinality()}
		require.NoError(t, b.AddSource(d, dead))
		id, physical = id+1, d.LiveRows()
		tr, err := b.Build([]fri.Digest{{ID: id, PhysicalRows: physical}})
		require.NoError(t, err)
		h, err = h.Append(uint64(i+1), tr)
		require.NoError(t, err)
	}
	n := 0
	for run, err := range h.Runs(0) {
		require.NoError(t, err)
		n++
		if run.Deleted {
			gaps -= int(run.Len)
		}
	}
	require.Zero(t, gaps, "every deleted row is in a run")
	require.Greater(t, n, 2000)
	steps, stretches := fri.WalkSteps(h, 0)
	require.GreaterOrEqual(t, steps, n)
	// One walk of each rewrite would take at least as many steps as there are
	// stretches, a hundred times over.
	require.Less(t, steps, 10*stretches, "%d stretches", stretches)

	// The addresses of a sorted batch are asked of it once each, too.
	tr := h.Translator()
	addrs, states := make([]table.RowAddr, rows), make([]fri.State, rows)
	for o := range addrs {
		addrs[o] = table.NewRowAddr(0, uint32(o))
	}
	require.NoError(t, tr.TranslateSorted(addrs, states))
	for o := 0; o < rows; o += 37 {
		got := h.Translate(table.NewRowAddr(0, uint32(o)))
		require.Equal(t, got.State, states[o])
		if got.State == fri.Moved {
			require.Equal(t, got.Addr, addrs[o])
		}
	}
}

func TestBatchesNeedRoom(t *testing.T) {
	tr := (&fri.History{}).Translator()
	addrs := []table.RowAddr{7, 8}
	require.ErrorContains(t, tr.TranslateSorted(addrs, make([]fri.State, 1)), "room for 1")
	require.ErrorContains(t, tr.TranslateBatch(addrs, nil), "room for 0")
	states := []fri.State{9, 9, 9}
	require.NoError(t, tr.TranslateSorted(addrs, states))
	require.Equal(t, []fri.State{fri.Unaffected, fri.Unaffected, 9}, states)
	require.Equal(t, []table.RowAddr{7, 8}, addrs)
}

// A lookup allocates nothing once its fragment is decoded.
func TestLookupsDoNotAllocate(t *testing.T) {
	h, addrs := benchHistory(t, true)
	tr := h.Translator()
	for i := 0; i < len(addrs); i += 1000 {
		h.Translate(addrs[i])
		_, err := tr.Translate(addrs[i])
		require.NoError(t, err)
	}
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for i := 0; i < len(addrs); i += 1000 {
			h.Translate(addrs[i])
			_, _ = tr.Translate(addrs[i])
		}
	}))
	batch, states := slices.Clone(addrs), make([]fri.State, len(addrs))
	require.LessOrEqual(t, testing.AllocsPerRun(1, func() { _ = tr.TranslateSorted(batch, states) }), 3.0)
}
