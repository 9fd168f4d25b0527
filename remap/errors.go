package remap

import (
	"fmt"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// UntranslatableError says that addresses of some fragments cannot be translated.
// It wraps why: a rewrite that they went through is of a kind that is not known
// (ErrUnsupported of package table), or damaged (ErrCorrupt), or its label file
// could not be read; or the answer is no row of the version, or cannot be checked
// (a [*DoubtError], which is ErrNotFound). The operation that returns it has changed nothing.
type UntranslatableError struct {
	// Fragments are those among the input's, ascending, each once; of answers that
	// are not in the table, those of the answers.
	Fragments []table.FragmentID
	// Cause is the first one's.
	Cause error
}

func (e *UntranslatableError) Error() string {
	return fmt.Sprintf("remap: %s: addresses cannot be translated: %v", fragments(e.Fragments), e.Cause)
}

func (e *UntranslatableError) Unwrap() error { return e.Cause }

// OutsideError is returned with [Options.Strict] for an address that is no row of
// any fragment that the history saw rewritten. It wraps ErrNotFound of package
// table. The operation that returns it has changed nothing.
type OutsideError struct {
	// Addr is the first such address.
	Addr table.RowAddr
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("remap: address %v is of no rewritten fragment", e.Addr)
}

func (e *OutsideError) Unwrap() error { return table.ErrNotFound }

// OrderError is returned by [Sorted] for addresses that do not ascend. The
// operation that returns it has changed nothing.
type OrderError struct {
	// Index is the position of the first address that is below the one before it.
	Index         int
	Before, After table.RowAddr
}

func (e *OrderError) Error() string {
	return fmt.Sprintf("remap: addresses do not ascend: %v at %d follows %v", e.After, e.Index, e.Before)
}

// fragments prints a list that may be long.
func fragments(ids []table.FragmentID) string {
	const most = 8
	var b strings.Builder
	b.WriteString("fragment")
	if len(ids) != 1 {
		b.WriteByte('s')
	}
	for i, id := range ids {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(ids)-most)
			break
		}
		fmt.Fprintf(&b, " %d", id)
	}
	return b.String()
}
