package datafile

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// drawRanges draws ranges of some of rows rows: single ones and stretches, near and
// far, the first and the last among them.
func drawRanges(rng *rand.Rand, rows uint64) []Range {
	var out []Range
	most := 1 + rng.Uint64N(1+rows/uint64(1+rng.IntN(20)))
	for at := rng.Uint64N(most); at < rows; {
		n := uint64(1)
		if rng.IntN(3) == 0 {
			n += rng.Uint64N(most)
		}
		to := min(at+n, rows)
		out = append(out, Range{From: at, To: to})
		at = to + rng.Uint64N(most)
		if len(out) == 300 {
			break
		}
	}
	if len(out) == 0 && rows > 0 {
		out = append(out, Range{From: rows - 1, To: rows})
	}
	return out
}

// Taking gives the rows that the whole column has there, whatever the engine that
// wrote it chose to store it as.
func TestTake(t *testing.T) {
	files := golden(t, "*")
	more, err := filepath.Glob("testdata/*.lance")
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(5, 6))
	layouts := map[string]bool{}
	for _, path := range append(files, more...) {
		f, err := open(t, path)
		if errors.Is(err, table.ErrUnsupported) {
			continue
		}
		require.NoError(t, err)
		limits := []encoding.Limits{{}, {BlockBytes: 1 << 12}}
		for i, leaf := range f.Schema().Leaves() {
			c, err := f.OwnLeaf(i)
			require.NoError(t, err)
			if errors.Is(c.Check(leaf), table.ErrUnsupported) {
				for _, err := range c.Take(context.Background(), leaf, []Range{{From: 0, To: 1}}) {
					require.ErrorIs(t, err, table.ErrUnsupported)
				}
				continue
			}
			for _, p := range c.Pages() {
				layouts[p.Encoding()] = true
			}
			for n := range 4 {
				f.limits = limits[n%2]
				requireTaken(t, c, i, drawRanges(rng, f.Rows()), path)
			}
		}
	}
	require.Greater(t, len(layouts), 10)
}

func requireTaken(t *testing.T, c *Column, leafIndex int, ranges []Range, path string) {
	leaf := c.file.Schema().Leaves()[leafIndex]
	want, err := level.NewBuilder(leaf.Type, leaf.Layers)
	require.NoError(t, err)
	row, left := uint64(0), ranges
	for b, err := range c.Blocks(context.Background(), leaf) {
		require.NoError(t, err)
		cursor, err := level.NewCursor(b)
		require.NoError(t, err)
		at, end := row, row+uint64(b.Rows)
		for len(left) > 0 && left[0].From < end {
			from, to := max(left[0].From, at), min(left[0].To, end)
			require.NoError(t, cursor.Skip(int(from-at)))
			require.NoError(t, want.Take(cursor, int(to-from)))
			at = to
			if to < left[0].To {
				break
			}
			left = left[1:]
		}
		row = end
	}
	got, err := level.NewBuilder(leaf.Type, leaf.Layers)
	require.NoError(t, err)
	given := append([]Range(nil), ranges...)
	gather(t, got, c.Take(context.Background(), leaf, ranges))
	require.Equal(t, want.Block(), got.Block(), "%s, %s, rows %v", path, leaf.Path, ranges)
	require.Equal(t, given, ranges, "the caller's ranges are its own")
}

func TestTakeRefusesRangesThatAreNone(t *testing.T) {
	f, err := open(t, "testdata/flat_10.2.2.lance")
	require.NoError(t, err)
	leaf := f.Schema().Leaves()[0]
	c, err := f.Column(0)
	require.NoError(t, err)
	for _, ranges := range [][]Range{
		{{From: 9, To: 11}}, {{From: 3, To: 3}}, {{From: 4, To: 2}},
		{{From: 3, To: 5}, {From: 4, To: 6}}, {{From: 5, To: 6}, {From: 1, To: 2}},
	} {
		for b, err := range c.Take(context.Background(), leaf, ranges) {
			require.Nil(t, b)
			require.ErrorContains(t, err, "of 10")
		}
	}
	for range c.Take(context.Background(), leaf, nil) {
		t.Fatal("no rows were asked for")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range c.Take(ctx, leaf, []Range{{From: 1, To: 2}}) {
		require.ErrorIs(t, err, context.Canceled)
	}
	f.limits = encoding.Limits{BlockBytes: 1}
	for range c.Take(context.Background(), leaf, []Range{{From: 1, To: 2}, {From: 3, To: 4}}) {
		break
	}
}

// counting counts the bytes that are read.
type counting struct {
	readat.ReaderAt
	n atomic.Int64
}

func (c *counting) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	c.n.Add(int64(len(b)))
	return c.ReaderAt.ReadAt(ctx, b, off)
}

// One row costs a few chunks, not the page.
func TestTakeReadsLittle(t *testing.T) {
	for name, most := range map[string]int64{
		"testdata/list_empty_50000.2.2.lance": 64 << 10,
		"testdata/long_30000.2.1.lance":       64 << 10,
	} {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		r := &counting{ReaderAt: readat.Bytes(raw)}
		f, err := Open(context.Background(), r, int64(len(raw)), name)
		require.NoError(t, err)
		for i, leaf := range f.Schema().Leaves() {
			c, err := f.Column(i)
			require.NoError(t, err)
			before := r.n.Load()
			for _, err := range c.Take(context.Background(), leaf, []Range{{From: f.Rows() / 2, To: f.Rows()/2 + 1}}) {
				require.NoError(t, err)
			}
			t.Logf("%s %s: %d of %d bytes (%s)", name, leaf.Path, r.n.Load()-before, c.Bytes(), c.Pages()[0].Encoding())
			require.Less(t, r.n.Load()-before, most, "%s of %s, of %d bytes", leaf.Path, name, c.Bytes())
		}
	}
}
