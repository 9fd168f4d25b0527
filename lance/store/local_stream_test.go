package store

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whichever way bytes take to a file, they arrive, on file systems that know the way
// past the page cache and on those that do not.
func TestStreamsWriteWhatTheyAreGiven(t *testing.T) {
	dirs := map[string]string{"disk": t.TempDir()}
	if memory, err := os.MkdirTemp("/dev/shm", "rehome"); err == nil {
		t.Cleanup(func() { os.RemoveAll(memory) })
		dirs["memory"] = memory
	}
	const piece = uncachedPiece
	for name, dir := range dirs {
		for _, opts := range []WriteOptions{{}, {NoSync: true}, {Uncached: true}, {Uncached: true, NoSync: true}} {
			for _, sizes := range [][]int{
				{}, {0}, {1}, {piece}, {piece, 1}, {1, piece}, {piece - 1, 1, 1}, {4095, 3*piece + 5, 0, 7},
				{100_000, 5 * piece, piece - 1, 2, 100_000}, {writebackStep + 1, writebackStep},
			} {
				f, err := os.Create(filepath.Join(dir, "f"))
				require.NoError(t, err)
				s := newLocalStream(f, opts)
				rng := rand.NewChaCha8([32]byte{1})
				var want bytes.Buffer
				for _, n := range sizes {
					p := make([]byte, n)
					_, _ = rng.Read(p)
					want.Write(p)
					got, err := s.Write(p)
					require.NoError(t, err)
					require.Equal(t, n, got)
					clear(p) // a stream keeps nothing that it was given
				}
				require.NoError(t, s.finish())
				require.NoError(t, f.Close())
				got, err := os.ReadFile(f.Name())
				require.NoError(t, err)
				require.True(t, bytes.Equal(want.Bytes(), got), "%s %+v %v", name, opts, sizes)
			}
		}
	}
}

func TestAStreamSaysWhyItCannotWrite(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	require.NoError(t, err)
	require.NoError(t, f.Close())
	f, err = os.Open(f.Name()) // not for writing
	require.NoError(t, err)
	defer f.Close()
	for _, opts := range []WriteOptions{{}, {Uncached: true}} {
		for _, n := range []int{1, 3 * uncachedPiece} {
			s := newLocalStream(f, opts)
			_, err := s.Write(make([]byte, n))
			if err == nil {
				err = s.finish()
			}
			require.Error(t, err)
		}
	}
}
