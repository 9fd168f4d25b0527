package lance_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/enginetest"
)

// user changes rows as a user of the engine does.
type user struct {
	*lance.Engine
	store store.Store
}

func (u user) Append(ctx context.Context, rec arrow.RecordBatch) error {
	rows := func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rec}, nil) }
	_, err := u.Engine.Append(ctx, rows, table.WriteOptions{MaxRows: uint64(rec.NumRows())})
	return err
}

func (u user) DeleteRows(ctx context.Context, addrs ...table.RowAddr) error {
	_, err := u.Engine.DeleteRows(ctx, addrs...)
	return err
}

// Objects lists what lies in the table's directories, but for the details of
// fragment reuse indexes, whose directories are named by random ids.
func (u user) Objects(ctx context.Context) ([]table.Object, error) {
	var out []table.Object
	for kind, dir := range map[table.ObjectKind]string{
		table.ObjectData: "data", table.ObjectDeletion: "_deletions", table.ObjectTransaction: "_transactions",
	} {
		infos, err := u.store.List(ctx, dir)
		if err != nil {
			return nil, err
		}
		for _, info := range infos {
			out = append(out, table.Object{Kind: kind, Path: dir + "/" + info.Name, Bytes: info.Size})
		}
	}
	return out, nil
}

// conformance runs the suite beside others, once the tests that count goroutines are
// over. Only then are the options made: a session has some.
func conformance(t *testing.T, newStore func(t *testing.T) store.Store, format string, options func() lance.Options) {
	t.Parallel()
	opts := options()
	enginetest.Run(t, enginetest.Config{
		Schema: enginetest.NullVectorSchema(),
		New: func(t *testing.T, schema table.Schema) (table.Engine, enginetest.Ops) {
			s := newStore(t)
			e, err := lance.CreateStore(t.Context(), s, schema.Arrow(), lance.CreateOptions{DataFormat: format}, opts)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, e.Close()) })
			return e, user{e, s}
		},
		OpenNothing: func(t *testing.T) error {
			_, err := lance.OpenStore(t.Context(), newStore(t), lance.Options{})
			return err
		},
		Unrewritable: func(t *testing.T) (table.Engine, enginetest.Ops) {
			s := inMemory(t, "storage_legacy")
			e := openStore(t, s)
			return e, user{e, s}
		},
	})
}

func TestConformanceInMemory(t *testing.T) {
	conformance(t, func(*testing.T) store.Store { return store.NewMem() }, "2.2", func() lance.Options { return lance.Options{} })
}

// All tables of the suite are in one session.
func TestConformanceOnDiskInASession(t *testing.T) {
	conformance(t, func(t *testing.T) store.Store {
		s, err := store.NewLocal(filepath.Join(t.TempDir(), "t.lance"))
		require.NoError(t, err)
		return unsynced{s}
	}, "2.1", func() lance.Options { return lance.Options{Session: newSession(t, lance.SessionOptions{})} })
}

// unsynced flushes nothing but what commits: the suite does not cut the power.
type unsynced struct{ store.Store }

func (u unsynced) Create(ctx context.Context, name string, _ store.WriteOptions) (store.Writer, error) {
	return u.Store.Create(ctx, name, store.WriteOptions{NoSync: true})
}
