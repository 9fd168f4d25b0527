package fri_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/fri/fritest"
	"github.com/rehome-db/rehome/table"
)

// scatter rewrites the fragments at the given positions, in that order, into n
// destinations by labels that are drawn.
func scatter(t *rapid.T, m *fritest.Model, at []int, n int) *fri.Transition {
	var prepare func(*fri.PartitionBuilder)
	if rapid.Bool().Draw(t, "small blocks") {
		prepare = fri.SmallBlocks
	}
	stride := rapid.Uint32Range(1, 9).Draw(t, "stride")
	return m.Partition(t, at, fritest.Partitioning{
		Destinations: n, Descending: rapid.Bool().Draw(t, "descending"), Prepare: prepare,
		Label: func(a table.RowAddr) uint16 { return uint16(a.Offset() / stride % uint32(n)) },
	})
}

// TestMixedHistories: transitions of both index versions and both mappings, one on
// the other, translate as the model says, before and after storing, and what has a
// version keeps its bytes whatever follows.
func TestMixedHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := fritest.New(0)
		m.History = m.History.WithPartitions(context.Background(), m.Open)
		for range rapid.IntRange(1, 4).Draw(t, "fragments") {
			m.Add(drawRows(t))
		}
		for range rapid.IntRange(1, 6).Draw(t, "commits") {
			if rapid.Bool().Draw(t, "insert") {
				m.Add(drawRows(t))
			}
			for i := range m.Live {
				m.Live[i].DrawDeletions(t)
			}
			var at []int
			for i := range m.Live {
				if rapid.IntRange(0, 2).Draw(t, "take") > 0 {
					at = append(at, i)
				}
			}
			if len(at) == 0 {
				continue
			}
			partition := rapid.Bool().Draw(t, "partition")
			if (partition || m.History.IndexVersion() > 0) && rapid.Bool().Draw(t, "backwards") {
				slices.Reverse(at)
			}
			var tr *fri.Transition
			if partition {
				tr = scatter(t, m, at, rapid.IntRange(1, 5).Draw(t, "destinations"))
			} else {
				tr = m.Compact(t, at, rapid.SliceOfN(rapid.Uint64Range(0, 9), 0, 3).Draw(t, "sizes"), rapid.Bool().Draw(t, "descending"))
			}
			before, version := m.History.Encode(), m.History.IndexVersion()
			m.Commit(t, tr)
			require.True(t, bytes.HasPrefix(m.History.Encode(), before))
			require.Equal(t, max(version, map[bool]int32{true: 1}[partition]), m.History.IndexVersion())
		}
		stored, err := fri.Decode(m.History.Encode(), m.History.IndexVersion())
		require.NoError(t, err)
		require.NoError(t, stored.Validate())
		require.True(t, stored.Complete())
		stored = stored.WithPartitions(context.Background(), m.Open)
		for _, h := range []*fri.History{m.History, stored} {
			tr := h.Translator()
			for _, f := range m.All {
				step := 1 + f.Rows/2000
				for o := uint64(0); o < f.Rows+2; o += step {
					a := table.NewRowAddr(f.ID, uint32(o))
					got, err := tr.Translate(a)
					if want := m.Translate(a); got != want || err != nil {
						t.Fatalf("%v: got %v, want %v, error %v", a, got, want, err)
					}
				}
				// And as runs, which compose what the mappings did.
				next := uint64(0)
				for run, err := range tr.Runs(f.ID) {
					if err != nil || run.From != table.NewRowAddr(f.ID, uint32(next)) {
						t.Fatalf("fragment %d row %d: run %v, error %v", f.ID, next, run, err)
					}
					next += run.Len
					for _, k := range []uint64{0, run.Len / 2, run.Len - 1} {
						want := m.Translate(run.From + table.RowAddr(k))
						if run.Deleted != (want.State == fri.Deleted) || !run.Deleted && run.To+table.RowAddr(k) != want.Addr {
							t.Fatalf("run %v: row %d is %v", run, k, want)
						}
					}
				}
				if h.Touched(f.ID) {
					require.Equal(t, f.Rows, next)
				}
			}
		}
	})
}

// A lookup reads the one block of labels that it is about, and reads it once.
func TestOneAnswerReadsOneBlock(t *testing.T) {
	h, file := largePartition(t, 40*64)
	for _, o := range []uint32{5 * 64, 5*64 + 63, 7, 5 * 64} {
		require.Equal(t, fri.Moved, h.Translate(table.NewRowAddr(1, o)).State)
	}
	require.Equal(t, []int{5, 0}, file.reads)
	// Blocks make room for others, the oldest first.
	for i := range uint32(40) {
		h.Translate(table.NewRowAddr(1, i*64))
	}
	require.Len(t, file.reads, 40)
	h.Translate(table.NewRowAddr(1, 39*64))
	require.Len(t, file.reads, 40)
	h.Translate(table.NewRowAddr(1, 5*64))
	require.Len(t, file.reads, 41)
	require.Zero(t, testing.AllocsPerRun(100, func() { h.Translate(table.NewRowAddr(1, 5*64+1)) }))
}

// largePartition is a partition of one fragment, with labels in blocks of 64.
func largePartition(t testing.TB, rows uint64) (*fri.History, *labelFile) {
	b, err := fri.NewPartitionBuilder(3)
	require.NoError(t, err)
	fri.SmallBlocks(b)
	labels := make([]uint16, rows)
	for i := range labels {
		labels[i] = uint16(i % 3)
	}
	require.NoError(t, b.AddSource(fri.Digest{ID: 1, PhysicalRows: rows}, nil, labels))
	p := b.Build()
	tr, err := p.Transition([]table.FragmentID{4, 3, 2}, fri.PartitionRef{MapID: "00000000-0000-0000-0000-000000000001", Bytes: 1})
	require.NoError(t, err)
	h, err := (&fri.History{}).Append(1, tr)
	require.NoError(t, err)
	file := &labelFile{Partition: p}
	return h.WithPartitions(context.Background(), labelFiles{"00000000-0000-0000-0000-000000000001": file}.open), file
}

// A history answers several goroutines that read labels at once.
func TestLabelsConcurrently(t *testing.T) {
	h, _ := largePartition(t, 100*64)
	done := make(chan bool)
	for g := range uint32(4) {
		go func() {
			ok := true
			for i := range uint32(100 * 64) {
				o := (i*31 + g*997) % (100 * 64)
				want := fri.Translation{State: fri.Moved, Addr: table.NewRowAddr(table.FragmentID(4-o%3), o/3)}
				ok = ok && h.Translate(table.NewRowAddr(1, o)) == want
			}
			done <- ok
		}()
	}
	for range 4 {
		require.True(t, <-done)
	}
}
