package datafile

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// Metadata that was read once serves any open file with the same bytes, of which it
// reads nothing but pages.
func TestMetadataServesOtherReaders(t *testing.T) {
	for _, path := range golden(t, "*") {
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		first, err := Open(t.Context(), readat.Bytes(raw), int64(len(raw)), path)
		if errors.Is(err, table.ErrUnsupported) {
			continue
		}
		require.NoError(t, err)
		m := first.Metadata()
		require.Positive(t, m.Bytes())
		first.r = readat.Bytes(nil) // whoever still reads there fails

		pages := &counting{ReaderAt: readat.Bytes(raw)}
		f := m.Open(pages)
		require.Zero(t, pages.n.Load())
		require.Equal(t, first.Rows(), f.Rows())
		require.Equal(t, first.Size(), f.Size())
		require.Equal(t, first.Schema(), f.Schema())
		require.Equal(t, first.NumColumns(), f.NumColumns())
		again, err := Open(t.Context(), readat.Bytes(raw), int64(len(raw)), path)
		require.NoError(t, err)
		require.Equal(t, readAll(again) == nil, readAll(f) == nil)
		for i := range f.NumColumns() {
			_, err := f.Column(i)
			require.NoError(t, err)
		}
	}
}
