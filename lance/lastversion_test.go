package lance_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// renumber makes the latest version, the only one that stays, one of another number.
func renumber(t *testing.T, m *store.Mem, version uint64) {
	t.Helper()
	c, err := manifest.Decode(read(t, m, latestName(t, m)))
	require.NoError(t, err)
	c.Manifest.Version = version
	data, err := c.Encode()
	require.NoError(t, err)
	for _, name := range m.Names() {
		if strings.HasSuffix(name, ".manifest") {
			require.NoError(t, m.Delete(ctx, name))
		}
	}
	put(t, m, "_versions/"+manifest.V2.Name(version), data)
}

// changesOf are all ways to change a table of numbered rows.
func changesOf(e *lance.Engine) map[string]func() error {
	return map[string]func() error{
		"delete": func() error {
			_, err := dml.Execute(ctx, e, dml.Delete{Where: dml.All()}, dml.Options{})
			return err
		},
		"append": func() error {
			s, err := e.Load(ctx, 0)
			if err != nil {
				return err
			}
			var ids []table.FragmentID
			for _, f := range s.Fragments {
				ids = append(ids, f.ID)
			}
			for b, err := range e.Rows(ctx, s, ids, table.ReadOptions{}) {
				if err != nil {
					return err
				}
				_, err = dml.Execute(ctx, e, dml.Append{Rows: dml.Records(b.Record)}, dml.Options{})
				return err
			}
			return nil
		},
		"compact": func() error {
			_, err := compaction.Compact(ctx, e, compaction.Options{})
			return err
		},
		"reserve": func() error {
			_, err := e.ReserveFragments(ctx, 1)
			return err
		},
	}
}

// TestReport07TheLastVersion: a version after 2^63-1 could never be seen. Every change
// is refused before anything is written; over the one before, every change is
// committed.
func TestReport07TheLastVersion(t *testing.T) {
	for what := range changesOf(nil) {
		m := store.NewMem()
		newTable(t, m, 10, 10)
		renumber(t, m, math.MaxInt64)
		e := openStore(t, m)
		names := m.Names()
		err := changesOf(e)[what]()
		require.ErrorIs(t, err, table.ErrUnsupported, what)
		require.ErrorContains(t, err, "version 9223372036854775807 is the last that a table can have", what)
		require.Equal(t, names, m.Names(), what)

		m = store.NewMem()
		newTable(t, m, 10, 10)
		renumber(t, m, math.MaxInt64-1)
		e = openStore(t, m)
		require.NoError(t, changesOf(e)[what](), what)
		require.EqualValues(t, math.MaxInt64, load(t, e, 0).Version, what)
	}
}

// TestReport07NoFragmentIDsAreLeft: a change that needs new fragments is refused before
// it writes one, where all ids were given out; a delete needs none.
func TestReport07NoFragmentIDsAreLeft(t *testing.T) {
	for what := range changesOf(nil) {
		m := store.NewMem()
		newTable(t, m, 10, 10)
		tamper(t, m, func(c *manifest.Contents) { c.Manifest.MaxFragmentId = proto.Uint32(uint32(table.MaxFragmentID)) })
		e := openStore(t, m)
		names := m.Names()
		err := changesOf(e)[what]()
		if what == "delete" {
			require.NoError(t, err)
			continue
		}
		require.Error(t, err, what)
		require.Equal(t, names, m.Names(), what)
	}
}
