package lance_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

func TestCreateRefuses(t *testing.T) {
	m := store.NewMem()
	create := func(s *arrow.Schema, o lance.CreateOptions) error {
		_, err := lance.CreateStore(ctx, m, s, o, lance.Options{})
		return err
	}
	require.ErrorIs(t, create(people, lance.CreateOptions{DataFormat: "2.3"}), table.ErrUnsupported)
	require.Error(t, create(people, lance.CreateOptions{Naming: 3}))
	odd := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "odd", Type: arrow.FixedWidthTypes.MonthInterval}}, nil)
	err := create(odd, lance.CreateOptions{})
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, "odd")
	require.Empty(t, m.Names(), "nothing was written")

	require.NoError(t, create(people, lance.CreateOptions{}))
	names := m.Names()
	require.ErrorIs(t, create(people, lance.CreateOptions{}), store.ErrExists)
	require.Equal(t, names, m.Names())

	_, err = lance.OpenStore(ctx, m, lance.Options{OpenFiles: -1})
	require.Error(t, err)
	_, err = lance.OpenStore(ctx, m, lance.Options{CacheBytes: -1})
	require.Error(t, err)
}

func TestANewTable(t *testing.T) {
	for _, format := range []string{"2.1", "2.2"} {
		for _, naming := range []manifest.Scheme{manifest.V1, manifest.V2} {
			m := store.NewMem()
			e, err := lance.CreateStore(ctx, m, people, lance.CreateOptions{DataFormat: format, Naming: naming}, lance.Options{})
			require.NoError(t, err)
			require.Contains(t, m.Names(), "_versions/"+naming.Name(1))
			s := load(t, e, 0)
			require.Equal(t, format, s.DataFormat)
			require.True(t, people.Equal(s.Schema.Arrow()))
			s, err = e.Append(ctx, rows(0, 12), table.WriteOptions{MaxRows: 5})
			require.NoError(t, err)
			require.Len(t, s.Fragments, 3)
			require.Equal(t, format, s.Fragments[0].Files[0].Format)
			again, err := e.Append(ctx, func(func(table.Batch, error) bool) {}, table.WriteOptions{})
			require.NoError(t, err)
			require.Equal(t, s.Version, again.Version)
			since, err := e.TransactionsSince(ctx, 0, 0)
			require.NoError(t, err)
			require.Equal(t, "overwrite", since[0].Operation.Kind())
			require.Equal(t, "append", since[1].Operation.Kind())
			require.NoError(t, e.Close())
		}
	}
}
