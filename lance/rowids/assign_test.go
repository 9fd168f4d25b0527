package rowids_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/cache"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/rowids"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// What stock engines did in the golden tables' histories, done again: every append,
// update, upsert and compaction must come to the lists that they wrote, and to the
// same mark. Ids are compared byte for byte.
func TestRowListsAreThoseOfStockEngines(t *testing.T) {
	ctx := t.Context()
	seen := map[string]int{}
	for _, g := range testtable.All(t) {
		if g.ReaderFlags&2 == 0 {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			e, err := lance.Open(ctx, g.Dir, lance.Options{})
			require.NoError(t, err)
			defer e.Close()
			dir, err := store.NewLocal(g.Dir)
			require.NoError(t, err)
			root := objects.NewRoot(dir, cache.New(1<<20), 8, nil)
			defer root.Close()
			keeper := rowids.NewKeeper(root, func(ctx context.Context, version uint64) (rowids.TableVersion, error) {
				s, err := e.Load(ctx, version)
				if err != nil {
					return nil, err
				}
				return s.Handle.(rowids.TableVersion), nil
			})
			for n := uint64(2); n <= g.Latest(); n++ {
				base, err := e.Load(ctx, n-1)
				require.NoError(t, err)
				next, err := e.Load(ctx, n)
				require.NoError(t, err)
				since, err := e.TransactionsSince(ctx, n-1, n)
				require.NoError(t, err)
				then, now := base.Handle.(rowids.TableVersion), next.Handle.(rowids.TableVersion)
				messages := rowids.ByID(now)

				p := table.Proposal{Base: base, Transaction: since[0]}
				for _, f := range base.Fragments {
					if _, ok := next.Fragment(f.ID); !ok {
						p.Change.Remove = append(p.Change.Remove, f.ID)
					}
				}
				p.Change.SetDeletion = map[table.FragmentID]*table.DeletionRef{}
				for _, f := range next.Fragments {
					was, ok := base.Fragment(f.ID)
					if ok && !was.Deletion.Same(f.Deletion) {
						p.Change.SetDeletion[f.ID] = f.Deletion
					}
					if ok {
						continue
					}
					if op, ok := since[0].Operation.(table.Rewrite); ok {
						require.Len(t, op.Groups, 1)
						require.Len(t, op.Groups[0].New, 1)
						op.Groups[0].New[0].ID = f.ID // not recorded by older engines
					} else {
						f.Kept = keptRows(t, e, base, next, f)
					}
					p.Change.Add = append(p.Change.Add, f)
				}
				a, err := keeper.Assign(ctx, then, p)
				require.NoError(t, err, "version %d", n)
				require.Equal(t, now.NextRowID(), a.NextFree(), "version %d", n)
				for _, f := range p.Change.Add {
					seen[since[0].Operation.Kind()]++
					m := messages[f.ID]
					got := &tablepb.DataFragment{}
					a.Write(f.ID, got)
					require.Equal(t, m.GetInlineRowIds(), got.GetInlineRowIds(), "version %d fragment %d", n, f.ID)
					want, err := rowids.DecodeVersions(m.GetInlineLastUpdatedAtVersions(), f.PhysicalRows)
					require.NoError(t, err)
					have, err := rowids.DecodeVersions(got.GetInlineLastUpdatedAtVersions(), f.PhysicalRows)
					require.NoError(t, err)
					require.Equal(t, want, have, "version %d fragment %d", n, f.ID)
					want, err = rowids.DecodeVersions(m.GetInlineCreatedAtVersions(), f.PhysicalRows)
					require.NoError(t, err)
					have, err = rowids.DecodeVersions(got.GetInlineCreatedAtVersions(), f.PhysicalRows)
					require.NoError(t, err)
					require.Equal(t, want, have, "version %d fragment %d", n, f.ID)
				}
			}
		})
	}
	require.NotZero(t, seen["append"])
	require.NotZero(t, seen["update"])
	require.NotZero(t, seen["rewrite"])
}

// keptRows are the identities of those rows of a new fragment whose ids were alive
// before.
func keptRows(t *testing.T, e *lance.Engine, base, next *table.Snapshot, f table.Fragment) []table.RowIdentity {
	var addrs []table.RowAddr
	for i := range f.PhysicalRows {
		addrs = append(addrs, table.NewRowAddr(f.ID, uint32(i)))
	}
	identities, err := e.RowIdentities(t.Context(), next, addrs)
	require.NoError(t, err)
	var ids []table.RowID
	for _, x := range identities {
		ids = append(ids, x.ID)
	}
	places, err := e.FindRows(t.Context(), base, ids)
	require.NoError(t, err)
	var kept []table.RowIdentity
	for i, id := range ids {
		at, ok := places[id]
		if !ok {
			require.GreaterOrEqual(t, uint64(id), base.Handle.(rowids.TableVersion).NextRowID())
			continue
		}
		require.Len(t, kept, i, "kept rows come first")
		before, err := e.RowIdentities(t.Context(), base, []table.RowAddr{at})
		require.NoError(t, err)
		kept = append(kept, before[0])
	}
	return kept
}
