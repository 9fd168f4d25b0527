package rowids

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/rehome-db/rehome/deletion"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// The identities of rows in a table with stable row ids: the ids themselves, and the
// versions that created and last updated the rows. The format keeps them in the
// fragment's entry in the manifest or, though no stock engine does, in a file. This
// package reads such files and never writes them.

// maxIdentityBytes bounds what is read of such a file: 2^32 ids of 8 bytes are more,
// but then the fragment's entry would be the smallest of the problems.
const maxIdentityBytes = 1 << 31

// firstVersion is the version that created a row without a recorded one.
const firstVersion = 1

// TableVersion is the part of a table version that identifies its rows.
type TableVersion interface {
	// Messages are the fragments, as the manifest describes them, in its order.
	Messages() []*tablepb.DataFragment
	// Fragment puts one of them into the terms of package table.
	Fragment(m *tablepb.DataFragment) table.Fragment
	// RowIDs are the sequences that were decoded of this version.
	RowIDs() *Sequences
	// NextRowID is the lowest row id that was not given out.
	NextRowID() uint64
}

// ByID are the messages of the version's fragments.
func ByID(v TableVersion) map[table.FragmentID]*tablepb.DataFragment {
	list := v.Messages()
	out := make(map[table.FragmentID]*tablepb.DataFragment, len(list))
	for _, f := range list {
		out[table.FragmentID(f.GetId())] = f
	}
	return out
}

// Keeper looks up the identities of the rows of one table, and assigns ids to new rows.
// It is safe for concurrent use.
type Keeper struct {
	root *objects.Root
	// load returns a version of the table, table.ErrNotFound if it is gone.
	load  func(ctx context.Context, version uint64) (TableVersion, error)
	moved movedRows
}

// NewKeeper returns the keeper of a table, whose versions are loaded by load.
func NewKeeper(r *objects.Root, load func(ctx context.Context, version uint64) (TableVersion, error)) *Keeper {
	return &Keeper{root: r, load: load}
}

// Sequences are the row ids of a version's fragments, decoded when they are needed.
type Sequences struct {
	mu sync.Mutex
	by map[uint64]*Sequence
}

// Sequence returns the row ids of a fragment of v.
func (k *Keeper) Sequence(ctx context.Context, v TableVersion, f *tablepb.DataFragment) (*Sequence, error) {
	known := v.RowIDs()
	known.mu.Lock()
	s, ok := known.by[f.GetId()]
	known.mu.Unlock()
	if ok {
		return s, nil
	}
	s, err := k.readSequence(ctx, f)
	if err != nil {
		return nil, err
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.by == nil {
		known.by = map[uint64]*Sequence{}
	}
	known.by[f.GetId()] = s
	return s, nil
}

func (k *Keeper) readSequence(ctx context.Context, f *tablepb.DataFragment) (*Sequence, error) {
	var data []byte
	switch at := f.GetRowIdSequence().(type) {
	case *tablepb.DataFragment_InlineRowIds:
		data = at.InlineRowIds
	case *tablepb.DataFragment_ExternalRowIds:
		var err error
		if data, err = k.readExternal(ctx, at.ExternalRowIds); err != nil {
			return nil, fmt.Errorf("row ids: %w", err)
		}
	default:
		return nil, table.Corruptf("the table has stable row ids and this fragment has none")
	}
	s, err := Decode(data, f.GetPhysicalRows())
	if err != nil {
		return nil, fmt.Errorf("row ids: %w", err)
	}
	return s, nil
}

// CreatedAt returns the versions that created the rows of a fragment.
func (k *Keeper) CreatedAt(ctx context.Context, f *tablepb.DataFragment) (*Versions, error) {
	switch at := f.GetCreatedAtVersionSequence().(type) {
	case *tablepb.DataFragment_InlineCreatedAtVersions:
		return k.readVersions(ctx, f, at.InlineCreatedAtVersions, nil)
	case *tablepb.DataFragment_ExternalCreatedAtVersions:
		return k.readVersions(ctx, f, nil, at.ExternalCreatedAtVersions)
	}
	return Uniform(f.GetPhysicalRows(), firstVersion), nil
}

// LastUpdatedAt returns the versions that last updated the rows of a fragment.
func (k *Keeper) LastUpdatedAt(ctx context.Context, f *tablepb.DataFragment) (*Versions, error) {
	switch at := f.GetLastUpdatedAtVersionSequence().(type) {
	case *tablepb.DataFragment_InlineLastUpdatedAtVersions:
		return k.readVersions(ctx, f, at.InlineLastUpdatedAtVersions, nil)
	case *tablepb.DataFragment_ExternalLastUpdatedAtVersions:
		return k.readVersions(ctx, f, nil, at.ExternalLastUpdatedAtVersions)
	}
	return k.CreatedAt(ctx, f)
}

func (k *Keeper) readVersions(ctx context.Context, f *tablepb.DataFragment, inline []byte, external *tablepb.ExternalFile) (*Versions, error) {
	var err error
	if external != nil {
		inline, err = k.readExternal(ctx, external)
	}
	var v *Versions
	if err == nil {
		v, err = DecodeVersions(inline, f.GetPhysicalRows())
	}
	if err != nil {
		return nil, fmt.Errorf("row versions: %w", err)
	}
	return v, nil
}

// readExternal reads a part of a file that a fragment's entry refers to.
func (k *Keeper) readExternal(ctx context.Context, x *tablepb.ExternalFile) ([]byte, error) {
	if err := store.CheckName(x.GetPath()); err != nil {
		return nil, table.Corruptf("%w", err)
	}
	f, err := k.root.Store.Open(ctx, x.GetPath())
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

// Identities returns the identities of the rows at addrs in a version. An address without
// a row is table.ErrNotFound.
func (k *Keeper) Identities(ctx context.Context, s *table.Snapshot, v TableVersion, addrs []table.RowAddr) ([]table.RowIdentity, error) {
	messages := ByID(v)
	byFragment := map[table.FragmentID][]int{}
	for i, a := range addrs {
		byFragment[a.Fragment()] = append(byFragment[a.Fragment()], i)
	}
	out := make([]table.RowIdentity, len(addrs))
	for id, indexes := range byFragment {
		err := k.identitiesIn(ctx, v, messages[id], addrs, indexes, out)
		if err != nil {
			return nil, fmt.Errorf("lance: table %s version %d: fragment %d: %w", k.root.Store, s.Version, id, err)
		}
	}
	return out, nil
}

// identitiesIn fills in those of out that are in the fragment.
func (k *Keeper) identitiesIn(ctx context.Context, v TableVersion, f *tablepb.DataFragment, addrs []table.RowAddr, indexes []int, out []table.RowIdentity) error {
	if f == nil {
		return fmt.Errorf("there is no row at %s: %w", addrs[indexes[0]], table.ErrNotFound)
	}
	ids, err := k.Sequence(ctx, v, f)
	if err != nil {
		return err
	}
	created, err := k.CreatedAt(ctx, f)
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

// Find returns the addresses of the live rows with the given ids in a version; it leaves
// out ids without a live row. Two live rows with the same id are table.ErrCorrupt.
func (k *Keeper) Find(ctx context.Context, s *table.Snapshot, v TableVersion, ids []table.RowID) (map[table.RowID]table.RowAddr, error) {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	out := make(map[table.RowID]table.RowAddr, len(ids))
	for i, f := range v.Messages() {
		err := k.findIn(ctx, v, f, s.Fragments[i], ids, out)
		if err != nil {
			return nil, fmt.Errorf("lance: table %s version %d: fragment %d: %w", k.root.Store, s.Version, f.GetId(), err)
		}
	}
	return out, nil
}

// findIn adds the live rows of a fragment, which is given in both its terms.
func (k *Keeper) findIn(ctx context.Context, v TableVersion, m *tablepb.DataFragment, f table.Fragment, ids []table.RowID, out map[table.RowID]table.RowAddr) error {
	seq, err := k.Sequence(ctx, v, m)
	if err != nil {
		return err
	}
	var gone *deletion.Vector
	for i, position := range seq.Find(ids) {
		if gone == nil { // read for the first hit only
			if gone, err = k.root.Deletions(ctx, f); err != nil {
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
