package compaction

import (
	"context"
	"errors"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/table"
)

// LeftoverError says that objects which no version refers to could not be deleted;
// see [Leftovers].
type LeftoverError = commit.LeftoverError

// Leftovers lists the objects that any [*LeftoverError] in err names: when several
// tasks fail, each has its own.
func Leftovers(err error) []table.Object { return commit.Leftovers(err) }

// discard deletes objects that the caller made and nothing refers to. It does so
// even if ctx is done. The error is a *LeftoverError.
func discard(ctx context.Context, e table.ObjectStore, objects []table.Object, ev Events) error {
	if len(objects) == 0 {
		return nil
	}
	deleted, err := commit.Discard(ctx, e, "compaction", objects)
	info := ObjectsInfo{Deleted: deleted}
	var left *LeftoverError
	if errors.As(err, &left) {
		info.Left, info.Err = left.Objects, left.Err
	}
	ev.ObjectsDeleted(info)
	return err
}
