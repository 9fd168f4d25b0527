package lance_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/table"
)

// byAddress returns the rows of batches by their addresses, in order of arrival.
func byAddress(t testing.TB, batches func(func(table.Batch, error) bool)) (addrs []table.RowAddr, rows map[table.RowAddr]string, err error) {
	t.Helper()
	rows = map[table.RowAddr]string{}
	for batch, err := range batches {
		if err != nil {
			return addrs, rows, err
		}
		require.Len(t, batch.Addrs, int(batch.Record.NumRows()))
		enc, err := rowjson.New(batch.Record.Schema(), rowjson.Raw)
		require.NoError(t, err)
		for i, a := range batch.Addrs {
			row, err := enc.AppendRow(nil, batch.Record, i, nil)
			require.NoError(t, err)
			rows[a] = string(row)
		}
		addrs = append(addrs, batch.Addrs...)
	}
	return addrs, rows, nil
}

// undeleted is s as if no row had ever been deleted: a scan of it is what a take
// must agree with.
func undeleted(s *table.Snapshot) *table.Snapshot {
	out := *s
	out.Fragments = slices.Clone(s.Fragments)
	for i := range out.Fragments {
		out.Fragments[i].Deletion = nil
	}
	return &out
}

// pick draws some of addrs: few or most of them.
func pick(rng *rand.Rand, addrs []table.RowAddr) []table.RowAddr {
	var out []table.RowAddr
	of := 1 + rng.IntN(10)
	if rng.IntN(2) == 0 {
		of = 1 + rng.IntN(1+len(addrs))
	}
	for _, a := range addrs {
		if rng.IntN(of) == 0 {
			out = append(out, a)
		}
	}
	return out
}

// Taking rows gives what a scan that sees deleted rows gives at their addresses, in
// every version of every table that a stock engine wrote.
func TestTakeIsAScanOfSomeRows(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, g := range testtable.All(t) {
		t.Run(g.Name, func(t *testing.T) {
			e := open(t, g.Dir)
			for _, n := range g.Numbers() {
				s := load(t, e, n)
				all, want, err := byAddress(t, e.Rows(ctx, undeleted(s), fragmentIDs(s), table.ReadOptions{WithAddrs: true}))
				if errors.Is(err, table.ErrUnsupported) {
					_, _, err := byAddress(t, e.Take(ctx, s, []table.RowAddr{table.NewRowAddr(s.Fragments[0].ID, 0)}, nil))
					require.ErrorIs(t, err, table.ErrUnsupported)
					continue
				}
				require.NoError(t, err)
				for range 4 {
					addrs := pick(rng, all)
					got, rows, err := byAddress(t, e.Take(ctx, s, addrs, nil))
					require.NoError(t, err)
					require.Equal(t, addrs, got, "version %d", n)
					for _, a := range addrs {
						require.Equal(t, want[a], rows[a], "version %d, the row at %v", n, a)
					}
				}
			}
		})
	}
}

func TestTakeSomeColumns(t *testing.T) {
	e := newTable(t, store.NewMem(), 300, 0, 40)
	s := load(t, e, 0)
	addrs := []table.RowAddr{table.NewRowAddr(0, 0), table.NewRowAddr(0, 299), table.NewRowAddr(1, 7)}
	got, rows, err := byAddress(t, e.Take(ctx, s, addrs, []string{"name", "id"}))
	require.NoError(t, err)
	require.Equal(t, addrs, got)
	require.Equal(t, `{"name":null,"id":"0"}`, rows[addrs[0]])
	require.Equal(t, `{"name":"namexxxxx","id":"299"}`, rows[addrs[1]])
	require.Equal(t, `{"name":"namexxxxxx","id":"307"}`, rows[addrs[2]])

	_, _, err = byAddress(t, e.Take(ctx, s, addrs, []string{"age"}))
	require.ErrorContains(t, err, "age")
	for range e.Take(ctx, s, nil, nil) {
		t.Fatal("no rows were asked for")
	}
}

func TestTakeNamesAddressesWithoutARow(t *testing.T) {
	e := newTable(t, store.NewMem(), 10, 10)
	s := load(t, e, 0)
	last := table.NewRowAddr(1, 9)
	for _, c := range []struct {
		addr table.RowAddr
		want string
	}{
		{table.NewRowAddr(1, 10), "no row at 1:10: the fragment has 10"},
		{table.NewRowAddr(2, 0), "no row at 2:0, and no such fragment"},
	} {
		n := 0
		for b, err := range e.Take(ctx, s, []table.RowAddr{0, last, c.addr}, nil) {
			n++
			require.Nil(t, b.Record, "nothing is read first")
			require.ErrorIs(t, err, table.ErrNotFound)
			require.ErrorContains(t, err, c.want)
		}
		require.Equal(t, 1, n)
	}
	for _, addrs := range [][]table.RowAddr{{3, 3}, {4, 3}, {last, 5}} {
		_, _, err := byAddress(t, e.Take(ctx, s, addrs, nil))
		require.ErrorContains(t, err, "they must ascend")
	}
}

// many are addresses of so many portions that all goroutines have work to do.
func many(t testing.TB, s *table.Snapshot) []table.RowAddr {
	var out []table.RowAddr
	for _, f := range s.Fragments {
		for row := range f.PhysicalRows {
			out = append(out, table.NewRowAddr(f.ID, uint32(row)))
		}
	}
	return out
}

func TestTakeStops(t *testing.T) {
	e := newTable(t, store.NewMem(), 2000, 2000, 2000, 2000, 2000, 2000)
	s := load(t, e, 0)
	addrs := many(t, s)
	for stop := range 4 {
		var kept []arrow.RecordBatch
		for b, err := range e.Take(ctx, s, addrs, nil) {
			require.NoError(t, err)
			b.Record.Retain()
			kept = append(kept, b.Record)
			if len(kept) == 1+stop {
				break
			}
		}
		for _, r := range kept {
			require.Positive(t, r.NumRows())
			r.Release()
		}
	}
	stopping, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	for _, err = range e.Take(stopping, s, addrs, nil) {
		cancel()
	}
	require.ErrorIs(t, err, context.Canceled, "what is missing must not go unnoticed")
}

// A portion that cannot be read ends the sequence where it belongs, whatever was
// fetched ahead.
func TestTakeEndsAtTheFirstError(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 500, 500, 500, 500, 500, 500)
	s := load(t, e, 0)
	for bad := range s.Fragments {
		name := s.Fragments[bad].Files[0].Path
		broken, err := lance.OpenStore(ctx, fault.New(m, func(o fault.Op) fault.Action {
			if o.Kind == fault.Read && o.Name == name {
				return fault.Before
			}
			return fault.Pass
		}), lance.Options{})
		require.NoError(t, err)
		got, _, err := byAddress(t, broken.Take(ctx, s, many(t, s), nil))
		require.ErrorIs(t, err, fault.ErrInjected)
		require.LessOrEqual(t, len(got), 500*bad)
		for i, a := range got {
			require.Equal(t, many(t, s)[i], a, "no row is left out before the error")
		}
		require.NoError(t, broken.Close())
	}
}

// Some rows of a large fragment are had without reading it.
func TestTakeReadsLittle(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 200_000)
	s := load(t, e, 0)
	f := fault.New(m, nil)
	counted, err := lance.OpenStore(ctx, f, lance.Options{})
	require.NoError(t, err)
	defer counted.Close()
	for i, most := range []int{
		1 + 1 + 2*5, // manifest names; the file's end; of two columns some chunks
		2 * 5,       // and now the file is open
	} {
		before := len(f.Log())
		_, rows, err := byAddress(t, counted.Take(ctx, s, []table.RowAddr{123_456, 123_457, 199_999}, nil))
		require.NoError(t, err)
		require.Contains(t, rows[123_456], `"id":"123456"`)
		var reads []string
		for _, o := range f.Log()[before:] {
			reads = append(reads, o.String())
		}
		require.LessOrEqual(t, len(reads), most, "take %d:\n%s", i, strings.Join(reads, "\n"))
	}
}
