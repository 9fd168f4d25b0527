package store

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRenameNoReplaceRefusesToReplace(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	require.NoError(t, os.WriteFile(a, []byte("a"), 0o600))
	require.NoError(t, os.WriteFile(b, []byte("b"), 0o600))
	err := renameNoReplace(a, b)
	require.ErrorIs(t, err, fs.ErrExist)
	got, err := os.ReadFile(b)
	require.NoError(t, err)
	require.Equal(t, "b", string(got))
	require.NoError(t, renameNoReplace(a, filepath.Join(dir, "c")))
	require.NoFileExists(t, a)
}

func TestLinkErrorsThatMeanNoHardLinks(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.ENOSYS, syscall.EOPNOTSUPP} {
		require.True(t, linkUnsupported(&os.LinkError{Op: "link", Err: errno}))
	}
	for _, errno := range []syscall.Errno{syscall.EEXIST, syscall.ENOSPC, syscall.EIO, syscall.EACCES} {
		require.False(t, linkUnsupported(&os.LinkError{Op: "link", Err: errno}))
	}
}

// A file server may do the link, lose its answer, and call the repetition a
// failure; the second name is what counts.
func TestPublishBelievesTheLinkCount(t *testing.T) {
	dir := t.TempDir()
	temp, p := filepath.Join(dir, "temp"), filepath.Join(dir, "p")
	require.NoError(t, os.WriteFile(temp, []byte("x"), 0o600))
	require.NoError(t, os.Link(temp, p)) // the link whose answer was lost
	moved, err := publish(temp, p)
	require.NoError(t, err)
	require.False(t, moved)

	require.NoError(t, os.Remove(temp))
	require.NoError(t, os.WriteFile(temp, []byte("y"), 0o600))
	_, err = publish(temp, p)
	require.ErrorIs(t, err, fs.ErrExist)
}
