package rowids

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// all lists the ids of a sequence, by its runs.
func all(s *Sequence) []table.RowID {
	out := []table.RowID{}
	for first, last := range s.Runs() {
		for id := first; ; id++ {
			out = append(out, id)
			if id == last {
				break
			}
		}
	}
	return out
}

// someIDs draws ids of every kind that makes for another form.
func someIDs(t *rapid.T) []table.RowID {
	n := rapid.IntRange(0, 300).Draw(t, "ids")
	start := rapid.SampledFrom([]uint64{0, 1, 1000, 1 << 40, math.MaxUint64 - 1<<20}).Draw(t, "start")
	step := rapid.SampledFrom([]uint64{1, 2, 7, 300, 3000}).Draw(t, "step")
	ids := make([]table.RowID, 0, n)
	at := start
	for range n {
		ids = append(ids, table.RowID(at))
		at++
		if rapid.IntRange(0, 9).Draw(t, "jump") == 0 {
			at += rapid.Uint64Range(0, step-1).Draw(t, "by")
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "order") == 0 {
		ids = rapid.Permutation(ids).Draw(t, "shuffled")
	}
	return ids
}

// someSequence draws a sequence of several segments and what is in it.
func someSequence(t *rapid.T) (*Sequence, []table.RowID) {
	var parts []*Sequence
	want := []table.RowID{}
	for range rapid.IntRange(0, 3).Draw(t, "parts") {
		ids := someIDs(t)
		parts = append(parts, Of(ids...))
		want = append(want, ids...)
	}
	return Concat(parts...), want
}

func TestSequenceIsAListOfIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, want := someSequence(t)
		n := uint64(len(want))
		require.Equal(t, n, s.Len())
		require.Equal(t, want, all(s))

		data := s.Encode()
		again, err := Decode(data, n)
		require.NoError(t, err)
		require.Equal(t, want, all(again))
		require.Equal(t, data, again.Encode())
		_, err = Decode(data, n+1)
		require.ErrorIs(t, err, table.ErrCorrupt)

		for i, id := range want {
			got, ok := again.At(uint64(i))
			require.True(t, ok)
			require.Equal(t, id, got, "position %d", i)
		}
		_, ok := s.At(n)
		require.False(t, ok)
		low, high, ok := s.Bounds()
		require.Equal(t, n > 0, ok)
		for _, id := range want {
			require.True(t, low <= id && id <= high)
		}
	})
}

func TestSelectDropsPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, ids := someSequence(t)
		var dead []uint32
		want := []table.RowID{}
		for i, id := range ids {
			if rapid.IntRange(0, 2).Draw(t, "dead") == 0 {
				dead = append(dead, uint32(i))
			} else {
				want = append(want, id)
			}
		}
		live := s.Select(deletion.Of(dead...).Live(s.Len()))
		require.Equal(t, want, all(live))
		for i, id := range want {
			got, _ := live.At(uint64(i))
			require.Equal(t, id, got)
		}

		// And in pieces of any size.
		var lengths []uint64
		for left := live.Len(); left > 0; {
			n := rapid.Uint64Range(1, left).Draw(t, "length")
			lengths, left = append(lengths, n), left-n
		}
		pieces, ok := Rechunk([]*Sequence{live}, lengths...)
		require.True(t, ok)
		for i, p := range pieces {
			require.Equal(t, lengths[i], p.Len())
		}
		require.Equal(t, want, all(Concat(pieces...)))
		_, ok = Rechunk([]*Sequence{live}, append(lengths, 1)...)
		require.False(t, ok)
	})
}

func TestFindIsTheInverseOfAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, ids := someSequence(t)
		var asked []table.RowID
		for _, id := range ids {
			if rapid.Bool().Draw(t, "asked") {
				asked = append(asked, id)
			}
			if rapid.IntRange(0, 4).Draw(t, "other") == 0 {
				asked = append(asked, id+3)
			}
		}
		slices.Sort(asked)
		asked = slices.Compact(asked)
		type place struct {
			id table.RowID
			at uint64
		}
		want, got := map[place]bool{}, map[place]bool{}
		for at, id := range ids {
			if _, ok := slices.BinarySearch(asked, id); ok {
				want[place{id, uint64(at)}] = true
			}
		}
		for i, at := range s.Find(asked) {
			got[place{asked[i], at}] = true
		}
		require.Equal(t, want, got)
	})
}

func TestVersionsAreAListOfVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Uint64Range(1, 3), 0, 60).Draw(t, "versions")
		v := VersionsOf(list...)
		n := uint64(len(list))
		again, err := DecodeVersions(v.Encode(), n)
		require.NoError(t, err)
		require.Equal(t, v, again)
		_, err = DecodeVersions(v.Encode(), n+1)
		require.ErrorIs(t, err, table.ErrCorrupt)
		for i, version := range list {
			got, ok := again.At(uint64(i))
			require.True(t, ok)
			require.Equal(t, version, got)
		}
		_, ok := v.At(n)
		require.False(t, ok)

		var dead []uint32
		var want []uint64
		for i := range list {
			if rapid.Bool().Draw(t, "dead") {
				dead = append(dead, uint32(i))
			} else {
				want = append(want, list[i])
			}
		}
		live := v.Select(deletion.Of(dead...).Live(n))
		require.Equal(t, VersionsOf(want...), live)
		cut := rapid.IntRange(0, len(want)).Draw(t, "cut")
		pieces, ok := RechunkVersions([]*Versions{live}, uint64(cut), uint64(len(want)-cut))
		require.True(t, ok)
		require.Equal(t, VersionsOf(want[:cut]...), pieces[0])
		require.Equal(t, VersionsOf(want[cut:]...), pieces[1])
	})
}
