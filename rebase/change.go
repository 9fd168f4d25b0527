package rebase

import (
	"encoding/json"
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// Uncommitted is a change that is computed and not committed yet: rows to delete,
// fragments of new rows, groups of rewritten fragments. Its data files are written. It
// is plain data: it can be kept, or sent elsewhere, and committed there ([Commit]).
type Uncommitted struct {
	// Table is where the table lives, for messages.
	Table string
	// Transaction says what kind of change it is. Its Operation is
	//
	//	table.Append   New is added
	//	table.Delete   Affected is deleted
	//	table.Update   Affected is deleted and New is added
	//	table.Rewrite  the new fragments of Groups replace the old ones
	//
	// with empty fragment lists: Commit fills them from the version being replaced.
	// ReadVersion is the version that the change was computed from; Affected holds
	// addresses of that version. All attempts use ID; a later Commit under the same ID
	// finds what an earlier one committed.
	Transaction table.Transaction
	// Affected are the rows to delete; all were alive in ReadVersion.
	Affected RowSet
	// Files are the data files, as read, of each fragment that Affected has rows of. If
	// a fragment has other files at the commit, it no longer holds what the change was
	// computed from: somebody rewrote its columns, or dropped the table and created
	// another under its name. The commit does not check fragments that Files does not
	// name. See [Uncommitted.Affect].
	Files map[table.FragmentID][]table.DataFile
	// New are the fragments of new rows, which get their ids at commit.
	New []table.NewFragment
	// Shape are the columns that New was written for. Without it Commit looks them up
	// in ReadVersion when it needs them.
	Shape Shape
	// Objects are all objects that were written for New. Commit deletes them if it
	// cannot commit the change.
	Objects []table.Object
	// Groups are the rewrites. A group that conflicts with a committed change is lost;
	// the rest is committed.
	Groups []Group
}

// Group is one set of fragments that were rewritten together. The k-th live row of
// Old, in order, is the k-th row of New.
type Group struct {
	// ReadVersion is the version that was read. The default is the change's.
	ReadVersion uint64 `json:"read_version,omitempty"`
	// Old are the fragments as they were read, in the order of reading.
	Old []table.Fragment `json:"old"`
	// Deleted are the rows of Old that were dead then; New does not hold them.
	Deleted RowSet `json:"deleted,omitempty"`
	// New are the fragments that were written, in the order of their rows.
	New []table.NewFragment `json:"new"`
	// Shape are the columns that were written.
	Shape Shape `json:"shape,omitempty"`
	// Objects are all objects that were written for New.
	Objects []table.Object `json:"objects"`
}

// SourceIDs are the ids of the fragments that were rewritten, in order.
func (g Group) SourceIDs() []table.FragmentID { return idsOf(g.Old) }

func idsOf(fragments []table.Fragment) []table.FragmentID {
	ids := make([]table.FragmentID, len(fragments))
	for i, f := range fragments {
		ids[i] = f.ID
	}
	return ids
}

// Affect sets Affected to rows of s, the version that the change was computed from,
// and sets Files to match.
func (u *Uncommitted) Affect(s *table.Snapshot, rows RowSet) {
	u.Affected, u.Files = rows, nil
	for _, f := range s.Fragments {
		if rows[f.ID].IsEmpty() || len(f.Files) == 0 {
			continue
		}
		if u.Files == nil {
			u.Files = map[table.FragmentID][]table.DataFile{}
		}
		u.Files[f.ID] = f.Files
	}
}

// uncommittedJSON is the JSON form; it holds the operation by name.
type uncommittedJSON struct {
	Table       string                                `json:"table"`
	ID          string                                `json:"id"`
	ReadVersion uint64                                `json:"read_version"`
	Operation   string                                `json:"operation"`
	UniqueKeys  []int32                               `json:"unique_keys,omitempty"`
	Properties  map[string]string                     `json:"properties,omitempty"`
	Affected    RowSet                                `json:"affected,omitempty"`
	Files       map[table.FragmentID][]table.DataFile `json:"files,omitempty"`
	New         []table.NewFragment                   `json:"new,omitempty"`
	Shape       Shape                                 `json:"shape,omitempty"`
	Objects     []table.Object                        `json:"objects,omitempty"`
	Groups      []Group                               `json:"groups,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (u Uncommitted) MarshalJSON() ([]byte, error) {
	if err := u.Validate(); err != nil {
		return nil, err
	}
	out := uncommittedJSON{
		Table: u.Table, ID: u.Transaction.ID, ReadVersion: u.Transaction.ReadVersion,
		Operation: u.Transaction.Operation.Kind(), Properties: u.Transaction.Properties,
		Affected: u.Affected, Files: u.Files, New: u.New, Shape: u.Shape, Objects: u.Objects, Groups: u.Groups,
	}
	if op, ok := u.Transaction.Operation.(table.Update); ok {
		out.UniqueKeys = op.UniqueKeys
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler.
func (u *Uncommitted) UnmarshalJSON(data []byte) error {
	var in uncommittedJSON
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("rebase: uncommitted change: %w", err)
	}
	out := Uncommitted{
		Table:    in.Table,
		Affected: in.Affected, Files: in.Files, New: in.New, Shape: in.Shape, Objects: in.Objects, Groups: in.Groups,
		Transaction: table.Transaction{ID: in.ID, ReadVersion: in.ReadVersion, Properties: in.Properties},
	}
	for _, op := range []table.Operation{
		table.Append{}, table.Delete{}, table.Update{UniqueKeys: in.UniqueKeys}, table.Rewrite{},
	} {
		if op.Kind() == in.Operation {
			out.Transaction.Operation = op
		}
	}
	if err := out.Validate(); err != nil {
		return err
	}
	*u = out
	return nil
}

// Validate checks the change without reading the table, and says what is wrong with
// it.
func (u Uncommitted) Validate() error {
	tx := u.Transaction
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("rebase: table %s: uncommitted change %q: %s", u.Table, tx.ID, fmt.Sprintf(format, args...))
	}
	switch {
	case tx.ID == "":
		return wrong("the transaction has no id")
	case tx.ReadVersion == 0:
		return wrong("the transaction has no read version")
	case tx.Operation == nil:
		return wrong("it does not say what it does")
	}
	switch op := tx.Operation.(type) {
	case table.Append:
		if !u.Affected.IsEmpty() {
			return wrong("an append deletes no rows")
		}
	case table.Delete:
		if len(u.New) > 0 {
			return wrong("a delete adds no fragments")
		}
	case table.Update:
		if op.InPlace || len(op.ModifiedFields) > 0 {
			return wrong("an update that rewrites columns in place has no rows to follow")
		}
	case table.Rewrite:
		if len(u.Groups) == 0 || !u.Affected.IsEmpty() || len(u.New) > 0 {
			return wrong("a rewrite has groups of fragments, and neither deletes rows nor adds new ones")
		}
	default:
		return wrong("an operation of kind %q cannot be rebased row by row", tx.Operation.Kind())
	}
	if _, ok := tx.Operation.(table.Rewrite); !ok && len(u.Groups) > 0 {
		return wrong("a change of kind %q rewrites no fragments", tx.Operation.Kind())
	}
	fragments := u.New
	taken := map[table.FragmentID]bool{}
	for i, g := range u.Groups {
		fragments = append(fragments[:len(fragments):len(fragments)], g.New...)
		if len(g.Old) == 0 {
			return wrong("group %d has no fragments", i)
		}
		if g.ReadVersion != 0 && g.ReadVersion < tx.ReadVersion {
			return wrong("group %d was read from version %d, before the change's read version %d", i, g.ReadVersion, tx.ReadVersion)
		}
		for _, f := range g.Old {
			if taken[f.ID] {
				return wrong("fragment %d is rewritten twice", f.ID)
			}
			taken[f.ID] = true
		}
	}
	for _, f := range fragments {
		if f.PhysicalRows == 0 || f.PhysicalRows > 1<<32 {
			return wrong("a new fragment has %d rows", f.PhysicalRows)
		}
	}
	return nil
}
