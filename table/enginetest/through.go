package enginetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// ThroughEngine returns Ops that change rows with nothing but the methods of
// table.Engine, for an engine that has no other way in its package.
func ThroughEngine(e table.Engine) Ops { return throughEngine{e} }

type throughEngine struct{ engine table.Engine }

// Append implements Ops. The rows are written again at each attempt: this is a
// tool for tests, and simple.
func (o throughEngine) Append(ctx context.Context, rec arrow.RecordBatch) error {
	rows := func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rec}, nil) }
	return o.retry(ctx, func(base *table.Snapshot) (table.Operation, table.Change, []table.Object, error) {
		out, err := o.engine.WriteFragments(ctx, base.Schema, rows, table.WriteOptions{MaxRows: uint64(rec.NumRows())})
		added := place(base, out.Fragments)
		return table.Append{Fragments: added}, table.Change{Add: added}, out.Objects, err
	})
}

// DeleteRows implements Ops. It keeps a fragment whose last row it deletes.
func (o throughEngine) DeleteRows(ctx context.Context, addrs ...table.RowAddr) error {
	return o.retry(ctx, func(base *table.Snapshot) (table.Operation, table.Change, []table.Object, error) {
		var op table.Delete
		var wrote []table.Object
		change := table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{}}
		byFragment := map[table.FragmentID][]uint32{}
		for _, a := range addrs {
			byFragment[a.Fragment()] = append(byFragment[a.Fragment()], a.Offset())
		}
		for id, offsets := range byFragment {
			f, ok := base.Fragment(id)
			if !ok {
				return nil, change, wrote, table.Conflictf("enginetest: version %d has no fragment %d to delete rows of", base.Version, id)
			}
			old, err := o.engine.ReadDeletions(ctx, base, f)
			if err != nil {
				return nil, change, wrote, err
			}
			all := deletion.Collect(old.All()).Union(deletion.Of(offsets...))
			ref, err := o.engine.WriteDeletions(ctx, id, base.Version, all)
			if err != nil {
				return nil, change, wrote, err
			}
			wrote = append(wrote, table.Object{Kind: table.ObjectDeletion, Path: ref.Path})
			f.Deletion = &ref
			change.SetDeletion[id] = &ref
			op.Updated = append(op.Updated, f)
		}
		return op, change, wrote, nil
	})
}

func (o throughEngine) retry(ctx context.Context, propose func(base *table.Snapshot) (table.Operation, table.Change, []table.Object, error)) error {
	id := newID()
	for {
		base, err := o.engine.Load(ctx, 0)
		if err != nil {
			return err
		}
		op, change, wrote, err := propose(base)
		if err == nil {
			_, err = o.engine.Commit(ctx, table.Proposal{
				Base:        base,
				Transaction: table.Transaction{ID: id, ReadVersion: base.Version, Operation: op},
				Change:      change,
			})
		}
		if err == nil {
			return nil
		}
		for _, w := range wrote {
			err = errors.Join(err, o.engine.Delete(ctx, w))
		}
		if !errors.Is(err, table.ErrVersionTaken) {
			return fmt.Errorf("enginetest: %w", err)
		}
	}
}
