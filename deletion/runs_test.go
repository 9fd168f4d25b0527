package deletion_test

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
)

type run struct{ start, end uint64 }

func runsOf(runs []run) iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		for _, r := range runs {
			if !yield(r.start, r.end) {
				return
			}
		}
	}
}

// TestCollectRuns compares with a set of offsets. Runs are short and long, touch,
// overlap, are empty, and come in any order.
func TestCollectRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := rapid.SliceOf(rapid.Custom(func(t *rapid.T) run {
			start := rapid.Uint64Range(0, 200_000).Draw(t, "start")
			return run{start, start + rapid.OneOf(rapid.Uint64Range(0, 3), rapid.Uint64Range(1000, 1050), rapid.Just(uint64(70_000))).Draw(t, "rows")}
		})).Draw(t, "runs")
		model := map[uint32]bool{}
		for _, r := range runs {
			for o := r.start; o < r.end; o++ {
				model[uint32(o)] = true
			}
		}
		var want []uint32
		for o := range model {
			want = append(want, o)
		}
		slices.Sort(want)
		v := deletion.CollectRuns(runsOf(runs))
		require.Equal(t, want, slices.Collect(v.All()))
	})
	// The last offset, and what lies beyond it.
	v := deletion.CollectRuns(runsOf([]run{{math.MaxUint32, 1 << 40}, {1 << 33, 1 << 34}, {7, 3}}))
	require.Equal(t, []uint32{math.MaxUint32}, slices.Collect(v.All()))
}

// BenchmarkCollectRuns: what it costs is a matter of rows and runs, however short the
// runs are.
func BenchmarkCollectRuns(b *testing.B) {
	for _, rows := range []uint64{1, 4, 300, 5000} {
		var runs []run
		for start := uint64(0); start < 1_000_000; start += rows + 1 {
			runs = append(runs, run{start, start + rows})
		}
		b.Run(fmt.Sprint("rows=", rows), func(b *testing.B) {
			for b.Loop() {
				deletion.CollectRuns(runsOf(runs))
			}
		})
	}
}
