package datafile

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

func open(t testing.TB, path string) (*File, error) {
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return Open(t.Context(), readat.Bytes(raw), int64(len(raw)), filepath.Base(path))
}

func golden(t testing.TB, name string) []string {
	files, err := filepath.Glob(filepath.Join("../../testdata/golden", name, "t.lance/data/*.lance"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// readAll decodes every column that the schema says can be, checking that blocks
// are sound, and returns the first error.
func readAll(f *File) error {
	for i, leaf := range f.Schema().Leaves() {
		c, err := f.OwnLeaf(i)
		if err != nil {
			return err
		}
		if err := c.Check(leaf); err != nil {
			return err
		}
		rows := uint64(0)
		for b, err := range c.Blocks(context.Background(), leaf) {
			if err != nil {
				return err
			}
			cursor, err := level.NewCursor(b)
			if err != nil {
				return errors.Join(errUnsound, err)
			}
			// To the end, so that the streams are known to agree.
			if err := cursor.Skip(b.Rows); err != nil {
				return errors.Join(errUnsound, err)
			}
			rows += uint64(b.Rows)
		}
		if rows != f.Rows() {
			return errors.Join(errUnsound, table.Corruptf("%d rows of %d", rows, f.Rows()))
		}
	}
	return nil
}

var errUnsound = errors.New("a reader's block is not sound")

func TestGoldenFiles(t *testing.T) {
	files, layouts := 0, map[string]bool{}
	for _, path := range golden(t, "*") {
		f, err := open(t, path)
		if errors.Is(err, table.ErrUnsupported) {
			require.Regexp(t, `file format 0\.1`, err.Error())
			continue
		}
		require.NoError(t, err)
		files++
		err = readAll(f)
		if errors.Is(err, table.ErrUnsupported) {
			require.Contains(t, err.Error(), `column "d": type dictionary<`)
			continue
		}
		require.NoError(t, err, path)
		for _, c := range f.columns {
			for _, p := range c.Pages() {
				layouts[p.Encoding()] = true
			}
		}
	}
	require.Greater(t, files, 100)
	require.Greater(t, len(layouts), 10)
}

func TestOpenNamesOtherFormats(t *testing.T) {
	for name, want := range map[string]string{
		"storage_legacy": `file format 0.1 ("legacy") is not supported`,
	} {
		_, err := open(t, golden(t, name)[0])
		require.ErrorIs(t, err, table.ErrUnsupported)
		require.ErrorContains(t, err, want)
	}
}

func TestCheckNamesColumnAndType(t *testing.T) {
	odd, err := filepath.Glob("../../testdata/unreadable/fixed_lists_of_structs.lance/data/*.lance")
	require.NoError(t, err)
	f, err := open(t, odd[0])
	require.NoError(t, err)
	for i, leaf := range f.Schema().Leaves() {
		c, err := f.Column(i)
		require.NoError(t, err)
		if leaf.Path == "id" {
			require.NoError(t, c.Check(leaf))
			continue
		}
		require.ErrorIs(t, c.Check(leaf), table.ErrUnsupported)
		require.ErrorContains(t, c.Check(leaf), `column "a": type fixed-size list of structs`)
	}
	// A leaf that is not the column's own is found out without reading.
	leaves := f.Schema().Leaves()
	other := leaves[0]
	other.Type = level.Type{Kind: level.Variable, Bits: 32}
	c, err := f.Column(0)
	require.NoError(t, err)
	require.ErrorContains(t, c.Check(other), `column "`+other.Path+`"`)
}

func TestBlocksAreBounded(t *testing.T) {
	f, err := open(t, golden(t, "big_pages")[0])
	require.NoError(t, err)
	f.limits = encoding.Limits{BlockBytes: 1 << 12}
	for i, leaf := range f.Schema().Leaves() {
		c, err := f.Column(i)
		require.NoError(t, err)
		blocks := 0
		for b, err := range c.Blocks(context.Background(), leaf) {
			require.NoError(t, err)
			blocks++
			// A chunk of at most 4096 values closes a block.
			require.LessOrEqual(t, len(b.Values.Data), 1<<12+1<<16)
		}
		require.Greater(t, blocks, len(c.Pages()))
	}
}

// faulty fails reads that touch the bytes from on.
type faulty struct {
	readat.ReaderAt
	from, to int64
}

var errDisk = errors.New("disk on fire")

func (f faulty) ReadAt(ctx context.Context, b []byte, off int64) (int, error) {
	if off < f.to && off+int64(len(b)) > f.from {
		return 0, errDisk
	}
	return f.ReaderAt.ReadAt(ctx, b, off)
}

func TestReadErrorsPassThrough(t *testing.T) {
	raw, err := os.ReadFile("testdata/flat_10.2.1.lance")
	require.NoError(t, err)
	size := int64(len(raw))
	_, err = Open(context.Background(), faulty{readat.Bytes(raw), size - 1, size}, size, "x")
	require.ErrorIs(t, err, errDisk)
	require.NotErrorIs(t, err, table.ErrCorrupt)

	f, err := Open(context.Background(), faulty{readat.Bytes(raw), 0, 1}, size, "x")
	if err == nil { // the metadata does not lie in the first byte
		err = readAll(f)
	}
	require.ErrorIs(t, err, errDisk)
	require.NotErrorIs(t, err, table.ErrCorrupt)
}

func TestBlocksStop(t *testing.T) {
	f, err := open(t, "testdata/flat_10.2.2.lance")
	require.NoError(t, err)
	leaf := f.Schema().Leaves()[0]
	c, err := f.Column(0)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, err := range c.Blocks(ctx, leaf) {
		require.ErrorIs(t, err, context.Canceled)
	}
	for range c.Blocks(context.Background(), leaf) {
		break
	}
	for _, err := range c.BlocksRange(context.Background(), leaf, 3, 11) {
		require.ErrorContains(t, err, "rows 3 to 11 of 10")
	}
	_, err = f.Column(f.NumColumns())
	require.ErrorIs(t, err, table.ErrCorrupt)
	_, err = f.Column(-1)
	require.ErrorIs(t, err, table.ErrCorrupt)
}

func TestTruncatedFiles(t *testing.T) {
	raw, err := os.ReadFile("testdata/nested_10.2.1.lance")
	require.NoError(t, err)
	for n := 0; n < len(raw); n += 1 + n/37 {
		_, err := Open(t.Context(), readat.Bytes(raw[:n]), int64(n), "cut")
		require.ErrorIs(t, err, table.ErrCorrupt, "%d bytes", n)
		// The size that a manifest recorded, and less behind it.
		_, err = Open(t.Context(), readat.Bytes(raw[:n]), int64(len(raw)), "cut")
		require.ErrorIs(t, err, table.ErrCorrupt, "%d bytes", n)
	}
	for cut := 1; cut < footerSize+1; cut++ {
		_, err := Open(t.Context(), readat.Bytes(raw[:len(raw)-cut]), int64(len(raw)-cut), "cut")
		require.ErrorIs(t, err, table.ErrCorrupt)
	}
}

// TestFlippedBits damages real files: whatever comes of it is data or a typed
// error, never a panic, an endless loop or an unsound block.
func TestFlippedBits(t *testing.T) {
	for _, path := range []string{
		"testdata/flat_10.2.1.lance", "testdata/nested_10.2.2.lance", "testdata/wide_10.2.2.lance", "testdata/constant_10.2.2.lance",
	} {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		clean, err := Open(t.Context(), readat.Bytes(raw), int64(len(raw)), "clean")
		require.NoError(t, err)
		meta := 0
		for _, c := range clean.columns {
			for _, p := range c.pages {
				for _, b := range p.Buffers {
					meta = max(meta, int(b.Offset+b.Size))
				}
			}
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range 400 {
			at := rng.IntN(len(raw))
			if i%2 == 0 { // metadata is where damage has most ways to hurt
				at = meta + rng.IntN(len(raw)-meta)
			}
			flip := byte(1) << rng.IntN(8)
			raw[at] ^= flip
			requireSoundOrTyped(t, raw)
			raw[at] ^= flip
		}
	}
}

func requireSoundOrTyped(t testing.TB, raw []byte) {
	f, err := Open(t.Context(), readat.Bytes(raw), int64(len(raw)), "damaged")
	if err == nil {
		if f.Rows() > 1<<16 {
			return // a page of one constant may well have so many
		}
		f.limits = encoding.Limits{BlockBytes: 1 << 16, BlockEntries: 1 << 12, Expanded: 1 << 20}
		err = readAll(f)
	}
	if err != nil {
		require.NotErrorIs(t, err, errUnsound)
		require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
	}
}

// FuzzFile opens arbitrary bytes and decodes every column. Its seeds in testdata/fuzz
// are files of one column that the stock engine wrote.
func FuzzFile(f *testing.F) {
	f.Fuzz(func(t *testing.T, raw []byte) { requireSoundOrTyped(t, raw) })
}

// A leaf of another schema than the file's is what a damaged manifest gives.
func TestWrongLeaf(t *testing.T) {
	f, err := open(t, "testdata/nested_10.2.1.lance")
	require.NoError(t, err)
	leaves := f.Schema().Leaves()
	ctx := context.Background()
	for i := range leaves {
		for k := range leaves {
			c, err := f.Column(i)
			require.NoError(t, err)
			if err := c.Check(leaves[k]); err != nil {
				require.Equal(t, table.OutcomeDamaged, table.Classify(err))
				for b, err := range c.Blocks(ctx, leaves[k]) {
					require.Nil(t, b)
					require.Error(t, err)
				}
				continue
			}
			for _, err := range c.Blocks(ctx, leaves[k]) {
				if err != nil {
					require.Equal(t, table.OutcomeDamaged, table.Classify(err))
				}
			}
		}
	}
}

// Ranges give the rows that the whole column has there.
func TestBlocksRange(t *testing.T) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(3, 4))
	for _, path := range append(golden(t, "big_pages"), "testdata/long_30000.2.1.lance", "testdata/nested_700.2.2.lance", "testdata/wide_40.2.1.lance") {
		f, err := open(t, path)
		require.NoError(t, err)
		f.limits = encoding.Limits{BlockBytes: 1 << 12} // many blocks, to be cut anywhere
		for i, leaf := range f.Schema().Leaves() {
			c, err := f.Column(i)
			require.NoError(t, err)
			all, err := level.NewBuilder(leaf.Type, leaf.Layers)
			require.NoError(t, err)
			gather(t, all, c.Blocks(ctx, leaf))
			want, err := level.NewBuilder(leaf.Type, leaf.Layers)
			require.NoError(t, err)
			got, err := level.NewBuilder(leaf.Type, leaf.Layers)
			require.NoError(t, err)
			whole := all.Block()
			for range 6 {
				from := rng.Uint64N(f.Rows() + 1)
				to := from + rng.Uint64N(f.Rows()-from+1)
				cursor, err := level.NewCursor(whole)
				require.NoError(t, err)
				want.Reset()
				require.NoError(t, cursor.Skip(int(from)))
				require.NoError(t, want.Take(cursor, int(to-from)))
				got.Reset()
				gather(t, got, c.BlocksRange(ctx, leaf, from, to))
				require.Equal(t, want.Block(), got.Block(), "%s, %s, rows %d to %d", path, leaf.Path, from, to)
			}
		}
	}
}

func gather(t *testing.T, into *level.Builder, blocks iter.Seq2[*level.Block, error]) {
	for b, err := range blocks {
		require.NoError(t, err)
		c, err := level.NewCursor(b)
		require.NoError(t, err)
		require.NoError(t, into.Take(c, b.Rows))
	}
}
