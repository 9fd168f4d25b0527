package fritest_test

import (
	"context"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/fri/fritest"
	"github.com/rehome-db/rehome/table"
)

// The worked example of the package, and a partition on top of it: what the model
// says is what was worked out by hand, and the history says the same.
func TestWorkedExample(t *testing.T) {
	m := fritest.New(0)
	m.History = m.History.WithPartitions(context.Background(), m.Open)
	m.Add(10)
	m.Add(10)
	m.Live[0].Dead = deletion.Of(4)
	tr := m.Compact(t, []int{0, 1}, []uint64{5}, false)
	require.Zero(t, m.History.Len(), "not committed")
	m.Commit(t, tr)
	require.EqualValues(t, 2, m.Version)
	require.Equal(t, []fritest.Fragment{{ID: 2, Rows: 5}, {ID: 3, Rows: 14}}, m.Live)
	require.Len(t, m.All, 4)

	says := func(fragment table.FragmentID, row uint32, want fri.Translation) {
		t.Helper()
		a := table.NewRowAddr(fragment, row)
		require.Equal(t, want, m.Translate(a))
		require.Equal(t, want, m.History.Translate(a))
	}
	moved := func(fragment table.FragmentID, row uint32) fri.Translation {
		return fri.Translation{State: fri.Moved, Addr: table.NewRowAddr(fragment, row)}
	}
	says(0, 4, fri.Translation{State: fri.Deleted})
	says(0, 6, moved(3, 0))
	says(1, 9, moved(3, 13))
	says(2, 1, fri.Translation{State: fri.Unaffected, Addr: table.NewRowAddr(2, 1)})

	// Even rows of fragment 3, which is read first, into 5 and the others into 4.
	m.Commit(t, m.Partition(t, []int{1, 0}, fritest.Partitioning{
		Destinations: 2, Descending: true,
		Label: func(a table.RowAddr) uint16 {
			if a.Fragment() == 3 && a.Offset()%2 == 0 {
				return 0
			}
			return 1
		},
	}))
	require.Equal(t, []fritest.Fragment{{ID: 4, Rows: 12}, {ID: 5, Rows: 7}}, m.Live)
	says(3, 2, moved(5, 1))
	says(2, 0, moved(4, 7))
	says(0, 6, moved(5, 0))
	_, err := m.Open(context.Background(), fri.PartitionRef{MapID: "none"})
	require.ErrorIs(t, err, fs.ErrNotExist)
}
