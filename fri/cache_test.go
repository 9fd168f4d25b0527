package fri_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

func newCache(t testing.TB, maxBytes int64) *fri.Cache {
	s, err := fri.NewCache(fri.CacheOptions{MaxBytes: maxBytes})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// stack is a history of n rewrites of one fragment each, none of the other's.
// Fragments with the same seed have the same deletions.
func stack(t testing.TB, first table.FragmentID, seeds ...uint64) *fri.History {
	const rows = 70000
	h := &fri.History{}
	for i, seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 1))
		var offsets []uint32
		for o := range uint32(rows) {
			if rng.IntN(3) == 0 {
				offsets = append(offsets, o)
			}
		}
		var b fri.Builder
		id := first + 2*table.FragmentID(i)
		d := fri.Digest{ID: id, PhysicalRows: rows, DeletedRows: uint64(len(offsets))}
		require.NoError(t, b.AddSource(d, deletion.Of(offsets...)))
		tr, err := b.Build([]fri.Digest{{ID: id + 1, PhysicalRows: d.LiveRows()}})
		require.NoError(t, err)
		h, err = h.Append(uint64(i+1), tr)
		require.NoError(t, err)
	}
	return h
}

// The answers do not depend on what the cache does: one that takes everything in,
// one that evicts all the time, one that refuses everything, one that is emptied
// between questions, and one that is closed.
func TestCacheAgainstModel(t *testing.T) {
	sizes := []int64{1 << 20, 2000, 1}
	caches := map[int64]*fri.Cache{}
	for _, n := range sizes {
		caches[n] = newCache(t, n)
	}
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		s := caches[rapid.SampledFrom(sizes).Draw(t, "bytes")]
		h, err := s.Open(m.History.Encode(), 0)
		require.NoError(t, err)
		checkPrimitives(t, m, h)
		if rapid.Bool().Draw(t, "clear") {
			fri.ClearCache(s)
		}
		for i, a := range questions(m) {
			if got, want := h.Translate(a), m.Translate(a); i%7 == 0 && got != want {
				require.Fail(t, "wrong answer", "%v: got %v, want %v", a, got, want)
			}
		}
	})
	require.Zero(t, caches[1].Metrics().Bytes, "nothing fits")
	plain := stack(t, 0, 1)
	for _, s := range caches {
		h := s.Attach(plain)
		require.NoError(t, s.Close())
		require.NoError(t, s.Close(), "twice is once")
		for _, o := range []uint32{0, 1, 2, 3, 69999, 70000} {
			a := table.NewRowAddr(0, o)
			require.Equal(t, plain.Translate(a), h.Translate(a))
		}
	}
}

// Equal content is one entry, whatever the table, the version and the fragment ids.
func TestCacheSharesByContent(t *testing.T) {
	s := newCache(t, 1<<20)
	one := s.Attach(stack(t, 0, 1, 2, 3))
	other, err := s.Open(stack(t, 1000, 3, 9, 1).Encode(), 0) // of another table
	require.NoError(t, err)
	ask := func(h *fri.History, ids ...table.FragmentID) {
		tr := h.Translator()
		for _, id := range ids {
			_, err := tr.Translate(table.NewRowAddr(id, 7))
			require.NoError(t, err)
		}
		require.Equal(t, len(ids), fri.Held(tr))
		fri.WaitForCache(s)
	}
	ask(one, 0, 2, 4)
	m := s.Metrics()
	require.EqualValues(t, 3, m.Misses)
	require.EqualValues(t, 3, m.Decodes)
	require.Zero(t, m.Hits)
	require.Positive(t, m.DecodeTime)
	ask(other, 1000, 1002, 1004)
	m = s.Metrics()
	require.EqualValues(t, 4, m.Decodes, "two of the three are there")
	require.EqualValues(t, 2, m.Hits)
	held := int64(other.Segments(1)[0].Bytes) // of the one that is not shared
	for i := range one.Len() {
		held += int64(one.Segments(i)[0].Bytes)
	}
	require.GreaterOrEqual(t, m.Bytes, held)
	require.Less(t, m.Bytes, held+4*200, "with the cache's own bookkeeping")

	// A later version of the table: nothing of what it shares is decoded again.
	var b fri.Builder
	require.NoError(t, b.AddSource(fri.Digest{ID: 1, PhysicalRows: one.At(0).MovedRows()}, nil))
	tr, err := b.Build([]fri.Digest{{ID: 50, PhysicalRows: one.At(0).MovedRows()}})
	require.NoError(t, err)
	next, err := one.Append(9, tr)
	require.NoError(t, err)
	ask(next, 0, 2, 4)
	require.EqualValues(t, 4, s.Metrics().Decodes)
	require.Zero(t, s.Metrics().Drops)
	require.Zero(t, fri.DecodedParts(one), "the histories hold none by themselves")
	require.Zero(t, fri.DecodedParts(other))
}

// Whatever is asked, the cache stays within its bound, and says what it did not keep.
func TestCacheIsBounded(t *testing.T) {
	const maxBytes = 20000 // about four segments
	s := newCache(t, maxBytes)
	seeds := make([]uint64, 30)
	for i := range seeds {
		seeds[i] = uint64(i)
	}
	h, plain := s.Attach(stack(t, 0, seeds...)), stack(t, 0, seeds...)
	for range 3 {
		for i := range seeds {
			a := table.NewRowAddr(table.FragmentID(2*i), 123)
			require.Equal(t, plain.Translate(a), h.Translate(a))
			fri.WaitForCache(s)
			require.LessOrEqual(t, s.Metrics().Bytes, int64(maxBytes))
		}
	}
	m := s.Metrics()
	require.Positive(t, m.Drops+m.Evictions)
	require.EqualValues(t, 90, m.Hits+m.Misses)
	require.Equal(t, m.Misses, m.Decodes)

	// Asked again and again about one fragment, a history does not decode again
	// and again, even if the cache will not have it.
	tiny := newCache(t, 1)
	h = tiny.Attach(plain)
	for o := range uint32(1000) {
		h.Translate(table.NewRowAddr(4, o))
	}
	require.EqualValues(t, 1, tiny.Metrics().Decodes)
	// And a translator holds what it used.
	tr := h.Translator()
	for o := range uint32(1000) {
		_, err := tr.Translate(table.NewRowAddr(table.FragmentID(2*(o%30)), o))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, tiny.Metrics().Decodes, uint64(31))
}

// Goroutines that miss the same segment at once decode it once; and Close may come
// at any time.
func TestCacheSingleFlightAndClose(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	plain := stack(t, 0, 1, 2, 3, 4, 5)
	s, err := fri.NewCache(fri.CacheOptions{})
	require.NoError(t, err)
	h := s.Attach(plain)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			tr := h.Translator()
			for i := range 500 {
				if g == 0 && i == 400 {
					_ = s.Close()
				}
				a := table.NewRowAddr(table.FragmentID(2*(i%5)), uint32(i*g))
				want := plain.Translate(a)
				if got, err := tr.Translate(a); err != nil || got != want || h.Translate(a) != want {
					t.Errorf("%v: %v, %v, want %v", a, got, err, want)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, s.Close())
	require.Zero(t, s.Metrics().Bytes)
}

func TestCacheOptions(t *testing.T) {
	_, err := fri.NewCache(fri.CacheOptions{MaxBytes: -1})
	require.ErrorContains(t, err, "-1 bytes")
}

// damaged is a history of two rewrites of one fragment each, with a bit of the
// second bitmap's contents changed; opening does not see it.
func damaged(t testing.TB) []byte {
	h := stack(t, 10, 1, 2)
	content := h.Encode()
	content[len(content)/2+4000] ^= 1 // in the first container of the second bitmap
	return content
}

func checkDamage(t *testing.T, err error) {
	require.ErrorIs(t, err, table.ErrCorrupt)
	var te *fri.TransitionError
	require.True(t, errors.As(err, &te), "%v", err)
	require.Equal(t, 1, te.Index)
	require.EqualValues(t, 2, te.DatasetVersion)
	require.Equal(t, fri.RuleBitmap, te.Rule)
	require.ErrorContains(t, err, "fragment 12")
}

// Damage in a bitmap is found when the bitmap is used, and nothing is guessed.
func TestDamageIsFoundOnUse(t *testing.T) {
	s := newCache(t, 0)
	for name, open := range map[string]func([]byte, int32) (*fri.History, error){"alone": fri.Decode, "in a session": s.Open} {
		t.Run(name, func(t *testing.T) {
			h, err := open(damaged(t), 0)
			require.NoError(t, err)
			good, bad := table.NewRowAddr(10, 5), table.NewRowAddr(12, 5)
			for range 2 { // the second time from memory
				require.NotEqual(t, fri.Untranslatable, h.Translate(good).State)
				require.Equal(t, fri.Translation{State: fri.Untranslatable}, h.Translate(bad))
				require.Equal(t, fri.Translation{State: fri.Unaffected, Addr: table.NewRowAddr(12, 70000)}, h.Translate(table.NewRowAddr(12, 70000)))
				checkDamage(t, h.Validate())
				tr := h.Translator()
				_, err = tr.Translate(good)
				require.NoError(t, err)
				got, err := tr.Translate(bad)
				require.Equal(t, fri.Translation{State: fri.Untranslatable}, got)
				checkDamage(t, err)

				n := 0
				for run, err := range h.Runs(12) {
					require.Zero(t, run)
					checkDamage(t, err)
					n++
				}
				require.Equal(t, 1, n)
				for _, translate := range []func([]table.RowAddr, []fri.State) error{tr.TranslateBatch, tr.TranslateSorted} {
					addrs, states := []table.RowAddr{good, bad, bad + 1, 1 << 40}, make([]fri.State, 4)
					checkDamage(t, translate(addrs, states))
					require.Equal(t, h.Translate(good).State, states[0])
					require.Equal(t, []fri.State{fri.Untranslatable, fri.Untranslatable, fri.Unaffected}, states[1:])
					require.Equal(t, []table.RowAddr{bad, bad + 1, 1 << 40}, addrs[1:])
				}
			}
		})
	}
}

// One answer decodes the one source fragment that it is about, and opening none.
func TestSegmentsWithoutDecoding(t *testing.T) {
	h := stack(t, 0, 1, 2, 3)
	for i := range h.Len() {
		for _, info := range h.Segments(i) {
			require.False(t, info.Decoded)
			require.Equal(t, "mixed", info.Kind, "a block of bits and one of offsets")
			require.Greater(t, info.Bytes, 70000/32)
		}
	}
	require.Zero(t, fri.DecodedParts(h))
	h.Translate(table.NewRowAddr(2, 0))
	require.Equal(t, 1, fri.DecodedParts(h))
	require.True(t, h.Segments(1)[0].Decoded)
	predicted := 0
	for i := range h.Len() {
		for _, info := range h.Segments(i) {
			predicted += info.Bytes
		}
	}
	require.Equal(t, predicted, fri.SegmentBytes(h), "what was predicted is what is made")
}
