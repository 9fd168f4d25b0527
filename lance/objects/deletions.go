package objects

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"path"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/lance/cache"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// maxDeletionSize bounds a deletion file: every second row of a full fragment, as
// an uncompressed list, is 8 GiB, but then a bitmap is written, of 512 MiB.
const maxDeletionSize = 1 << 30

// Deletions reads and checks the deletion vector of a fragment.
func (r *Root) Deletions(ctx context.Context, f table.Fragment) (*deletion.Vector, error) {
	if f.Deletion == nil {
		return deletion.Of(), nil
	}
	v, err := r.readDeletionFile(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("fragment %d: deletion file %s: %w", f.ID, f.Deletion.Path, err)
	}
	if n := v.Cardinality(); n != f.Deletion.Rows {
		return nil, table.Corruptf("fragment %d: deletion file %s holds %d rows, the version records %d", f.ID, f.Deletion.Path, n, f.Deletion.Rows)
	}
	return v, nil
}

// CountDeletions returns how many rows of a fragment are deleted, for versions
// that do not record it.
func (r *Root) CountDeletions(ctx context.Context, f table.Fragment) (uint64, error) {
	v, err := r.readDeletionFile(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("fragment %d: deletion file %s: %w", f.ID, f.Deletion.Path, err)
	}
	return v.Cardinality(), nil
}

// readDeletionFile reads a deletion file, if it is not known. Its name is all there
// is to its identity, as a random number is part of it; so for one that is known
// nothing is read.
func (r *Root) readDeletionFile(ctx context.Context, f table.Fragment) (*deletion.Vector, error) {
	s, err := r.StoreOf(f.Deletion.Base)
	if err != nil {
		return nil, err
	}
	v, err := cache.Load(ctx, r.Cache, r.Entry(cache.Deletions, f.Deletion.Base, f.Deletion.Path, 0, ""), func() (*deletion.Vector, int64, error) {
		return decodeDeletions(ctx, s, f)
	})
	if err != nil {
		return nil, err
	}
	// It may have been decoded for another version's record of the fragment.
	if last, any := v.Max(); any && uint64(last) >= f.PhysicalRows {
		return nil, table.Corruptf("it deletes row %d of %d", last, f.PhysicalRows)
	}
	return v, nil
}

// decodeDeletions returns also the vector's cost in memory.
func decodeDeletions(ctx context.Context, s store.Store, f table.Fragment) (*deletion.Vector, int64, error) {
	encoding := deletion.Arrow
	if path.Ext(f.Deletion.Path) == "."+deletion.Bitmap.Ext() {
		encoding = deletion.Bitmap
	}
	data, err := store.ReadAll(ctx, s, f.Deletion.Path, maxDeletionSize)
	if err != nil {
		return nil, 0, Missing(err)
	}
	v, err := deletion.Decode(encoding, data, f.PhysicalRows)
	switch {
	case errors.Is(err, deletion.ErrUnsupported):
		return nil, 0, table.Unsupportedf("%w", err)
	case err != nil:
		return nil, 0, table.Corruptf("%w", err)
	}
	size := min(2*v.Cardinality(), f.PhysicalRows/8) // in memory, at most
	return v, int64(max(size, uint64(len(data)))) + 128, nil
}

// WriteDeletions writes a deletion vector into a new file.
func (r *Root) WriteDeletions(ctx context.Context, id table.FragmentID, readVersion uint64, deleted table.OffsetSet) (table.DeletionRef, error) {
	v, ok := deleted.(*deletion.Vector)
	if !ok {
		v = deletion.Collect(deleted.All())
	}
	if v.IsEmpty() {
		return table.DeletionRef{}, fmt.Errorf("it is empty: a fragment without deleted rows has no deletion file")
	}
	encoding, data, err := deletion.Encode(v)
	if err != nil {
		return table.DeletionRef{}, err
	}
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails
	d := &tablepb.DeletionFile{
		FileType:    tablepb.DeletionFile_DeletionFileType(encoding), // the same numbers
		ReadVersion: readVersion,
		Id:          binary.LittleEndian.Uint64(random[:]),
	}
	ref := table.DeletionRef{Path: DeletionsDir + "/" + DeletionName(uint64(id), d), Rows: v.Cardinality()}
	w, err := r.Store.Create(ctx, ref.Path, store.WriteOptions{})
	if err != nil {
		return table.DeletionRef{}, err
	}
	if _, err := w.Write(data); err != nil {
		return table.DeletionRef{}, errors.Join(err, w.Abort())
	}
	if err := w.Close(); err != nil {
		// It may be there all the same, and nobody else knows its name.
		return table.DeletionRef{}, errors.Join(err, r.deleteAll(ctx, []table.Object{{Kind: table.ObjectDeletion, Path: ref.Path}}))
	}
	return ref, nil
}
