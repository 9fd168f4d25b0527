package commit

import (
	"context"
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// LeftoverError lists objects that no version refers to and that could not be
// deleted. It is joined to the error that made them useless. It does not unwrap, so
// the class of the joined error is that of the first one. See [Leftovers].
type LeftoverError struct {
	// By is who wrote them: the message begins with it. The default is "commit".
	By      string
	Objects []table.Object
	Err     error
}

func (e *LeftoverError) Error() string {
	const shown = 3
	by, s := e.By, ""
	if by == "" {
		by = "commit"
	}
	if len(e.Objects) != 1 {
		s = "s"
	}
	s = fmt.Sprintf("%s: %d object%s left behind:", by, len(e.Objects), s)
	for i, o := range e.Objects {
		if i == shown {
			s += " ..."
			break
		}
		s += " " + o.Path
	}
	return s + ": " + e.Err.Error()
}

// Leftovers lists the objects of every *LeftoverError in err: when several tasks
// fail, each has its own.
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

// Discard deletes objects that the caller made and nothing refers to. It works for
// up to [SettleTime], even if ctx is done. The error is a [*LeftoverError].
func Discard(ctx context.Context, e table.ObjectStore, by string, objects []table.Object) (deleted []table.Object, err error) {
	if len(objects) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTime)
	defer cancel()
	var left []table.Object
	var errs []error
	for _, o := range objects {
		if err := e.Delete(ctx, o); err != nil {
			left = append(left, o)
			errs = append(errs, err)
			continue
		}
		deleted = append(deleted, o)
	}
	if err := errors.Join(errs...); err != nil {
		return deleted, &LeftoverError{By: by, Objects: left, Err: err}
	}
	return deleted, nil
}
