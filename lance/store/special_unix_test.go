//go:build unix

package store_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// What lies under an object's name and is no file is said, by readers and writers, and
// nobody waits for it.
func TestReport11WhatIsNoFileIsNamed(t *testing.T) {
	for _, c := range []struct {
		is   string
		make func(t *testing.T, p string)
	}{
		{"a directory", func(t *testing.T, p string) { require.NoError(t, os.Mkdir(p, 0o755)) }},
		{"a FIFO", func(t *testing.T, p string) { require.NoError(t, syscall.Mkfifo(p, 0o644)) }},
		{"a socket", func(t *testing.T, p string) {
			l, err := net.Listen("unix", p)
			require.NoError(t, err)
			t.Cleanup(func() { l.Close() })
		}},
		{"a symbolic link that leads to no file", func(t *testing.T, p string) { require.NoError(t, os.Symlink("nowhere", p)) }},
		{"a symbolic link that leads to no file", func(t *testing.T, p string) { require.NoError(t, os.Symlink(filepath.Base(p), p)) }},
	} {
		t.Run(c.is, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "s") // a socket's path has to be short
			require.NoError(t, err)
			t.Cleanup(func() { os.RemoveAll(dir) })
			l, err := store.NewLocal(dir)
			require.NoError(t, err)
			require.NoError(t, l.PutIfAbsent(t.Context(), "d/object", []byte("x")))
			c.make(t, filepath.Join(dir, "d", "x"))

			_, err = l.Open(t.Context(), "d/x")
			require.ErrorIs(t, err, table.ErrNotFound)
			require.ErrorContains(t, err, c.is)
			err = l.PutIfAbsent(t.Context(), "d/x", []byte("x"))
			require.ErrorContains(t, err, c.is)
			require.NotErrorIs(t, err, store.ErrExists, "a writer would try again for ever")

			infos, err := l.List(t.Context(), "d")
			require.NoError(t, err)
			require.Len(t, infos, 1)
		})
	}
}

// A name that is not UTF-8, or a link that leads nowhere, does not stop a listing.
func TestReport11ListingsGoOnPastStrangeNames(t *testing.T) {
	dir := t.TempDir()
	l, err := store.NewLocal(dir)
	require.NoError(t, err)
	require.NoError(t, l.PutIfAbsent(t.Context(), "d/e/object", []byte("x")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "d", "\xff\xfe"), []byte("abc"), 0o644))
	require.NoError(t, os.Symlink("loop", filepath.Join(dir, "d", "loop")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "d", "fifo"), 0o644))
	infos, err := l.ListAll(t.Context(), "d")
	require.NoError(t, err)
	var names []string
	for _, info := range infos {
		names = append(names, info.Name)
	}
	require.ElementsMatch(t, []string{"e/object", "\xff\xfe"}, names)
	infos, err = l.List(t.Context(), "d")
	require.NoError(t, err)
	require.Len(t, infos, 1)
}
