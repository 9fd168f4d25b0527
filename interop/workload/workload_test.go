package workload

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
)

func TestSameSeedGivesSameRows(t *testing.T) {
	for _, table := range append(Typed(1000, 4), Vectors(1000, 4)) {
		a, b := table.record(500, 250), table.record(500, 250)
		require.True(t, array.RecordEqual(a, b), table.Name)
		// Another fragment, and another seed, give others.
		require.False(t, array.RecordEqual(a, table.record(250, 250)), table.Name)
		table.Seed++
		require.False(t, array.RecordEqual(a, table.record(500, 250)), table.Name)
		require.EqualValues(t, 250, a.NumRows())
		require.EqualValues(t, len(table.Columns)+1, a.NumCols())
	}
}
