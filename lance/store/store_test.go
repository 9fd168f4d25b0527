package store_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/lance/store/storetest"
)

func openLocal(t *testing.T) store.Store {
	s, err := store.NewLocal(filepath.Join(t.TempDir(), "t.lance"))
	require.NoError(t, err)
	return s
}

func TestLocal(t *testing.T) { storetest.Run(t, openLocal) }

func TestMem(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return store.NewMem() })
}

func TestFaultWrapperPassesThrough(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return fault.New(store.NewMem(), nil) })
}

func TestLocalFilesAreReadableByAll(t *testing.T) {
	ctx := context.Background()
	s := openLocal(t)
	require.NoError(t, s.PutIfAbsent(ctx, "_versions/1.manifest", []byte("x")))
	w, err := s.Create(ctx, "data/f.lance", store.WriteOptions{})
	require.NoError(t, err)
	require.NoError(t, w.Close())
	for _, name := range []string{"_versions/1.manifest", "data/f.lance"} {
		st, err := os.Stat(filepath.Join(s.String(), name))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o644), st.Mode().Perm(), name)
	}
}

func TestLocalIgnoresTemporaryFilesOfACrash(t *testing.T) {
	ctx := context.Background()
	s := openLocal(t)
	require.NoError(t, s.PutIfAbsent(ctx, "_versions/1.manifest", []byte("x")))
	dir := filepath.Join(s.String(), "_versions")
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".tmp_2.manifest_00aa"), []byte("half"), 0o600))
	infos, err := s.List(ctx, "_versions")
	require.NoError(t, err)
	require.Len(t, infos, 1)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the put left no temporary file of its own")
}

// The contenders are processes, as they are in life: a lock inside one process
// would pass the goroutine test.
func TestLocalPutIfAbsentBetweenProcesses(t *testing.T) {
	const procs, rounds = 4, 40
	if dir := os.Getenv("STORE_RACE_DIR"); dir != "" {
		raceChild(dir, os.Getenv("STORE_RACE_NAME"), rounds)
		return
	}
	dir := t.TempDir()
	outs := make([]bytes.Buffer, procs)
	cmds := make([]*exec.Cmd, procs)
	for i := range cmds {
		cmds[i] = exec.Command(os.Args[0], "-test.run=^TestLocalPutIfAbsentBetweenProcesses$")
		cmds[i].Env = append(os.Environ(), "STORE_RACE_DIR="+dir, fmt.Sprintf("STORE_RACE_NAME=p%d", i))
		cmds[i].Stdout = &outs[i]
		require.NoError(t, cmds[i].Start())
	}
	winner := map[string]string{}
	for i := range cmds {
		require.NoError(t, cmds[i].Wait(), outs[i].String())
		for lines := bufio.NewScanner(&outs[i]); lines.Scan(); {
			if object, ok := strings.CutPrefix(lines.Text(), "won "); ok {
				require.NotContains(t, winner, object, "two winners")
				winner[object] = fmt.Sprintf("p%d", i)
			}
		}
	}
	require.Len(t, winner, rounds)
	for object, who := range winner {
		got, err := os.ReadFile(filepath.Join(dir, object))
		require.NoError(t, err)
		require.Equal(t, strings.Repeat(who, 1000), string(got))
	}
}

func raceChild(dir, who string, rounds int) {
	s, err := store.NewLocal(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for round := range rounds {
		name := fmt.Sprintf("v/%d", round)
		switch err := s.PutIfAbsent(context.Background(), name, []byte(strings.Repeat(who, 1000))); {
		case err == nil:
			fmt.Println("won " + name)
		case !errors.Is(err, store.ErrExists):
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

func TestLocalDeleteTakesTheObjectsOwnDirectory(t *testing.T) {
	ctx := context.Background()
	s := openLocal(t)
	for _, name := range []string{"_indices/a/x", "_indices/a/y", "data/z"} {
		require.NoError(t, s.PutIfAbsent(ctx, name, nil))
	}
	require.NoError(t, s.Delete(ctx, "_indices/a/x"))
	require.DirExists(t, filepath.Join(s.String(), "_indices/a"))
	require.NoError(t, s.Delete(ctx, "_indices/a/y"))
	require.NoDirExists(t, filepath.Join(s.String(), "_indices/a"))
	require.NoError(t, s.Delete(ctx, "data/z"))
	require.DirExists(t, filepath.Join(s.String(), "data"))
}

func TestFaultPolicies(t *testing.T) {
	ctx := context.Background()
	inner := store.NewMem()
	put := func(s store.Store, name string) error { return s.PutIfAbsent(ctx, name, []byte("x")) }

	s := fault.New(inner, fault.Die(2, fault.After, fault.Writes))
	require.NoError(t, put(s, "a"))
	_, err := s.Stat(ctx, "a")
	require.NoError(t, err, "reads do not count here")
	err = put(s, "b")
	require.ErrorIs(t, err, fault.ErrInjected)
	require.ErrorIs(t, err, store.ErrAmbiguous)
	require.ErrorIs(t, put(s, "c"), fault.ErrInjected, "dead")
	require.Equal(t, []string{"a", "b"}, inner.Names())

	s = fault.New(inner, fault.Once(1, fault.Lost, nil))
	require.ErrorIs(t, put(s, "c"), store.ErrAmbiguous)
	require.NoError(t, put(s, "d"))
	require.Equal(t, []string{"a", "b", "d"}, inner.Names())
}

// A file that could be written again within the same step of the clock has no token.
func TestYoungFilesHaveNoToken(t *testing.T) {
	dir := t.TempDir()
	s, err := store.NewLocal(dir)
	require.NoError(t, err)
	require.NoError(t, s.PutIfAbsent(t.Context(), "x", []byte("x")))
	for _, c := range []struct {
		age   time.Duration
		whole bool // seconds
		want  bool
	}{
		{age: -time.Hour}, {age: 0}, {age: 10 * time.Millisecond}, {age: time.Second, want: true},
		{age: 2 * time.Second, whole: true}, {age: 5 * time.Second, whole: true, want: true}, {age: 9000 * time.Hour, want: true},
	} {
		at := time.Now().Add(-c.age)
		if c.whole {
			at = at.Truncate(time.Second)
		} else if at.Nanosecond() == 0 {
			at = at.Add(-time.Nanosecond)
		}
		require.NoError(t, os.Chtimes(filepath.Join(dir, "x"), at, at))
		f, err := s.Open(t.Context(), "x")
		require.NoError(t, err)
		require.Equal(t, c.want, f.Token() != "", "%v old: %q", c.age, f.Token())
		require.NoError(t, f.Close())
	}
}

func TestStoresOfOnePlaceHaveOneID(t *testing.T) {
	dir := t.TempDir()
	id := func(p string) string {
		s, err := store.NewLocal(p)
		require.NoError(t, err)
		return s.ID()
	}
	require.Equal(t, id(dir), id(dir+"/sub/.."))
	require.NotEqual(t, id(dir), id(dir+"/sub"))
	m := store.NewMem()
	require.NotEqual(t, m.ID(), store.NewMem().ID())
	require.NotEqual(t, m.ID(), m.Clone().ID())
	require.Equal(t, m.ID(), m.ID())
}
