package lance_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/table"
)

func newSession(t testing.TB, opts lance.SessionOptions) *lance.Session {
	t.Helper()
	s, err := lance.NewSession(opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func openIn(t testing.TB, session *lance.Session, s store.Store) *lance.Engine {
	t.Helper()
	e, err := lance.OpenStore(ctx, s, lance.Options{Session: session})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// withoutHandles is a snapshot without what is the engine's own.
func withoutHandles(s *table.Snapshot) table.Snapshot {
	out := *s
	out.Handle, out.Indexes = nil, nil
	for _, ix := range s.Indexes {
		ix.Handle = nil
		out.Indexes = append(out.Indexes, ix)
	}
	if s.Reuse != nil {
		r := *s.Reuse
		r.Handle = nil
		out.Reuse = &r
	}
	return out
}

// view is everything that an engine says of a table.
type view struct {
	snapshots    []table.Snapshot
	transactions []table.Transaction
	deletions    map[string]string
	reuse        [][]byte
	rows         []string
	errs         []string
}

// look makes a view of the versions that are given. It asks for most things twice.
func look(t testing.TB, e *lance.Engine, versions ...uint64) view {
	v := view{deletions: map[string]string{}}
	fails := func(err error) bool {
		if err != nil {
			v.errs = append(v.errs, err.Error())
		}
		return err != nil
	}
	for i, n := range slices.Concat(versions, versions, []uint64{0}) {
		s, err := e.Load(ctx, n)
		if fails(err) {
			continue
		}
		v.snapshots = append(v.snapshots, withoutHandles(s))
		for _, f := range s.Fragments {
			if f.Deletion != nil {
				d, err := e.ReadDeletions(ctx, s, f)
				require.NoError(t, err)
				v.deletions[f.Deletion.Path] = d.(*deletion.Vector).String()
			}
		}
		content, err := e.ReuseIndex(ctx, s)
		require.NoError(t, err)
		v.reuse = append(v.reuse, content)
		if i >= len(versions) {
			rows, err := scan(t, e, s)
			if !fails(err) {
				for _, r := range rows {
					v.rows = append(v.rows, string(r))
				}
			}
		}
		since, err := e.TransactionsSince(ctx, n/2, n)
		if !fails(err) {
			for i := range since {
				since[i] = transactionWithoutHandles(since[i])
			}
			v.transactions = append(v.transactions, since...)
		}
	}
	return v
}

// transactionWithoutHandles leaves out what is the engine's own of an index.
func transactionWithoutHandles(tx table.Transaction) table.Transaction {
	if op, ok := tx.Operation.(table.CreateIndex); ok {
		out := table.CreateIndex{}
		for _, ix := range op.New {
			ix.Handle = nil
			out.New = append(out.New, ix)
		}
		for _, ix := range op.Removed {
			ix.Handle = nil
			out.Removed = append(out.Removed, ix)
		}
		tx.Operation = out
	}
	return tx
}

// A session changes nothing that is seen: not one that several engines and all tables
// share, nor one that has no room, nor one that was closed.
func TestASessionChangesNoResult(t *testing.T) {
	shared, tiny, closed := newSession(t, lance.SessionOptions{}), newSession(t, lance.SessionOptions{MaxBytes: 1, ReuseBytes: 1, AddressBytes: 1}), newSession(t, lance.SessionOptions{})
	require.NoError(t, closed.Close())
	for _, g := range testtable.All(t) {
		t.Run(g.Name, func(t *testing.T) {
			m := inMemory(t, g.Name)
			numbers := append(g.Numbers(), g.Latest()+1)
			numbers = numbers[max(0, len(numbers)-4):]
			want := look(t, openStore(t, m), numbers...)
			require.NotEmpty(t, want.snapshots)
			for range 2 {
				require.Equal(t, want, look(t, openIn(t, shared, m), numbers...))
			}
			before := shared.Metrics()
			require.Equal(t, want, look(t, openIn(t, shared, m), numbers...))
			after := shared.Metrics()
			require.Equal(t, before.Versions.Misses, after.Versions.Misses, "all are known")
			require.Equal(t, before.Transactions.Misses, after.Transactions.Misses)
			require.Equal(t, before.Deletions.Misses, after.Deletions.Misses)
			require.Equal(t, want, look(t, openIn(t, tiny, m), numbers...))
			require.Equal(t, want, look(t, openIn(t, closed, m), numbers...))
		})
	}
	require.Zero(t, shared.Metrics().Evictions)
	require.Positive(t, shared.Metrics().Bytes)
	require.Zero(t, tiny.Metrics().Bytes)
	require.Zero(t, closed.Metrics().Bytes)
}

// Engines with one session, with another and with none change a table in turn, drop
// it and make it again, and always see what one sees that was just opened.
func TestSessionsAndRandomChanges(t *testing.T) {
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := store.NewMem()
		newTable(t, m, 20, 20)
		one, two := newSession(t, lance.SessionOptions{}), newSession(t, lance.SessionOptions{MaxBytes: 20_000})
		engines := []*lance.Engine{openIn(t, one, m), openIn(t, one, m), openIn(t, two, m), openStore(t, m)}
		for next := int64(1000); next < 1040; next++ {
			e := engines[rng.IntN(len(engines))]
			s := load(t, e, 0)
			live := many(t, s)
			switch n := rng.IntN(20); {
			case n < 7 || len(live) < 10:
				_, err := e.Append(ctx, rows(next, 10), table.WriteOptions{})
				require.NoError(t, err)
			case n < 14:
				a := live[rng.IntN(len(live))]
				_, err := e.DeleteRows(ctx, a)
				require.NoError(t, err)
			case n < 17:
				p := rewrite(t, e, s, fragmentIDs(s)[:1+rng.IntN(len(s.Fragments))]...)
				_, err := e.Commit(ctx, p)
				require.NoError(t, err)
			case n < 19:
				old := 1 + rng.Uint64N(s.Version)
				if old < s.Version {
					require.NoError(t, m.Delete(ctx, "_versions/"+manifest.V2.Name(old)))
				}
			default:
				for _, name := range m.Names() {
					require.NoError(t, m.Delete(ctx, name))
				}
				newTable(t, m, 10, 20, 10)
			}
			latest := load(t, e, 0).Version
			versions := []uint64{max(1, latest/2), max(1, latest-1), latest}
			want := look(t, openStore(t, m), versions...)
			for i, e := range engines {
				require.Equal(t, want, look(t, e, versions...), "seed %d, change %d, engine %d", seed, next, i)
			}
		}
		require.Positive(t, one.Metrics().Versions.Hits)
		require.Positive(t, two.Metrics().Evictions)
	}
}

// operations are what a store was asked since its log had the given length, and of
// which directory.
func operations(f *fault.Store, since int) []string {
	var out []string
	for _, o := range f.Log()[since:] {
		dir, _, _ := strings.Cut(o.Name, "/")
		out = append(out, string(o.Kind)+" "+dir)
	}
	return out
}

func TestWhatASessionHasIsNotReadAgain(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 10, 10, 10)
	_, err := e.DeleteRows(ctx, table.NewRowAddr(1, 4))
	require.NoError(t, err)
	session := newSession(t, lance.SessionOptions{})
	look(t, openIn(t, session, m), 1, 2, 3, 4, 5)

	f := fault.New(m, nil)
	second := openIn(t, session, f)
	asked := func(do func()) []string {
		at := len(f.Log())
		do()
		return operations(f, at)
	}
	require.Equal(t, []string{"list _versions"}, asked(func() { load(t, second, 0) }))
	require.Equal(t, []string{"open _versions"}, asked(func() { load(t, second, 3) }), "is it the one that is known?")
	require.Equal(t, []string{"list _versions"}, asked(func() {
		since, err := second.TransactionsSince(ctx, 0, 0)
		require.NoError(t, err)
		require.Len(t, since, 5)
	}))
	s := load(t, second, 0)
	require.Empty(t, asked(func() {
		_, err := second.ReadDeletions(ctx, s, s.Fragments[1])
		require.NoError(t, err)
	}))
	// Of a data file, its pages and nothing else: two columns of one page each,
	// which has metadata and values.
	reads := 0
	for _, o := range asked(func() {
		for _, err := range second.Rows(ctx, s, []table.FragmentID{0}, table.ReadOptions{}) {
			require.NoError(t, err)
		}
	}) {
		if o == "read data" {
			reads++
		} else {
			require.Equal(t, "open data", o)
		}
	}
	require.LessOrEqual(t, reads, 4)

	// A version more is one version more to read.
	_, err = e.Append(ctx, rows(100, 1), table.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"list _versions", "open _versions", "read _versions"}, asked(func() {
		since, err := second.TransactionsSince(ctx, 0, 0)
		require.NoError(t, err)
		require.Len(t, since, 6)
	}))
	// And its transaction is had from the version, or the reverse is not: the
	// version is more than its transaction.
	_, err = e.Append(ctx, rows(101, 1), table.WriteOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"list _versions", "open _versions", "read _versions", "list _versions"}, asked(func() {
		s := load(t, second, 0)
		_, err := second.TransactionsSince(ctx, s.Version-1, 0)
		require.NoError(t, err)
	}))
}

// A table that was dropped and made again has the names of the old one.
func TestADroppedTableIsForgotten(t *testing.T) {
	local := func(t *testing.T) store.Store {
		s, err := store.NewLocal(filepath.Join(t.TempDir(), "t.lance"))
		require.NoError(t, err)
		return s
	}
	for name, newStore := range map[string]func(t *testing.T) store.Store{
		"on disk": local, "in memory": func(*testing.T) store.Store { return store.NewMem() },
	} {
		t.Run(name, func(t *testing.T) {
			session := newSession(t, lance.SessionOptions{})
			s := newStore(t)
			var old *lance.Engine
			for round := range int64(6) {
				// The sizes of all manifests are the same in each round.
				made, err := lance.CreateStore(ctx, s, people, lance.CreateOptions{}, lance.Options{Session: session})
				require.NoError(t, err)
				for i := range int64(2) {
					_, err = made.Append(ctx, rows(1000+100*round+10*i, 10), table.WriteOptions{})
					require.NoError(t, err)
				}
				first := load(t, made, 2).Fragments[0]
				_, err = made.DeleteRows(ctx, table.NewRowAddr(first.ID, uint32(round)))
				require.NoError(t, err)

				want := look(t, openStore(t, s), 1, 2, 3, 4)
				for range 2 {
					require.Equal(t, want, look(t, made, 1, 2, 3, 4))
					require.Equal(t, want, look(t, openIn(t, session, s), 1, 2, 3, 4))
					if old != nil {
						require.Equal(t, want.snapshots, look(t, old, 1, 2, 3, 4).snapshots)
					}
					time.Sleep(time.Duration(round) * 8 * time.Millisecond) // young files, older ones
				}
				require.NoError(t, made.Close())
				if old == nil {
					old = openIn(t, session, s)
				}
				for _, dir := range []string{"_versions", "_transactions", "_deletions", "data"} {
					infos, err := s.List(ctx, dir)
					require.NoError(t, err)
					for _, info := range infos {
						require.NoError(t, s.Delete(ctx, dir+"/"+info.Name))
					}
				}
				_, err = old.Load(ctx, 0)
				require.ErrorIs(t, err, table.ErrNotTable)
			}
		})
	}
}

// What a session knows of a version that was cleaned up is of no use to anybody.
func TestACleanedUpVersionIsGone(t *testing.T) {
	m := inMemory(t, "with_deletions_small")
	session := newSession(t, lance.SessionOptions{})
	e := openIn(t, session, m)
	look(t, e, 1, 2, 3, 4)
	require.NoError(t, m.Delete(ctx, "_versions/"+manifest.V2.Name(2)))
	for _, e := range []*lance.Engine{e, openIn(t, session, m)} {
		_, err := e.Load(ctx, 2)
		require.ErrorIs(t, err, table.ErrNotFound)
		_, err = e.TransactionsSince(ctx, 1, 0)
		require.ErrorIs(t, err, table.ErrTerminal)
		_, err = e.TransactionsSince(ctx, 2, 0)
		require.NoError(t, err)
	}
}

// Engines that want the same version at once read it once; and if that fails, it
// fails for the one that tried.
func TestOneOfManyReads(t *testing.T) {
	m := inMemory(t, "many_small_fragments")
	latest := latestName(t, m)
	for _, failing := range []bool{false, true} {
		session := newSession(t, lance.SessionOptions{})
		var reads atomic.Int32
		f := fault.New(m, func(o fault.Op) fault.Action {
			if o.Kind == fault.Read && o.Name == latest && reads.Add(1) == 1 && failing {
				return fault.Before
			}
			return fault.Pass
		})
		var start, done sync.WaitGroup
		start.Add(1)
		var failed, loaded atomic.Int32
		for range 8 {
			e := openIn(t, session, f)
			done.Go(func() {
				start.Wait()
				if _, err := e.Load(ctx, 0); err != nil {
					failed.Add(1)
				} else {
					loaded.Add(1)
				}
			})
		}
		start.Done()
		done.Wait()
		if failing {
			require.EqualValues(t, 1, failed.Load())
			require.EqualValues(t, 7, loaded.Load())
		} else {
			require.EqualValues(t, 8, loaded.Load())
			require.EqualValues(t, 1, reads.Load())
		}
	}
}

// Closing a session takes nothing away from engines that are at work.
func TestCloseASessionThatIsInUse(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 50, 50)
	_, err := e.DeleteRows(ctx, table.NewRowAddr(0, 7), table.NewRowAddr(1, 9))
	require.NoError(t, err)
	want := text(t, e, load(t, e, 0))
	session, err := lance.NewSession(lance.SessionOptions{})
	require.NoError(t, err)
	var done sync.WaitGroup
	for g := range 6 {
		e := openIn(t, session, m)
		done.Go(func() {
			for i := range 30 {
				if g == 0 && i == 15 {
					_ = session.Close()
				}
				s, err := e.Load(ctx, 0)
				if err != nil || text(t, e, s) != want {
					t.Errorf("%v", err)
				}
				_, _ = e.Memory(), session.Metrics()
				if _, err := e.TransactionsSince(ctx, 0, 0); err != nil {
					t.Errorf("%v", err)
				}
			}
		})
	}
	done.Wait()
	require.NoError(t, session.Close(), "twice is once")
	require.Zero(t, session.Metrics().Bytes)
	require.Zero(t, session.Metrics().Reuse)
}

// The bound on a session is one on memory, as far as can be told.
func TestASessionKnowsItsSize(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m)
	for i := range int64(150) {
		_, err := e.Append(ctx, rows(i, 10), table.WriteOptions{})
		require.NoError(t, err)
	}
	session := newSession(t, lance.SessionOptions{})
	e = openIn(t, session, m)
	before := heapBytes()
	for v := range uint64(150) {
		load(t, e, v+1)
	}
	_, err := e.TransactionsSince(ctx, 0, 0)
	require.NoError(t, err)
	used := float64(heapBytes() - before)
	require.InEpsilon(t, used, session.Metrics().Bytes, 0.5)

	small := newSession(t, lance.SessionOptions{MaxBytes: session.Metrics().Bytes / 10})
	e = openIn(t, small, m)
	for v := range uint64(150) {
		load(t, e, v+1)
	}
	require.Positive(t, small.Metrics().Evictions)
	require.LessOrEqual(t, small.Metrics().Bytes, session.Metrics().Bytes/10)
	require.Positive(t, small.Metrics().Bytes)
}

func TestSessionOptions(t *testing.T) {
	for _, o := range []lance.SessionOptions{{MaxBytes: -1}, {ReuseBytes: -1}, {AddressBytes: -1}} {
		_, err := lance.NewSession(o)
		require.ErrorContains(t, err, "is -1")
	}
}

// A context that is over is over for what is known, too.
func TestASessionHeedsContexts(t *testing.T) {
	session := newSession(t, lance.SessionOptions{})
	e := openIn(t, session, inMemory(t, "ints_basic"))
	load(t, e, 0)
	over, cancel := context.WithCancel(ctx)
	cancel()
	_, err := e.Load(over, 0)
	require.ErrorIs(t, err, context.Canceled)
	_, err = e.TransactionsSince(over, 0, 0)
	require.ErrorIs(t, err, context.Canceled)
}
