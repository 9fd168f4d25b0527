package lance_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

func TestATableOfSchemesSaysWhichStoreALocationIsIn(t *testing.T) {
	m := store.NewMem()
	schemes := store.LocalSchemes()
	schemes["mem"] = func(location string) (store.Store, error) {
		require.Equal(t, "MEM://here/t.lance", location)
		return m, nil
	}
	e, err := lance.Create(t.Context(), "MEM://here/t.lance", people, lance.CreateOptions{}, lance.Options{Schemes: schemes})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	e, err = lance.Open(t.Context(), "MEM://here/t.lance", lance.Options{Schemes: schemes})
	require.NoError(t, err)
	require.NoError(t, e.Close())

	_, err = lance.Open(t.Context(), "s3://bucket/t.lance", lance.Options{Schemes: schemes})
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, "s3://bucket/t.lance: this program knows no store for s3://, only file://, mem:// (a path is file://)")
	_, err = lance.Open(t.Context(), "mem://here/t.lance", lance.Options{})
	require.ErrorContains(t, err, "no store for mem://, only file://", "nothing is registered by another's table")
}
