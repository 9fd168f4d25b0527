package memengine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/table"
)

// Append commits the rows of rec, which has the table's columns, as one new
// fragment.
func (e *Engine) Append(ctx context.Context, rec arrow.RecordBatch) error {
	base, err := e.Load(ctx, 0)
	if err != nil {
		return err
	}
	rows := func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rec}, nil) }
	out, err := e.WriteFragments(ctx, base.Schema, rows, table.WriteOptions{MaxRows: uint64(rec.NumRows())})
	if err == nil {
		// The rows are written once. Ids are what each attempt gives anew.
		err = e.retry(ctx, func(base *table.Snapshot) (attempt, error) {
			var added []table.Fragment
			for i, f := range out.Fragments {
				id := base.NextFragmentID + table.FragmentID(i)
				added = append(added, table.Fragment{ID: id, PhysicalRows: f.PhysicalRows, Files: f.Files})
			}
			return attempt{operation: table.Append{Fragments: added}, change: table.Change{Add: added}}, nil
		})
	}
	if err != nil {
		return errors.Join(err, e.discard(ctx, out.Objects))
	}
	return nil
}

// DeleteRows commits the deletion of the rows at the given addresses. Deleting a
// row twice is no error. A fragment without a live row left is removed. A row in
// a fragment that is not there, because it was removed or compacted away, is a
// conflict, and nothing is deleted then.
func (e *Engine) DeleteRows(ctx context.Context, addrs ...table.RowAddr) error {
	return e.retry(ctx, func(base *table.Snapshot) (a attempt, err error) {
		var op table.Delete
		a.change.SetDeletion = map[table.FragmentID]*table.DeletionRef{}
		for id, offsets := range byFragment(addrs) {
			f, ok := base.Fragment(id)
			if !ok {
				return a, table.Conflictf("memengine: table %s version %d has no fragment %d to delete rows of", e.name, base.Version, id)
			}
			all, err := e.addDeletions(f, offsets)
			if err != nil {
				return a, err
			}
			if all.Cardinality() == f.PhysicalRows {
				a.change.Remove = append(a.change.Remove, id)
				op.Removed = append(op.Removed, id)
				continue
			}
			ref, err := e.WriteDeletions(ctx, id, base.Version, all)
			if err != nil {
				return a, err
			}
			a.wrote = append(a.wrote, table.Object{Kind: table.ObjectDeletion, Path: ref.Path})
			f.Deletion = &ref
			a.change.SetDeletion[id] = &ref
			op.Updated = append(op.Updated, f)
		}
		a.operation = op
		return a, nil
	})
}

func byFragment(addrs []table.RowAddr) map[table.FragmentID][]uint32 {
	out := map[table.FragmentID][]uint32{}
	for _, a := range addrs {
		out[a.Fragment()] = append(out[a.Fragment()], a.Offset())
	}
	return out
}

// AddIndex commits an index segment and returns its id, which it makes if meta
// has none. The index is nothing but its metadata: that is all that compaction
// looks at.
func (e *Engine) AddIndex(ctx context.Context, meta table.IndexMeta) (table.UUID, error) {
	if err := ctx.Err(); err != nil {
		return table.UUID{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	head := e.head()
	if meta.UUID == (table.UUID{}) {
		meta.UUID = uuid(head.Version + 1)
	}
	meta.Coverage = slices.Sorted(slices.Values(meta.Coverage))
	next := *head
	next.Indexes = append(slices.Clone(head.Indexes), meta)
	e.publish(&next, table.Transaction{ID: rand.Text(), ReadVersion: head.Version, Operation: table.CreateIndex{New: []table.IndexMeta{meta}}})
	return meta.UUID, nil
}

// uuid makes an id that is unique in the table: a commit makes at most one.
func uuid(version uint64) (u table.UUID) {
	binary.BigEndian.PutUint64(u[8:], version)
	return u
}

// attempt is one try at a commit, made for one base version.
type attempt struct {
	operation table.Operation
	change    table.Change
	wrote     []table.Object // for this try only: discarded if it fails
}

// retry commits what propose makes of the latest version, and does it again as
// long as another writer is faster.
func (e *Engine) retry(ctx context.Context, propose func(base *table.Snapshot) (attempt, error)) error {
	id := rand.Text()
	for {
		base, err := e.Load(ctx, 0)
		if err != nil {
			return err
		}
		a, err := propose(base)
		if err == nil {
			_, err = e.Commit(ctx, table.Proposal{
				Base:        base,
				Transaction: table.Transaction{ID: id, ReadVersion: base.Version, Operation: a.operation},
				Change:      a.change,
			})
		}
		if err == nil {
			return nil
		}
		if cleanup := e.discard(ctx, a.wrote); cleanup != nil || !errors.Is(err, table.ErrVersionTaken) {
			return errors.Join(fmt.Errorf("memengine: change of table %s: %w", e.name, err), cleanup)
		}
	}
}

// discard deletes what a failed attempt wrote, also when ctx is done already.
func (e *Engine) discard(ctx context.Context, objects []table.Object) error {
	var errs []error
	for _, o := range objects {
		errs = append(errs, e.Delete(context.WithoutCancel(ctx), o))
	}
	return errors.Join(errs...)
}
