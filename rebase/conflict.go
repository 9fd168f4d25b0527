package rebase

import (
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// ConflictError is the committed change that this one cannot be rebased over. It is a
// [table.ErrConflict]. If [ConflictError.Retryable] says so, computing the change
// anew from the current version can succeed; else it is a [table.ErrTerminal], too:
// what the change refers to no longer exists.
type ConflictError struct {
	Table string
	// Version is the version in the way or, if no single transaction is, the version
	// that the change was to replace.
	Version uint64
	// Transaction is the id of the transaction that made the version, and Operation
	// its kind; empty if the conflict is not with one transaction.
	Transaction, Operation string
	// Rows are the rows that both changed, at their addresses in the version before
	// Version; nil if the conflict is not about single rows.
	Rows RowSet
	// Reason says in words what is in the way.
	Reason string
	// Lost are the groups of a rewrite, if it lost all of them.
	Lost []LostGroup
	// Attempts is the number of commits tried before.
	Attempts int

	verdict verdict // retry or incompatible
}

// Retryable says whether computing the change anew can succeed.
func (e *ConflictError) Retryable() bool { return e.verdict != incompatible }

func (e *ConflictError) Error() string {
	s := fmt.Sprintf("rebase: table %s version %d", e.Table, e.Version)
	if len(e.Lost) > 0 {
		return s + ": nothing is left to publish" + e.groups() + "; run again"
	}
	if e.Transaction != "" {
		s += fmt.Sprintf(" (%s, transaction %s)", e.Operation, e.Transaction)
	}
	s += ": " + e.Reason
	if !e.Rows.IsEmpty() {
		s += ": " + e.Rows.String()
	}
	if e.Retryable() {
		s += "; run again"
	}
	return s
}

// groups names a few of the groups that are lost.
func (e *ConflictError) groups() (s string) {
	const shown = 3
	for i, l := range e.Lost {
		if i == shown {
			return s + fmt.Sprintf("; and %d more", len(e.Lost)-shown)
		}
		s += fmt.Sprintf("; group of fragments %s: %s", table.FragmentList(l.Sources), l.Reason)
	}
	return s
}

// Unwrap makes it a table.ErrConflict, and a table.ErrTerminal if it is not
// retryable.
func (e *ConflictError) Unwrap() []error {
	if e.Retryable() {
		return []error{table.ErrConflict}
	}
	return []error{table.ErrConflict, table.ErrTerminal}
}
