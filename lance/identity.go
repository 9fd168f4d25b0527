package lance

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/rehome-db/rehome/deletion"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/rowids"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// What rows of a table with stable row ids are known by: the ids themselves, and the
// versions that created and last updated them. The format keeps all of it in the
// fragment's entry in the manifest or, as it allows and no stock engine does, in a
// file. Such files are read and never written.

// maxIdentityBytes bounds what is read of such a file: 2^32 ids of 8 bytes are more,
// but then the fragment's entry would be the smallest of the problems.
const maxIdentityBytes = 1 << 31

// firstVersion is what a row was created in if nothing says otherwise.
const firstVersion = 1

// sequences are the row ids of a version's fragments, decoded when they are needed.
type sequences struct {
	mu sync.Mutex
	by map[uint64]*rowids.Sequence
}

// sequence returns the row ids of a fragment of v.
func (e *Engine) sequence(ctx context.Context, v *version, f *tablepb.DataFragment) (*rowids.Sequence, error) {
	v.rowIDs.mu.Lock()
	s, ok := v.rowIDs.by[f.GetId()]
	v.rowIDs.mu.Unlock()
	if ok {
		return s, nil
	}
	s, err := e.readSequence(ctx, f)
	if err != nil {
		return nil, err
	}
	v.rowIDs.mu.Lock()
	defer v.rowIDs.mu.Unlock()
	if v.rowIDs.by == nil {
		v.rowIDs.by = map[uint64]*rowids.Sequence{}
	}
	v.rowIDs.by[f.GetId()] = s
	return s, nil
}

func (e *Engine) readSequence(ctx context.Context, f *tablepb.DataFragment) (*rowids.Sequence, error) {
	var data []byte
	switch at := f.GetRowIdSequence().(type) {
	case *tablepb.DataFragment_InlineRowIds:
		data = at.InlineRowIds
	case *tablepb.DataFragment_ExternalRowIds:
		var err error
		if data, err = e.readExternal(ctx, at.ExternalRowIds); err != nil {
			return nil, fmt.Errorf("row ids: %w", err)
		}
	default:
		return nil, table.Corruptf("the table has stable row ids and this fragment has none")
	}
	s, err := rowids.Decode(data, f.GetPhysicalRows())
	if err != nil {
		return nil, fmt.Errorf("row ids: %w", err)
	}
	return s, nil
}

// createdAt returns the versions that created the rows of a fragment.
func (e *Engine) createdAt(ctx context.Context, f *tablepb.DataFragment) (*rowids.Versions, error) {
	switch at := f.GetCreatedAtVersionSequence().(type) {
	case *tablepb.DataFragment_InlineCreatedAtVersions:
		return e.readVersions(ctx, f, at.InlineCreatedAtVersions, nil)
	case *tablepb.DataFragment_ExternalCreatedAtVersions:
		return e.readVersions(ctx, f, nil, at.ExternalCreatedAtVersions)
	}
	return rowids.Uniform(f.GetPhysicalRows(), firstVersion), nil
}

// lastUpdatedAt returns the versions that last updated the rows of a fragment.
func (e *Engine) lastUpdatedAt(ctx context.Context, f *tablepb.DataFragment) (*rowids.Versions, error) {
	switch at := f.GetLastUpdatedAtVersionSequence().(type) {
	case *tablepb.DataFragment_InlineLastUpdatedAtVersions:
		return e.readVersions(ctx, f, at.InlineLastUpdatedAtVersions, nil)
	case *tablepb.DataFragment_ExternalLastUpdatedAtVersions:
		return e.readVersions(ctx, f, nil, at.ExternalLastUpdatedAtVersions)
	}
	return e.createdAt(ctx, f)
}

func (e *Engine) readVersions(ctx context.Context, f *tablepb.DataFragment, inline []byte, external *tablepb.ExternalFile) (*rowids.Versions, error) {
	var err error
	if external != nil {
		inline, err = e.readExternal(ctx, external)
	}
	var v *rowids.Versions
	if err == nil {
		v, err = rowids.DecodeVersions(inline, f.GetPhysicalRows())
	}
	if err != nil {
		return nil, fmt.Errorf("row versions: %w", err)
	}
	return v, nil
}

// readExternal reads a part of a file that a fragment's entry refers to.
func (e *Engine) readExternal(ctx context.Context, x *tablepb.ExternalFile) ([]byte, error) {
	if err := store.CheckName(x.GetPath()); err != nil {
		return nil, table.Corruptf("%w", err)
	}
	f, err := e.root.Store.Open(ctx, x.GetPath())
	if err != nil {
		return nil, objects.Missing(err)
	}
	defer func() { _ = f.Close() }()
	size := uint64(f.Size())
	switch {
	case x.GetSize() > size || x.GetOffset() > size-x.GetSize():
		return nil, table.Corruptf("file %s has %d bytes, and %d are to be read at %d", x.GetPath(), size, x.GetSize(), x.GetOffset())
	case x.GetSize() > maxIdentityBytes:
		return nil, table.Unsupportedf("file %s: a part of %d bytes is too large", x.GetPath(), x.GetSize())
	}
	data, err := readat.All(ctx, f, x.GetOffset(), x.GetSize())
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", x.GetPath(), err)
	}
	return data, nil
}

// identified returns the handle of a snapshot whose rows have stable ids.
func (e *Engine) identified(ctx context.Context, s *table.Snapshot) (*version, map[table.FragmentID]*tablepb.DataFragment, error) {
	if err := e.root.Ready(ctx); err != nil {
		return nil, nil, err
	}
	v, err := versionOf(s)
	if err != nil {
		return nil, nil, err
	}
	if !s.StableRowIDs {
		return nil, nil, table.Unsupportedf("lance: table %s version %d has no stable row ids", e.root.Store, s.Version)
	}
	return v, v.fragments(), nil
}

// fragments are the messages of the version's fragments.
func (v *version) fragments() map[table.FragmentID]*tablepb.DataFragment {
	list := v.contents.Manifest.GetFragments()
	out := make(map[table.FragmentID]*tablepb.DataFragment, len(list))
	for _, f := range list {
		out[table.FragmentID(f.GetId())] = f
	}
	return out
}

// RowIdentities implements table.RowIdentifier. The row ids of the fragments that
// addrs are in are decoded once for a snapshot.
func (e *Engine) RowIdentities(ctx context.Context, s *table.Snapshot, addrs []table.RowAddr) ([]table.RowIdentity, error) {
	v, messages, err := e.identified(ctx, s)
	if err != nil {
		return nil, err
	}
	byFragment := map[table.FragmentID][]int{}
	for i, a := range addrs {
		byFragment[a.Fragment()] = append(byFragment[a.Fragment()], i)
	}
	out := make([]table.RowIdentity, len(addrs))
	for id, indexes := range byFragment {
		err := e.identities(ctx, v, messages[id], addrs, indexes, out)
		if err != nil {
			return nil, fmt.Errorf("lance: table %s version %d: fragment %d: %w", e.root.Store, s.Version, id, err)
		}
	}
	return out, nil
}

// identities fills in those of out that are in the fragment.
func (e *Engine) identities(ctx context.Context, v *version, f *tablepb.DataFragment, addrs []table.RowAddr, indexes []int, out []table.RowIdentity) error {
	if f == nil {
		return fmt.Errorf("there is no row at %s: %w", addrs[indexes[0]], table.ErrNotFound)
	}
	ids, err := e.sequence(ctx, v, f)
	if err != nil {
		return err
	}
	created, err := e.createdAt(ctx, f)
	if err != nil {
		return err
	}
	for _, i := range indexes {
		offset := uint64(addrs[i].Offset())
		id, ok := ids.At(offset)
		if !ok {
			return fmt.Errorf("there is no row at %s: %w", addrs[i], table.ErrNotFound)
		}
		at, _ := created.At(offset) // as many as there are ids
		out[i] = table.RowIdentity{ID: id, CreatedAt: at}
	}
	return nil
}

// FindRows implements table.RowIdentifier. It looks at the row ids of all fragments
// and at the deletion vectors of those that have some of the ids. That two live rows
// have the same id is ErrCorrupt.
func (e *Engine) FindRows(ctx context.Context, s *table.Snapshot, ids []table.RowID) (map[table.RowID]table.RowAddr, error) {
	v, _, err := e.identified(ctx, s)
	if err != nil {
		return nil, err
	}
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	out := make(map[table.RowID]table.RowAddr, len(ids))
	for i, f := range v.contents.Manifest.GetFragments() {
		err := e.findIn(ctx, v, f, s.Fragments[i], ids, out)
		if err != nil {
			return nil, fmt.Errorf("lance: table %s version %d: fragment %d: %w", e.root.Store, s.Version, f.GetId(), err)
		}
	}
	return out, nil
}

// findIn adds the live rows of a fragment, which is given in both its terms.
func (e *Engine) findIn(ctx context.Context, v *version, m *tablepb.DataFragment, f table.Fragment, ids []table.RowID, out map[table.RowID]table.RowAddr) error {
	seq, err := e.sequence(ctx, v, m)
	if err != nil {
		return err
	}
	var gone *deletion.Vector
	for i, position := range seq.Find(ids) {
		if gone == nil { // read for the first hit only
			if gone, err = e.root.Deletions(ctx, f); err != nil {
				return err
			}
		}
		if gone.Contains(uint32(position)) {
			continue
		}
		addr := table.NewRowAddr(f.ID, uint32(position))
		if other, twice := out[ids[i]]; twice {
			return table.Corruptf("two live rows, at %s and %s, have the row id %d", other, addr, ids[i])
		}
		out[ids[i]] = addr
	}
	return nil
}

var _ table.RowIdentifier = (*Engine)(nil)
