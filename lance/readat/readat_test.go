package readat_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// scripted answers every read in one way.
type scripted func(p []byte) (int, error)

func (s scripted) ReadAt(_ context.Context, p []byte, _ int64) (int, error) { return s(p) }

func TestFullTellsAShortFileFromAFailedRead(t *testing.T) {
	ctx, own := t.Context(), errors.New("the network is gone")
	for name, c := range map[string]struct {
		n    int
		err  error
		want error
	}{
		"all":                   {4, nil, nil},
		"all, and the end":      {4, io.EOF, nil},
		"less, and the end":     {3, io.EOF, table.ErrCorrupt},
		"less without a reason": {3, nil, table.ErrCorrupt},
		"less, and a reason":    {3, own, own},
	} {
		err := readat.Full(ctx, scripted(func([]byte) (int, error) { return c.n, c.err }), make([]byte, 4), 10)
		require.ErrorIs(t, err, c.want, name)
		if c.want == own {
			require.NotErrorIs(t, err, table.ErrCorrupt)
		}
	}
	require.EqualError(t, readat.Full(ctx, readat.Bytes(make([]byte, 12)), make([]byte, 4), 10),
		table.Corruptf("the file ends at 12, within 4 bytes at 10").Error())
}

func TestAllDoesNotBelieveALength(t *testing.T) {
	got, err := readat.All(t.Context(), readat.Bytes([]byte("0123456789")), 2, 5)
	require.NoError(t, err)
	require.Equal(t, "23456", string(got))
	var asked int
	_, err = readat.All(t.Context(), scripted(func(p []byte) (int, error) { asked += len(p); return 0, io.EOF }), 0, 1<<50)
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.LessOrEqual(t, asked, 64<<20)
}

func TestReadsEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	hangs := scripted(func([]byte) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
	cancel()
	_, err := io.ReadAll(readat.Section(ctx, hangs, 0, 3))
	require.ErrorIs(t, err, context.Canceled)
	_, err = io.ReadAll(readat.Section(ctx, readat.Bytes([]byte("abc")), 0, 3))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, readat.Full(ctx, readat.Bytes([]byte("abc")), make([]byte, 0), 0), context.Canceled)
}
