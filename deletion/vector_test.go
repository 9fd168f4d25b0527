package deletion_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// A Vector is what the interfaces of an engine ask for.
var _ table.OffsetSet = (*deletion.Vector)(nil)

func TestVectorSpec(t *testing.T) {
	named := map[string]*deletion.Vector{}
	datadriven.RunTest(t, "testdata/vector.txt", func(t *testing.T, d *datadriven.TestData) string {
		get := func(i int) *deletion.Vector {
			v, ok := named[d.CmdArgs[i].Key]
			require.True(t, ok, "%s: no vector %q", d.Pos, d.CmdArgs[i].Key)
			return v
		}
		switch d.Cmd {
		case "let":
			v := &deletion.Vector{}
			for _, f := range strings.Fields(d.Input) {
				first, last := parseRange(t, f)
				v = v.Union(deletion.Range(first, last+1))
			}
			named[d.CmdArgs[0].Key] = v
			return v.String() + "\n"
		case "live":
			var rows uint64
			d.ScanArgs(t, "rows", &rows)
			var out []string
			for start, end := range get(0).Live(rows) {
				out = append(out, fmt.Sprintf("%d-%d", start, end-1))
			}
			if out == nil {
				return "(none)\n"
			}
			return strings.Join(out, " ") + "\n"
		case "rank":
			var b strings.Builder
			for _, f := range strings.Fields(d.Input) {
				var o uint32
				_, err := fmt.Sscan(f, &o)
				require.NoError(t, err)
				fmt.Fprintf(&b, "%d: %d\n", o, get(0).Rank(o))
			}
			return b.String()
		case "union":
			return get(0).Union(get(1)).String() + "\n"
		case "intersect":
			return get(0).Intersect(get(1)).String() + "\n"
		case "difference":
			return get(0).Difference(get(1)).String() + "\n"
		case "equal":
			return fmt.Sprintln(get(0).Equal(get(1)))
		case "validate":
			var rows, recorded uint64
			d.ScanArgs(t, "rows", &rows)
			d.ScanArgs(t, "recorded", &recorded)
			if err := get(0).Validate(rows, recorded); err != nil {
				require.ErrorIs(t, err, deletion.ErrCorrupt)
				return err.Error() + "\n"
			}
			return "ok\n"
		default:
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			return ""
		}
	})
}

func parseRange(t *testing.T, s string) (first, last uint64) {
	if a, b, ok := strings.Cut(s, "-"); ok {
		_, err := fmt.Sscan(a, &first)
		require.NoError(t, err)
		_, err = fmt.Sscan(b, &last)
		require.NoError(t, err)
		return first, last
	}
	_, err := fmt.Sscan(s, &first)
	require.NoError(t, err)
	return first, first
}

// draw makes a set that likes container edges, and the plain sorted slice of it.
func draw(t *rapid.T, name string) (*deletion.Vector, []uint32) {
	near := []uint32{0, 4090, 65530, 131066, 1<<32 - 12}
	set := map[uint32]bool{}
	for _, o := range rapid.SliceOfN(rapid.Uint32Range(0, 11), 0, 12).Draw(t, name) {
		set[rapid.SampledFrom(near).Draw(t, "near")+o] = true
	}
	var offsets []uint32
	for o := range set {
		offsets = append(offsets, o)
	}
	v := deletion.Of(offsets...)
	if rapid.Bool().Draw(t, name+" has a run") {
		// Long runs make run and bitmap containers.
		start := rapid.Uint64Range(0, 140000).Draw(t, "start")
		end := start + rapid.Uint64Range(0, 5000).Draw(t, "length")
		v = v.Union(deletion.Range(start, end))
		for o := start; o < end; o++ {
			if !set[uint32(o)] {
				offsets = append(offsets, uint32(o))
				set[uint32(o)] = true
			}
		}
	}
	slices.Sort(offsets)
	return v, offsets
}

func TestVectorAgainstSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, a := draw(t, "v")
		w, b := draw(t, "w")
		check := func(got *deletion.Vector, want []uint32) {
			t.Helper()
			require.True(t, slices.Equal(want, slices.Collect(got.All())))
			require.EqualValues(t, len(want), got.Cardinality())
			require.Equal(t, len(want) == 0, got.IsEmpty())
			require.True(t, got.Equal(deletion.Collect(slices.Values(want))))
			max, ok := got.Max()
			require.Equal(t, len(want) > 0, ok)
			if ok {
				require.Equal(t, want[len(want)-1], max)
			}
		}
		in := func(s []uint32, o uint32) bool { _, ok := slices.BinarySearch(s, o); return ok }
		keep := func(s []uint32, f func(uint32) bool) (out []uint32) {
			for _, o := range s {
				if f(o) {
					out = append(out, o)
				}
			}
			return out
		}
		check(v, a)
		check(v.Intersect(w), keep(a, func(o uint32) bool { return in(b, o) }))
		check(v.Difference(w), keep(a, func(o uint32) bool { return !in(b, o) }))
		union := append(slices.Clone(a), keep(b, func(o uint32) bool { return !in(a, o) })...)
		slices.Sort(union)
		check(v.Union(w), union)
		require.Equal(t, slices.Equal(a, b), v.Equal(w))
		require.Equal(t, slices.ContainsFunc(a, func(o uint32) bool { return in(b, o) }), v.Intersects(w))
		check(v, a) // operations leave their operands alone
		check(w, b)

		for _, o := range append(slices.Clone(b), 0, 65535, 65536, 1<<32-1) {
			require.Equal(t, in(a, o), v.Contains(o))
			rank, _ := slices.BinarySearch(a, o)
			require.EqualValues(t, rank, v.Rank(o))
		}
		runs, at := []uint32{}, uint64(0)
		for start, end := range v.Runs() {
			require.Less(t, start, end)
			require.True(t, start == 0 || start > at, "runs are maximal")
			at = end
			for o := start; o < end; o++ {
				runs = append(runs, uint32(o))
			}
		}
		require.True(t, slices.Equal(a, runs))

		rows := rapid.Uint64Range(0, 140000).Draw(t, "rows")
		dead := map[uint64]bool{}
		for _, o := range a {
			dead[uint64(o)] = true
		}
		var live, want []uint64
		for start, end := range v.Live(rows) {
			for o := start; o < end; o++ {
				live = append(live, o)
			}
		}
		for o := range rows {
			if !dead[o] {
				want = append(want, o)
			}
		}
		require.True(t, slices.Equal(want, live))
	})
}

func TestNilVectorIsEmpty(t *testing.T) {
	var v *deletion.Vector
	require.True(t, v.IsEmpty())
	require.False(t, v.Contains(0))
	require.Zero(t, v.Rank(7))
	require.True(t, v.Equal(deletion.Of()))
	require.True(t, v.Union(deletion.Of(3)).Equal(deletion.Of(3)))
	require.NoError(t, v.Validate(0, 0))
	for start, end := range v.Live(5) {
		require.Equal(t, []uint64{0, 5}, []uint64{start, end})
	}
	for range deletion.Range(9, 9).Runs() {
		t.Fatal("an empty range has no run")
	}
}

func TestIterationStops(t *testing.T) {
	v := deletion.Of(1, 3, 5)
	n := 0
	for range v.All() {
		n++
		break
	}
	for range v.Runs() {
		n++
		break
	}
	for range v.Live(9) {
		n++
		break
	}
	require.Equal(t, 3, n)
}
