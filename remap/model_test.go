package remap_test

import (
	"context"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/fri/fritest"
	"github.com/rehome-db/rehome/table"
)

// newModel is a table whose history finds its label files.
func newModel(first table.FragmentID) *fritest.Model {
	m := fritest.New(first)
	m.History = m.History.WithPartitions(context.Background(), m.Open)
	return m
}

// tag makes the history one of index version 1, in which sources may come in any
// order.
func tag(t require.TestingT, m *fritest.Model) {
	h, err := m.History.Upgrade(1)
	require.NoError(t, err)
	m.History = h
}

// partition rewrites fragments into n destinations by the labels of the surviving
// rows, which are counted from 0.
func partition(t require.TestingT, m *fritest.Model, at []int, n int, label func(i int) uint16) *fri.Transition {
	i := -1
	return m.Partition(t, at, fritest.Partitioning{Destinations: n, Label: func(table.RowAddr) uint16 {
		i++
		return label(i)
	}})
}

// drawModel is a table after some inserts, deletes and compactions.
func drawModel(t *rapid.T) *fritest.Model {
	m := newModel(table.FragmentID(rapid.SampledFrom([]uint32{0, 0, 1, 5000, 1<<32 - 100}).Draw(t, "first id")))
	tagged := rapid.Bool().Draw(t, "tagged")
	if tagged {
		tag(t, m)
	}
	for range rapid.IntRange(1, 5).Draw(t, "fragments") {
		m.Add(drawRows(t))
	}
	for range rapid.IntRange(0, 5).Draw(t, "commits") {
		if rapid.Bool().Draw(t, "insert") {
			m.Add(drawRows(t))
		}
		var at []int
		for i := range m.Live {
			m.Live[i].DrawDeletions(t)
			if rapid.IntRange(0, 2).Draw(t, "take") > 0 {
				at = append(at, i)
			}
		}
		switch {
		case len(at) == 0:
		case tagged && rapid.IntRange(0, 2).Draw(t, "partition") == 0:
			n := rapid.IntRange(1, 4).Draw(t, "destinations")
			step := rapid.IntRange(1, 5).Draw(t, "label step")
			m.Commit(t, partition(t, m, at, n, func(i int) uint16 { return uint16(i / step * 7 % n) }))
		default:
			if tagged {
				at = rapid.Permutation(at).Draw(t, "source order")
			}
			sizes := rapid.SliceOfN(rapid.Uint64Range(0, 30), 0, 3).Draw(t, "sizes")
			m.Commit(t, m.Compact(t, at, sizes, rapid.Bool().Draw(t, "descending")))
		}
	}
	return m
}

func drawRows(t *rapid.T) uint64 {
	if rapid.IntRange(0, 30).Draw(t, "large") == 0 {
		return rapid.SampledFrom([]uint64{65535, 65536, 65537}).Draw(t, "rows")
	}
	return rapid.Uint64Range(1, 80).Draw(t, "rows")
}

// drawAddrs is a batch of addresses, new and old, of fragments that were rewritten
// or not, and some that never were: stretches of neighbours, strides, and single
// ones, in order or not.
func drawAddrs(t *rapid.T, m *fritest.Model) []table.RowAddr {
	var out []table.RowAddr
	for range rapid.IntRange(0, 8).Draw(t, "pieces") {
		f := rapid.SampledFrom(m.All).Draw(t, "fragment")
		from := rapid.SampledFrom([]uint64{0, 0, 1, f.Rows / 2, max(f.Rows, 1) - 1, 65535, 65536, 1<<32 - 1}).Draw(t, "at")
		step := rapid.Uint64Range(0, 3).Draw(t, "step") // 0 repeats the address
		for i := range rapid.SampledFrom([]uint64{1, 2, 15, 16, 17, 100, 300}).Draw(t, "length") {
			if o := from + i*step; o < 1<<32 {
				out = append(out, table.NewRowAddr(f.ID, uint32(o)))
			}
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "strangers") {
		out = append(out, table.NewRowAddr(m.Next+table.FragmentID(rapid.IntRange(0, 3).Draw(t, "id")), 0))
	}
	switch rapid.IntRange(0, 2).Draw(t, "order") {
	case 0:
		slices.Sort(out)
	case 1:
		out = rapid.Permutation(out).Draw(t, "shuffled")
	}
	return out
}

// stacked is a table after many compactions, each of which drops a row or two and
// takes a new fragment in.
func stacked(t require.TestingT, transitions int) *fritest.Model {
	m := newModel(0)
	m.Add(400)
	for i := range transitions {
		if i%3 == 0 {
			m.Add(7)
		}
		at := make([]int, len(m.Live))
		for j := range m.Live {
			at[j] = j
			m.Live[j].Dead = deletion.Of(uint32(i % int(m.Live[j].Rows)))
		}
		m.Commit(t, m.Compact(t, at, []uint64{uint64(i % 50)}, i%2 == 1))
	}
	return m
}

// everyAddr is every address that ever was, ascending; of large fragments, those
// around the ends and the edges of containers.
func everyAddr(m *fritest.Model) []table.RowAddr {
	var out []table.RowAddr
	for _, f := range m.All {
		for o := uint64(0); o < f.Rows; o++ {
			if o == 2000 && f.Rows > 60000 {
				o = 64000
			}
			out = append(out, table.NewRowAddr(f.ID, uint32(o)))
		}
	}
	slices.Sort(out)
	return out
}
