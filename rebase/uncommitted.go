package rebase

import (
	"encoding/json"
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// Uncommitted is a change of rows that was computed, and written where there is
// something to write, and is not committed yet. It is plain data: it can be kept,
// or sent elsewhere, and committed there ([CommitBuilder]).
type Uncommitted struct {
	// Table is where the table lives, for messages.
	Table string
	// Transaction tells what sort of change it is. Its Operation is
	//
	//	table.Append   New is added
	//	table.Delete   Affected is deleted
	//	table.Update   Affected is deleted and New is added
	//	table.Rewrite  New takes the place of the Old fragments of its one group,
	//	               as they were read
	//
	// and its other fragment lists are left empty: they are filled at commit, from
	// the version being replaced. ReadVersion is the version that the change was
	// computed from, and whose addresses Affected has. ID is kept over all attempts;
	// whoever commits under it again finds what it committed before.
	Transaction table.Transaction
	// Affected are the rows to be deleted, all of which were alive in ReadVersion.
	Affected RowSet
	// Files are the data files of each fragment that Affected has rows of, as they
	// were read. A fragment that has others by the time of the commit does not hold
	// what the change was computed from: somebody rewrote columns of it, or the table
	// was dropped and made again under its name. Fragments that are not named are
	// taken as they are. See [Uncommitted.Affect].
	Files map[table.FragmentID][]table.DataFile
	// New are the fragments that were written, which get their ids at commit.
	New []table.NewFragment
	// Objects are all objects that were written for New. They are deleted if the
	// change cannot be committed.
	Objects []table.Object
}

// Affect sets Affected, to rows of the version that the change was computed from, and
// Files with it.
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

// uncommittedJSON is the JSON form: the operation by its name.
type uncommittedJSON struct {
	Table       string                                `json:"table"`
	ID          string                                `json:"id"`
	ReadVersion uint64                                `json:"read_version"`
	Operation   string                                `json:"operation"`
	UniqueKeys  []int32                               `json:"unique_keys,omitempty"`
	Old         []table.Fragment                      `json:"old,omitempty"`
	Properties  map[string]string                     `json:"properties,omitempty"`
	Affected    RowSet                                `json:"affected,omitempty"`
	Files       map[table.FragmentID][]table.DataFile `json:"files,omitempty"`
	New         []table.NewFragment                   `json:"new,omitempty"`
	Objects     []table.Object                        `json:"objects,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (u Uncommitted) MarshalJSON() ([]byte, error) {
	if err := u.Validate(); err != nil {
		return nil, err
	}
	out := uncommittedJSON{
		Table: u.Table, ID: u.Transaction.ID, ReadVersion: u.Transaction.ReadVersion,
		Operation: u.Transaction.Operation.Kind(), Properties: u.Transaction.Properties,
		Affected: u.Affected, Files: u.Files, New: u.New, Objects: u.Objects,
	}
	switch op := u.Transaction.Operation.(type) {
	case table.Update:
		out.UniqueKeys = op.UniqueKeys
	case table.Rewrite:
		out.Old = op.Groups[0].Old
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
		Affected: in.Affected, Files: in.Files, New: in.New, Objects: in.Objects,
		Transaction: table.Transaction{ID: in.ID, ReadVersion: in.ReadVersion, Properties: in.Properties},
	}
	for _, op := range []table.Operation{
		table.Append{}, table.Delete{}, table.Update{UniqueKeys: in.UniqueKeys},
		table.Rewrite{Groups: []table.RewriteGroup{{Old: in.Old}}},
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

// Validate says what is wrong with the change, as far as it can be told without
// the table.
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
		if len(op.Groups) != 1 || len(op.Groups[0].Old) == 0 || !u.Affected.IsEmpty() {
			return wrong("a rewrite has one group of fragments, and deletes no rows")
		}
	default:
		return wrong("an operation of kind %q cannot be rebased row by row", tx.Operation.Kind())
	}
	for _, f := range u.New {
		if f.PhysicalRows == 0 || f.PhysicalRows > 1<<32 {
			return wrong("a new fragment has %d rows", f.PhysicalRows)
		}
	}
	return nil
}
