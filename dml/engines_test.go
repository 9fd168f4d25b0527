package dml_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// taking is an engine that gets at single rows, by reading their fragments.
type taking struct{ *memengine.Engine }

// Take implements table.RowTaker. A version of the fragment without deletions has the
// rows that are deleted, too.
func (e taking) Take(ctx context.Context, s *table.Snapshot, addrs []table.RowAddr, columns []string) iter.Seq2[table.Batch, error] {
	return func(yield func(table.Batch, error) bool) {
		if !slices.IsSorted(addrs) {
			yield(table.Batch{}, fmt.Errorf("addresses do not ascend: %v", addrs))
			return
		}
		whole := *s
		whole.Fragments = slices.Clone(s.Fragments)
		for i := range whole.Fragments {
			whole.Fragments[i].Deletion = nil
		}
		for len(addrs) > 0 {
			id := addrs[0].Fragment()
			n := 0
			for n < len(addrs) && addrs[n].Fragment() == id {
				n++
			}
			for b, err := range e.Rows(ctx, &whole, []table.FragmentID{id}, table.ReadOptions{Columns: columns, BatchRows: 1 << 20}) {
				if err != nil {
					yield(b, err)
					return
				}
				var rows []int
				for _, a := range addrs[:n] {
					rows = append(rows, int(a.Offset()))
				}
				rec, err := gather.Record(memory.DefaultAllocator, b.Record, gather.Runs(rows))
				if !yield(table.Batch{Record: rec, Addrs: addrs[:n]}, err) {
					return
				}
			}
			addrs = addrs[n:]
		}
	}
}

// naming is an engine whose rows have ids that they keep: a fragment's rows have
// those that came with it, and new ones after them.
type naming struct {
	*memengine.Engine
	mu   *sync.Mutex
	ids  map[table.FragmentID][]table.RowIdentity
	next *uint64
}

func newNaming(e *memengine.Engine) naming {
	return naming{e, &sync.Mutex{}, map[table.FragmentID][]table.RowIdentity{}, new(uint64)}
}

func (e naming) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	return named(e.Engine.Load(ctx, version))
}

func named(s *table.Snapshot, err error) (*table.Snapshot, error) {
	if err != nil {
		return nil, err
	}
	out := *s
	out.StableRowIDs = true
	return &out, nil
}

func (e naming) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	s, err := named(e.Engine.Commit(ctx, p))
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range p.Change.Add {
		ids := slices.Clone(f.Kept)
		for uint64(len(ids)) < f.PhysicalRows {
			*e.next++
			ids = append(ids, table.RowIdentity{ID: table.RowID(1000 + *e.next), CreatedAt: s.Version})
		}
		e.ids[f.ID] = ids
	}
	return s, nil
}

func (e naming) RowIdentities(_ context.Context, s *table.Snapshot, addrs []table.RowAddr) ([]table.RowIdentity, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var out []table.RowIdentity
	for _, a := range addrs {
		ids := e.ids[a.Fragment()]
		if int(a.Offset()) >= len(ids) {
			return nil, fmt.Errorf("no row %s in version %d: %w", a, s.Version, table.ErrNotFound)
		}
		out = append(out, ids[a.Offset()])
	}
	return out, nil
}

func (e naming) FindRows(context.Context, *table.Snapshot, []table.RowID) (map[table.RowID]table.RowAddr, error) {
	return nil, table.Unsupportedf("not in these tests")
}
