package rebase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// This file checks that the affected rows still hold the values that were read.
//
// A writer can rewrite columns in place: the rows keep their addresses, and new files
// replace old ones in the fragment. Some transactions declare this and some do not:
// formats allow it in operations that claim to delete rows, or to update them one by
// one. So if a transaction declares a conflict, it is one; if it declares none, the
// files decide. In every version of the window a fragment must have the files that
// were read, or the change is a conflict. Where a rewrite moved the rows, it must have
// copied those files, and from then on the fragment must have the files that it wrote.

// fieldPlace is where the values of a field are.
type fieldPlace struct {
	path, base string
	column     int32 // -1 if not recorded
}

func (p fieldPlace) same(q fieldPlace) bool {
	return p.path == q.path && p.base == q.base && (p.column == q.column || p.column < 0 || q.column < 0)
}

// placesOf returns the place of each field of a fragment; false if its files do not
// record which fields they have.
func placesOf(files []table.DataFile) (map[int32]fieldPlace, bool) {
	out := map[int32]fieldPlace{}
	for _, d := range files {
		if len(d.Fields) == 0 {
			return nil, false
		}
		for i, id := range d.Fields {
			if id < 0 {
				continue // a newer file has it
			}
			p := fieldPlace{path: d.Path, base: d.Base, column: -1}
			if len(d.Columns) == len(d.Fields) {
				p.column = d.Columns[i]
			}
			out[id] = p
		}
	}
	return out, true
}

// rewritten says whether the values of any field of a fragment are in another place
// than before, or are new, and lists these fields if the files record fields. It
// ignores fields that schema no longer has.
func rewritten(then, now []table.DataFile, schema table.Schema) (fields []int32, changed bool) {
	if slices.EqualFunc(then, now, func(a, b table.DataFile) bool { return a.Same(b) && slices.Equal(a.Columns, b.Columns) }) {
		return nil, false
	}
	was, ok := placesOf(then)
	is, ok2 := placesOf(now)
	if !ok || !ok2 {
		return nil, !slices.EqualFunc(then, now, table.DataFile.Same)
	}
	present := fieldIDs(schema.Fields, map[int32]bool{})
	for id, p := range was {
		if q, there := is[id]; there && !p.same(q) || !there && present[id] {
			fields = append(fields, id)
		}
	}
	for id := range is {
		if _, there := was[id]; !there {
			fields = append(fields, id)
		}
	}
	slices.Sort(fields)
	return fields, len(fields) > 0
}

func fieldIDs(fields []table.Field, into map[int32]bool) map[int32]bool {
	for _, f := range fields {
		into[f.ID] = true
		fieldIDs(f.Children, into)
	}
	return into
}

// columnNames names the columns of the fields, for messages.
func columnNames(fields []int32, schema table.Schema) string {
	var names []string
	for _, c := range schema.Fields {
		ids := fieldIDs([]table.Field{c}, map[int32]bool{})
		if slices.ContainsFunc(fields, func(id int32) bool { return ids[id] }) {
			names = append(names, fmt.Sprintf("%q", c.Name))
		}
	}
	const shown = 5
	if len(names) > shown {
		names = append(names[:shown], "...")
	}
	if len(names) == 0 {
		return "its columns"
	}
	if len(names) == 1 {
		return "column " + names[0]
	}
	return "columns " + strings.Join(names, ", ")
}

// changedSince says what differs in the data of a fragment since the change read it, or
// since the change followed its rows there; empty if nothing does, or if the change
// does not record what it read.
func (r *rebasing) changedSince(f table.Fragment, schema table.Schema) string {
	then, known := r.files[f.ID]
	if !known {
		return ""
	}
	fields, changed := rewritten(then, f.Files, schema)
	if !changed {
		return ""
	}
	if !slices.ContainsFunc(f.Files, func(d table.DataFile) bool {
		return slices.ContainsFunc(then, func(e table.DataFile) bool { return d.Path == e.Path && d.Base == e.Base })
	}) {
		return fmt.Sprintf("fragment %d has other files than when it was read", f.ID)
	}
	return fmt.Sprintf("%s of fragment %d was rewritten where it lies: it has other files than when it was read", columnNames(fields, schema), f.ID)
}

// checkFiles checks that a fragment of base has the data that was read.
func (r *rebasing) checkFiles(ctx context.Context, base *table.Snapshot, f table.Fragment) error {
	reason := r.changedSince(f, base.Schema)
	if reason == "" {
		return nil
	}
	rows := RowSet{f.ID: r.rows[f.ID]}
	if tx, ok := r.whoRewrote(ctx, base, f.ID); ok {
		return r.conflict(tx, retry, rows, reason)
	}
	return r.conflictAt(base.Version, rows, "%s", reason)
}

// whoRewrote finds the transaction that changed a fragment's files, by halving the
// window. It serves the message only, so a version that cannot be read ends the search.
func (r *rebasing) whoRewrote(ctx context.Context, base *table.Snapshot, id table.FragmentID) (table.Transaction, bool) {
	low, high := r.filesOf[id], base.Version // as it was at low, changed at high
	if low == 0 {
		low = r.u.Transaction.ReadVersion
	}
	for high-low > 1 {
		at := low + (high-low)/2
		s, err := r.engine.Load(ctx, at)
		if err != nil {
			return table.Transaction{}, false
		}
		if f, ok := s.Fragment(id); ok && r.changedSince(f, s.Schema) == "" {
			low = at
		} else {
			high = at
		}
	}
	i := slices.IndexFunc(r.seen, func(t table.Transaction) bool { return t.Version == high })
	if i < 0 {
		return table.Transaction{}, false
	}
	return r.seen[i], true
}

// checkCopied checks that a rewrite copied the values that were read. It compares the
// old fragments that the rewrite records, and those of the version that it replaced.
// One of the two may be unknown, not both.
func (r *rebasing) checkCopied(ctx context.Context, tx table.Transaction, old []table.Fragment) error {
	var before *table.Snapshot
	if v := tx.Version - 1; v != r.u.Transaction.ReadVersion {
		s, err := r.engine.Load(ctx, v)
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return fmt.Errorf("rebase: table %s: load version %d: %w", r.u.Table, v, err)
		}
		before = s
	}
	for _, f := range old {
		if _, known := r.files[f.ID]; !known || r.rows[f.ID].IsEmpty() {
			continue
		}
		states := []table.Fragment{}
		if len(f.Files) > 0 { // engines record the files, or nothing
			states = append(states, f)
		}
		schema := table.Schema{}
		if before != nil {
			schema = before.Schema
			if g, ok := before.Fragment(f.ID); ok {
				states = append(states, g)
			}
		}
		for _, g := range states {
			if reason := r.changedSince(g, schema); reason != "" {
				return r.conflict(tx, retry, RowSet{f.ID: r.rows[f.ID]}, "it moved rows, and before that "+reason)
			}
		}
		if len(states) == 0 && tx.Version-1 != r.u.Transaction.ReadVersion {
			return r.conflict(tx, retry, RowSet{f.ID: r.rows[f.ID]}, "it moved rows, and whether they were still those that were read cannot be told any more")
		}
	}
	return nil
}

// expectFiles records the files of the fragments that rows moved to.
func (r *rebasing) expectFiles(ctx context.Context, base *table.Snapshot, tx table.Transaction, written []table.Fragment, moved RowSet) error {
	if len(r.files) == 0 {
		return nil // the change does not record what it read
	}
	after := base
	if base.Version != tx.Version {
		s, err := r.engine.Load(ctx, tx.Version)
		if err != nil && !errors.Is(err, table.ErrNotFound) {
			return fmt.Errorf("rebase: table %s: load version %d: %w", r.u.Table, tx.Version, err)
		}
		after = s
	}
	for _, id := range moved.Fragments() {
		var files []table.DataFile
		if after != nil {
			f, _ := after.Fragment(id)
			files = f.Files
		} else if i := slices.IndexFunc(written, func(f table.Fragment) bool { return f.ID == id }); i >= 0 {
			files = written[i].Files
		}
		if len(files) == 0 {
			return r.conflict(tx, retry, RowSet{id: moved[id]}, fmt.Sprintf("it moved rows to fragment %d, and which files that had cannot be told any more", id))
		}
		r.files[id], r.filesOf[id] = files, tx.Version
	}
	return nil
}
