package assemble_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/assemble"
	"github.com/rehome-db/rehome/lance/readat"
)

func openFile(t testing.TB, path string) *datafile.File {
	r, err := os.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	st, err := r.Stat()
	require.NoError(t, err)
	f, err := datafile.Open(t.Context(), readat.Local(r), st.Size(), filepath.Base(path))
	require.NoError(t, err)
	return f
}

// reader assembles the rows [from, to) of a file, whose columns are in the order
// of its schema.
func reader(t testing.TB, mem memory.Allocator, f *datafile.File, from, to uint64) *assemble.Reader {
	leaves := f.Schema().Leaves()
	require.Equal(t, len(leaves), f.NumColumns())
	sources := make([]assemble.Source, len(leaves))
	for i, l := range leaves {
		c, err := f.Column(i)
		require.NoError(t, err)
		require.NoError(t, c.Check(l))
		sources[i] = c.BlocksRange(context.Background(), l, from, to)
	}
	r, err := assemble.New(mem, f.Schema(), sources, to-from)
	require.NoError(t, err)
	return r
}

// drain reads everything, step rows at a time, as one array a column.
func drain(t testing.TB, mem memory.Allocator, r *assemble.Reader, step int) []arrow.Array {
	defer r.Close()
	parts := make([][]arrow.Array, r.Schema().NumFields())
	for {
		b, err := r.Next(step)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		for i, c := range b.Columns() {
			c.Retain()
			parts[i] = append(parts[i], c)
		}
		b.Release()
	}
	out := make([]arrow.Array, len(parts))
	for i, p := range parts {
		if len(p) == 0 {
			out[i] = array.MakeArrayOfNull(mem, r.Schema().Field(i).Type, 0)
			continue
		}
		var err error
		out[i], err = array.Concatenate(p, mem)
		require.NoError(t, err)
		for _, a := range p {
			a.Release()
		}
	}
	return out
}

// expected reads the Arrow file that says what the file at path holds.
func expected(t testing.TB, path string) []arrow.Array {
	base := strings.TrimSuffix(path, ".lance")
	raw, err := os.Open(base + ".arrow")
	if errors.Is(err, fs.ErrNotExist) {
		raw, err = os.Open(base[:len(base)-len(".2.x")] + ".arrow") // both formats' values
	}
	require.NoError(t, err)
	defer raw.Close()
	r, err := ipc.NewFileReader(raw)
	require.NoError(t, err)
	defer r.Close()
	out := make([]arrow.Array, r.Schema().NumFields())
	for i := range out {
		var parts []arrow.Array
		for k := range r.NumRecords() {
			b, err := r.RecordBatchAt(k)
			require.NoError(t, err)
			parts = append(parts, b.Column(i))
		}
		out[i], err = array.Concatenate(parts, memory.DefaultAllocator)
		require.NoError(t, err)
	}
	return out
}

func requireSame(t testing.TB, want, got arrow.Array, what string) {
	require.True(t, arrow.TypeEqual(want.DataType(), got.DataType()), "%s: type %s, want %s", what, got.DataType(), want.DataType())
	require.Equal(t, want.Len(), got.Len(), what)
	if array.ApproxEqual(want, got, array.WithNaNsEqual(true), array.WithAbsTolerance(0)) {
		return
	}
	for i := range want.Len() {
		require.Equal(t, want.ValueStr(i), got.ValueStr(i), "%s: row %d", what, i)
	}
	require.Fail(t, "not equal", what)
}

// corpus adds files to TestStockFiles: data files each beside an Arrow file of the
// same name that holds what it must read as.
var corpus = flag.String("corpus", "", "glob of more data files to read")

// TestStockFiles reads what the stock engine wrote (see testdata/generate.py):
// every supported type with and without nulls, in both formats, by its default
// encodings.
func TestStockFiles(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.lance")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	if *corpus != "" {
		more, err := filepath.Glob(*corpus)
		require.NoError(t, err)
		files = append(files, more...)
	}
	seen := map[string]bool{}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			f := openFile(t, path)
			for i := range f.NumColumns() {
				c, err := f.Column(i)
				require.NoError(t, err)
				for _, p := range c.Pages() {
					seen[f.Version().String()+" "+p.Encoding()] = true
				}
			}
			checkFile(t, f, expected(t, path))
		})
	}
	// The files are worth their room only if they hold what they are here for.
	for _, e := range []string{
		"2.1 constant", "2.1 mini_block flat(1)", "2.1 mini_block flat(256)", "2.1 mini_block variable",
		"2.1 mini_block fsst(variable)", "2.1 mini_block inline_bitpacking(8)", "2.1 mini_block inline_bitpacking(16)",
		"2.1 mini_block inline_bitpacking(32)", "2.1 mini_block inline_bitpacking(64)", "2.1 mini_block rle(flat(8), flat(8))",
		"2.1 mini_block rle(flat(64), flat(8))", "2.1 mini_block general:lz4(byte_stream_split(flat(32)))",
		"2.1 mini_block general:zstd(byte_stream_split(flat(64)))", "2.1 mini_block fixed_size_list(fixed_size_list(flat(32)))",
		"2.1 mini_block inline_bitpacking(32) with a dictionary of variable", "2.1 mini_block inline_bitpacking(32) with a dictionary of flat(128)",
		"2.1 full_zip variable", "2.1 full_zip fsst(variable)", "2.1 full_zip general:zstd(variable)",
		"2.1 full_zip fixed_size_list(flat(32))", "2.1 full_zip flat(2400)",
		"2.2 constant", "2.2 mini_block fsst(variable)", "2.2 mini_block inline_bitpacking(64)",
		"2.2 mini_block inline_bitpacking(32) with a dictionary of general:lz4(variable)",
		"2.2 mini_block inline_bitpacking(32) with a dictionary of general:lz4(flat(64))",
		"2.2 full_zip fsst(variable)", "2.2 full_zip general:zstd(variable)", "2.2 full_zip fixed_size_list(flat(32))",
	} {
		require.True(t, seen[e], "no file has a page of %s; there are %v", e, slices.Sorted(maps.Keys(seen)))
	}
}

// checkFile reads the file whole, in small batches, and in ranges.
func checkFile(t *testing.T, f *datafile.File, want []arrow.Array) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	n := f.Rows()
	check := func(from, to uint64, step int) {
		got := drain(t, mem, reader(t, mem, f, from, to), step)
		for i := range want {
			what := fmt.Sprintf("column %s, rows %d to %d by %d", f.Schema().Fields[i].Name, from, to, step)
			part := array.NewSlice(want[i], int64(from), int64(to))
			requireSame(t, part, got[i], what)
			part.Release()
			got[i].Release()
		}
	}
	check(0, n, 1<<30)
	check(0, n, 7+int(n)/20)
	for _, r := range [][2]uint64{{n / 3, 2 * n / 3}, {n - 1, n}, {0, 1}, {n / 2, n / 2}, {n / 2, n/2 + 1}} {
		check(r[0], r[1], 1<<30)
	}
	mem.AssertSize(t, 0)
}
