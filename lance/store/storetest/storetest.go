// Package storetest is the contract of [store.Store] as a test suite.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// cases are named checks, each of a new store.
type cases []struct {
	name  string
	check func(t *testing.T, open func(*testing.T) store.Store)
}

func (cs cases) run(t *testing.T, open func(*testing.T) store.Store) {
	for _, c := range cs {
		t.Run(c.name, func(t *testing.T) { c.check(t, open) })
	}
}

// Run checks a store. Each call of open returns a new, empty one.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	cases{
		{"an object that is not there is not found", storeAnObjectThatIsNotThereIsNotFound},
		{"what was created is read back, at any offset", storeWhatWasCreatedIsReadBackAtAnyOffset},
		{"names are created once", storeNamesAreCreatedOnce},
		{"an aborted object does not exist", storeAnAbortedObjectDoesNotExist},
		{"put replaces, put-if-absent does not", storePutReplacesPutIfAbsentDoesNot},
		{"a listing has the objects of one directory", storeAListingHasTheObjectsOfOneDirectory},
		{"a deep listing has everything below a directory", storeADeepListingHasEverythingBelowADirectory},
		{"a token tells contents of one name apart", storeATokenTellsContentsOfOneNameApart},
		{"names stay under the root", storeNamesStayUnderTheRoot},
		{"an open file outlives its name", storeAnOpenFileOutlivesItsName},
		{"a cancelled context stops", storeACancelledContextStops},
		{"a read is under its own context", storeAReadIsUnderItsOwnContext},
		{"a writer is under the context of its creation", storeAWriterIsUnderTheContextOfItsCreation},
		{"of many that put one name exactly one wins", storeOfManyThatPutOneNameExactlyOneWins},
	}.run(t, open)
}

func storeAnObjectThatIsNotThereIsNotFound(t *testing.T, open func(*testing.T) store.Store) {
	s, ctx := open(t), context.Background()
	_, err := s.Open(ctx, "a/b")
	require.ErrorIs(t, err, table.ErrNotFound)
	_, err = s.Stat(ctx, "a/b")
	require.ErrorIs(t, err, table.ErrNotFound)
	require.NoError(t, s.Delete(ctx, "a/b"))
	infos, err := s.List(ctx, "a")
	require.NoError(t, err)
	require.Empty(t, infos)
}

func storeWhatWasCreatedIsReadBackAtAnyOffset(t *testing.T, open func(*testing.T) store.Store) {
	s, ctx := open(t), context.Background()
	data := bytes.Repeat([]byte("0123456789"), 100_000)
	w, err := s.Create(ctx, "data/x.lance", store.WriteOptions{})
	require.NoError(t, err)
	for part := range slices.Chunk(data, 77_777) {
		n, err := w.Write(part)
		require.NoError(t, err)
		require.Equal(t, len(part), n)
	}
	require.NoError(t, w.Close())
	require.NoError(t, w.Abort(), "Abort after Close does nothing")

	size, err := s.Stat(ctx, "data/x.lance")
	require.NoError(t, err)
	require.EqualValues(t, len(data), size)
	f, err := s.Open(ctx, "data/x.lance")
	require.NoError(t, err)
	defer f.Close()
	require.EqualValues(t, len(data), f.Size())
	p := make([]byte, 12345)
	n, err := f.ReadAt(ctx, p, 555_555)
	require.NoError(t, err)
	require.Equal(t, len(p), n)
	require.Equal(t, data[555_555:555_555+len(p)], p)
	_, err = f.ReadAt(ctx, p, int64(len(data)-5))
	require.Error(t, err, "a short read is an error")
}

func storeNamesAreCreatedOnce(t *testing.T, open func(*testing.T) store.Store) {
	s, ctx := open(t), context.Background()
	w, err := s.Create(ctx, "data/x", store.WriteOptions{NoSync: true})
	require.NoError(t, err)
	_, err = w.Write([]byte("first"))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	_, err = s.Create(ctx, "data/x", store.WriteOptions{})
	require.ErrorIs(t, err, store.ErrExists)
	got, err := store.ReadAll(ctx, s, "data/x", 100)
	require.NoError(t, err)
	require.Equal(t, "first", string(got))
}

func storeAnAbortedObjectDoesNotExist(t *testing.T, open func(*testing.T) store.Store) {
	s, ctx := open(t), context.Background()
	w, err := s.Create(ctx, "data/x", store.WriteOptions{})
	require.NoError(t, err)
	_, err = w.Write([]byte("half"))
	require.NoError(t, err)
	require.NoError(t, w.Abort())
	_, err = s.Stat(ctx, "data/x")
	require.ErrorIs(t, err, table.ErrNotFound)
	w, err = s.Create(ctx, "data/x", store.WriteOptions{})
	require.NoError(t, err, "and its name is free")
	require.NoError(t, w.Close())
}

func storePutReplacesPutIfAbsentDoesNot(t *testing.T, open func(*testing.T) store.Store) {
	s, ctx := open(t), context.Background()
	require.NoError(t, s.Put(ctx, "h", []byte("1"), store.WriteOptions{}))
	require.NoError(t, s.Put(ctx, "h", []byte("22"), store.WriteOptions{NoSync: true}))
	require.ErrorIs(t, s.PutIfAbsent(ctx, "h", []byte("3")), store.ErrExists)
	got, err := store.ReadAll(ctx, s, "h", 100)
	require.NoError(t, err)
	require.Equal(t, "22", string(got))
	_, err = store.ReadAll(ctx, s, "h", 1)
	require.ErrorIs(t, err, table.ErrCorrupt, "larger than such an object may be")
	require.NoError(t, s.Delete(ctx, "h"))
	require.NoError(t, s.PutIfAbsent(ctx, "h", nil))
}

func storeAListingHasTheObjectsOfOneDirectory(t *testing.T, open func(*testing.T) store.Store) {
	s, ctx := open(t), context.Background()
	for _, name := range []string{"top", "v/1", "v/22", "v/deep/3", "w/4"} {
		require.NoError(t, s.PutIfAbsent(ctx, name, []byte(name)))
	}
	infos, err := s.List(ctx, "v")
	require.NoError(t, err)
	slices.SortFunc(infos, func(a, b store.Info) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	require.Len(t, infos, 2)
	require.Equal(t, "1", infos[0].Name)
	require.EqualValues(t, 4, infos[1].Size)
	require.False(t, infos[0].Modified.IsZero())
}

func storeADeepListingHasEverythingBelowADirectory(t *testing.T, open func(*testing.T) store.Store) {
	s, ctx := open(t), context.Background()
	for _, name := range []string{"top", "v/1", "v/22", "v/deep/3", "v/deep/er/4", "vv/5"} {
		require.NoError(t, s.PutIfAbsent(ctx, name, []byte(name)))
	}
	infos, err := s.ListAll(ctx, "v")
	require.NoError(t, err)
	got := map[string]uint64{}
	for _, info := range infos {
		got[info.Name] = info.Size
		require.False(t, info.Modified.IsZero())
	}
	require.Equal(t, map[string]uint64{"1": 3, "22": 4, "deep/3": 8, "deep/er/4": 11}, got)
	infos, err = s.ListAll(ctx, "nothing")
	require.NoError(t, err)
	require.Empty(t, infos)
	_, err = s.ListAll(ctx, "../v")
	require.ErrorIs(t, err, table.ErrCorrupt)
}

func storeATokenTellsContentsOfOneNameApart(t *testing.T, open func(*testing.T) store.Store) {
	s, ctx := open(t), context.Background()
	seen := map[string]string{}
	for i, write := range []func(data []byte) error{
		func(data []byte) error { return s.PutIfAbsent(ctx, "v/x", data) },
		func(data []byte) error { return s.Put(ctx, "v/x", data, store.WriteOptions{}) },
		func(data []byte) error { return s.Put(ctx, "v/x", data, store.WriteOptions{NoSync: true}) },
		func(data []byte) error {
			return errors.Join(s.Delete(ctx, "v/x"), s.PutIfAbsent(ctx, "v/x", data))
		},
	} {
		data := fmt.Sprintf("content %d", i) // always as long
		require.NoError(t, write([]byte(data)))
		for again := true; again; {
			f, err := s.Open(ctx, "v/x")
			require.NoError(t, err)
			token := f.Token()
			require.NoError(t, f.Close())
			infos, err := s.List(ctx, "v")
			require.NoError(t, err)
			require.Len(t, infos, 1)
			again = infos[0].Token == "" // not yet
			for _, token := range []string{token, infos[0].Token} {
				if was, ok := seen[token]; token != "" && ok {
					require.Equal(t, was, data, "token %s", token)
				}
			}
			if !again {
				seen[infos[0].Token] = data
			}
		}
	}
	require.Len(t, seen, 4)
}

func storeNamesStayUnderTheRoot(t *testing.T, open func(*testing.T) store.Store) {
	s, ctx := open(t), context.Background()
	for _, name := range []string{"", ".", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", "a\x00b"} {
		_, err := s.Open(ctx, name)
		require.ErrorIs(t, err, table.ErrCorrupt, name)
		require.ErrorIs(t, s.PutIfAbsent(ctx, name, nil), table.ErrCorrupt, name)
		_, err = s.Create(ctx, name, store.WriteOptions{})
		require.ErrorIs(t, err, table.ErrCorrupt, name)
		require.ErrorIs(t, s.Delete(ctx, name), table.ErrCorrupt, name)
	}
}

func storeAnOpenFileOutlivesItsName(t *testing.T, open func(*testing.T) store.Store) {
	s, ctx := open(t), context.Background()
	require.NoError(t, s.PutIfAbsent(ctx, "x", []byte("still here")))
	f, err := s.Open(ctx, "x")
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, s.Delete(ctx, "x"))
	p := make([]byte, 10)
	_, err = f.ReadAt(ctx, p, 0)
	require.NoError(t, err)
	require.Equal(t, "still here", string(p))
}

func storeACancelledContextStops(t *testing.T, open func(*testing.T) store.Store) {
	s := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, s.PutIfAbsent(ctx, "x", nil), context.Canceled)
	_, err := s.Stat(context.Background(), "x")
	require.ErrorIs(t, err, table.ErrNotFound)
}

func storeAReadIsUnderItsOwnContext(t *testing.T, open func(*testing.T) store.Store) {
	s := open(t)
	require.NoError(t, s.PutIfAbsent(context.Background(), "x", []byte("abc")))
	ctx, cancel := context.WithCancel(context.Background())
	f, err := s.Open(ctx, "x")
	require.NoError(t, err)
	defer f.Close()
	cancel()
	p := make([]byte, 3)
	_, err = f.ReadAt(ctx, p, 0)
	require.ErrorIs(t, err, context.Canceled)
	n, err := f.ReadAt(context.Background(), p, 0)
	require.Equal(t, 3, n, "the context of the opening is nothing to it: %v", err)
}

func storeAWriterIsUnderTheContextOfItsCreation(t *testing.T, open func(*testing.T) store.Store) {
	for name, end := range map[string]func(w store.Writer) error{
		"close": store.Writer.Close,
		"write": func(w store.Writer) error {
			_, err := w.Write([]byte("more"))
			return errors.Join(err, w.Abort())
		},
	} {
		s := open(t)
		ctx, cancel := context.WithCancel(context.Background())
		w, err := s.Create(ctx, "data/x", store.WriteOptions{})
		require.NoError(t, err)
		_, err = w.Write([]byte("some"))
		require.NoError(t, err)
		cancel()
		require.ErrorIs(t, end(w), context.Canceled, name)
		_, err = s.Stat(context.Background(), "data/x")
		require.ErrorIs(t, err, table.ErrNotFound, "nothing is left of it")
	}
}

func storeOfManyThatPutOneNameExactlyOneWins(t *testing.T, open func(*testing.T) store.Store) {
	s, ctx := open(t), context.Background()
	Race(t, 60, 8, func(round, who int) error {
		return s.PutIfAbsent(ctx, fmt.Sprintf("v/%d", round), payload(round, who))
	}, func(round, winner int) {
		got, err := store.ReadAll(ctx, s, fmt.Sprintf("v/%d", round), 1<<20)
		require.NoError(t, err)
		require.Equal(t, payload(round, winner), got, "the winner's bytes, whole")
	})
	infos, err := s.List(ctx, "v")
	require.NoError(t, err)
	require.Len(t, infos, 60, "and nothing else is listed")
}

func payload(round, who int) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("round %d by %d\n", round, who)), 500)
}

// Race lets n contenders call put at the same time, round after round, and checks
// that exactly one of them gets nil and the others store.ErrExists.
func Race(t *testing.T, rounds, n int, put func(round, who int) error, won func(round, winner int)) {
	t.Helper()
	for round := range rounds {
		var start, done sync.WaitGroup
		var winners atomic.Int32
		winner := make(chan int, n)
		errs := make([]error, n)
		start.Add(1)
		for who := range n {
			done.Go(func() {
				start.Wait()
				if errs[who] = put(round, who); errs[who] == nil {
					winners.Add(1)
					winner <- who
				}
			})
		}
		start.Done()
		done.Wait()
		require.EqualValues(t, 1, winners.Load(), "round %d", round)
		for _, err := range errs {
			require.True(t, err == nil || errors.Is(err, store.ErrExists), "round %d: %v", round, err)
		}
		won(round, <-winner)
	}
}
