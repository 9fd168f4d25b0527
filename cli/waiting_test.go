//go:build unix

package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Waiting for rows ends with the context, wherever they were to come from.
func TestReport11WaitingForRowsEnds(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	a := newApp(Options{})
	_, err := a.openRows(soon(), fifo)
	require.ErrorIs(t, err, context.DeadlineExceeded, "nobody writes")

	w, err := os.OpenFile(fifo, os.O_RDWR, 0)
	require.NoError(t, err)
	defer w.Close()
	r, err := a.openRows(soon(), fifo)
	require.NoError(t, err)
	_, err = r.in.ReadByte()
	require.ErrorIs(t, err, context.DeadlineExceeded, "who writes says nothing")
	r.close()

	in, out := io.Pipe()
	defer out.Close()
	a.Stdin = in
	r, err = a.openRows(soon(), "-")
	require.NoError(t, err)
	_, err = r.in.ReadByte()
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// What is written to a FIFO arrives whole, and a device without an end is refused.
func TestReport11RowsFromAFIFOAndADevice(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	want := bytes.Repeat([]byte("0123456789"), 50_000)
	go func() { _ = os.WriteFile(fifo, want, 0) }()
	a := newApp(Options{})
	r, err := a.openRows(t.Context(), fifo)
	require.NoError(t, err)
	defer r.close()
	got, err := io.ReadAll(r.in)
	require.NoError(t, err)
	require.Equal(t, want, got)

	zero, err := a.openRows(t.Context(), "/dev/zero")
	require.NoError(t, err)
	defer zero.close()
	_, err = zero.open(nil)
	require.ErrorContains(t, err, "zero byte")
}
