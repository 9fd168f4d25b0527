package compaction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rehome-db/rehome/table"
)

// cleanupTime bounds a clean-up, which goes on after its caller has given up.
const cleanupTime = time.Minute

// LeftoverError says that objects which no version refers to could not be
// deleted. It is joined to the error that made them useless and does not unwrap,
// so that it never changes what that one asks of the caller. See [Leftovers].
type LeftoverError struct {
	Objects []table.Object
	Err     error
}

func (e *LeftoverError) Error() string {
	const shown = 3
	s := fmt.Sprintf("compaction: %s left behind:", plural(uint64(len(e.Objects)), "object"))
	for i, o := range e.Objects {
		if i == shown {
			s += " ..."
			break
		}
		s += " " + o.Path
	}
	return s + ": " + e.Err.Error()
}

// Leftovers lists the objects that any *LeftoverError in err names: when several
// tasks fail, each has its own.
func Leftovers(err error) []table.Object {
	switch e := err.(type) {
	case nil:
		return nil
	case *LeftoverError:
		return e.Objects
	case interface{ Unwrap() error }:
		return Leftovers(e.Unwrap())
	case interface{ Unwrap() []error }:
		var out []table.Object
		for _, err := range e.Unwrap() {
			out = append(out, Leftovers(err)...)
		}
		return out
	}
	return nil
}

// discard deletes objects that the caller made and nothing refers to. It does so
// even if ctx is done. The error is a *LeftoverError.
func discard(ctx context.Context, e table.ObjectStore, objects []table.Object, ev Events) error {
	if len(objects) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	var info ObjectsInfo
	var errs []error
	for _, o := range objects {
		if err := e.Delete(ctx, o); err != nil {
			info.Left = append(info.Left, o)
			errs = append(errs, err)
			continue
		}
		info.Deleted = append(info.Deleted, o)
	}
	if info.Err = errors.Join(errs...); info.Err != nil {
		ev.ObjectsDeleted(info)
		return &LeftoverError{Objects: info.Left, Err: info.Err}
	}
	ev.ObjectsDeleted(info)
	return nil
}
