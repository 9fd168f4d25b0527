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
	for name, dir := range dirs {
		for _, opts := range []WriteOptions{{}, {NoSync: true}, {Uncached: true}, {Uncached: true, NoSync: true}} {
			f, err := os.Create(filepath.Join(dir, "f"))
			require.NoError(t, err)
			s := &localStream{f: f, opts: opts}
			rng := rand.New(rand.NewPCG(1, 2))
			var want bytes.Buffer
			for _, n := range []int{0, 1, 4095, 100_000, uncachedPiece - 1, uncachedPiece, 3*uncachedPiece + 5, writebackStep + 1, 7} {
				p := make([]byte, n)
				for i := range p {
					p[i] = byte(rng.Uint32())
				}
				want.Write(p)
				got, err := s.Write(p)
				require.NoError(t, err)
				require.Equal(t, n, got)
			}
			require.NoError(t, f.Close())
			got, err := os.ReadFile(f.Name())
			require.NoError(t, err)
			require.True(t, bytes.Equal(want.Bytes(), got), "%s %+v", name, opts)
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
		n, err := (&localStream{f: f, opts: opts}).Write([]byte("x"))
		require.Error(t, err)
		require.Zero(t, n)
	}
}
