package commit

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// Vectors are the deletion vectors that the attempts of one transaction stored. A
// vector lists the dead rows of one fragment. An attempt over a newer version may need
// other vectors; it uses stored ones again where they are still right.
//
// The caller deletes the vectors that the committed attempt does not refer to
// ([Vectors.Unreferred], [Discard]). It does so at the end: only then is that attempt
// known, and before, every millisecond between loading a version and replacing it is
// time for others to commit. Methods are safe for concurrent use.
type Vectors struct {
	mu     sync.Mutex
	stored map[table.FragmentID][]storedVector
}

type storedVector struct {
	deleted *deletion.Vector
	ref     table.DeletionRef
}

// Write stores the vector of a fragment, unless an earlier call stored an equal one.
func (v *Vectors) Write(ctx context.Context, e table.DeletionStore, id table.FragmentID, readVersion uint64, deleted *deletion.Vector) (*table.DeletionRef, error) {
	v.mu.Lock()
	stored := v.stored[id]
	v.mu.Unlock()
	for _, s := range stored {
		if s.deleted.Equal(deleted) {
			return &s.ref, nil
		}
	}
	ref, err := e.WriteDeletions(ctx, id, readVersion, deleted)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.stored == nil {
		v.stored = map[table.FragmentID][]storedVector{}
	}
	v.stored[id] = append(v.stored[id], storedVector{deleted, ref})
	return &ref, nil
}

// Unreferred lists the stored vectors that are not among the given paths.
func (v *Vectors) Unreferred(paths map[string]bool) (out []table.Object) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(v.stored)) {
		for _, s := range v.stored[id] {
			if !paths[s.ref.Path] {
				out = append(out, table.Object{Kind: table.ObjectDeletion, Path: s.ref.Path})
			}
		}
	}
	return out
}

// Forget clears the list; the caller has deleted or kept the vectors.
func (v *Vectors) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.stored)
}

// Referred returns the paths of all deletion vectors of a version. The caller passes the
// version that was committed. This need not be the last attempt's: the loop may find
// the transaction of an earlier attempt, whose answer was lost.
func Referred(s *table.Snapshot) map[string]bool {
	out := map[string]bool{}
	for _, f := range s.Fragments {
		if f.Deletion != nil {
			out[f.Deletion.Path] = true
		}
	}
	return out
}

// VectorOf converts a set to a vector. It does not copy a set that is one.
func VectorOf(set table.OffsetSet) *deletion.Vector {
	if v, ok := set.(*deletion.Vector); ok {
		return v
	}
	return deletion.Collect(set.All())
}
