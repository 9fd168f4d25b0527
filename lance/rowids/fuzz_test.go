package rowids

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/table"
)

// Whatever is decoded can be used, and survives encoding.
func FuzzSequence(f *testing.F) {
	f.Add(Range(1000, 2000).Encode())
	f.Add(Of(1, 2, 4, 5, 7, 8, 10, 11, 13).Encode())
	f.Add(Of(0, 1, 2, 900_000, 7_000_000).Encode())
	f.Add(Concat(Of(9, 8, 7), Range(3, 5), Of(idsOf(10, 99)...).Select(func(yield func(uint64, uint64) bool) {
		_ = yield(0, 40) && yield(41, 88)
	})).Encode())
	f.Add([]byte{0x0a, 0x04, 0x0a, 0x02, 0x08, 0x05})
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decode(data)
		if err != nil {
			require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
			return
		}
		again, err := decode(s.Encode())
		require.NoError(t, err)
		n := s.Len()
		require.Equal(t, n, again.Len())
		_, ok := s.At(n)
		require.False(t, ok)
		if n > 1<<14 {
			return
		}
		ids := all(s)
		require.Len(t, ids, int(n))
		require.Equal(t, ids, all(again))
		for i, id := range ids {
			got, ok := s.At(uint64(i))
			require.True(t, ok)
			require.Equal(t, id, got)
		}
		require.Equal(t, ids[n/2:], all(s.Slice(n/2, n)))
		require.Equal(t, ids, all(Of(ids...)))
	})
}

func FuzzVersions(f *testing.F) {
	f.Add(Uniform(1000, 3).Encode())
	f.Add(VersionsOf(1, 1, 2, 5, 5, 1).Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := decodeVersions(data)
		if err != nil {
			require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
			return
		}
		again, err := DecodeVersions(v.Encode(), v.Len())
		require.NoError(t, err)
		require.Equal(t, v, again)
	})
}
