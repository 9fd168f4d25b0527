package dml

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/table"
)

// WhenMatched is what becomes of a row of the table that a source row has the key of.
type WhenMatched int

// The zero value leaves it, which makes a merge a "find or create".
const (
	MatchedKeep WhenMatched = iota
	// MatchedUpdate gives it the source row's values, in the columns that the source
	// has; [MergeInsert.UpdateIf] may say no.
	MatchedUpdate
	// MatchedDelete deletes it.
	MatchedDelete
	// MatchedFail ends the merge with an error that names the key, and nothing is
	// changed.
	MatchedFail
)

// WhenNotMatched is what becomes of a source row whose key no row of the table has.
type WhenNotMatched int

// The zero value makes it a new row.
const (
	NotMatchedInsert WhenNotMatched = iota
	NotMatchedSkip
)

// WhenNotMatchedBySource is what becomes of a row of the table whose key no source
// row has.
type WhenNotMatchedBySource int

// The zero value leaves it.
const (
	BySourceKeep WhenNotMatchedBySource = iota
	// BySourceDelete deletes it; [MergeInsert.DeleteIf] may say no.
	BySourceDelete
)

// Duplicates is what happens when source rows have the same key.
type Duplicates int

// The zero value refuses what is ambiguous, and only that: several source rows that
// update or delete the same row of the table. Source rows with the same new key are
// all inserted.
const (
	DuplicatesFail Duplicates = iota
	// DuplicatesFirst leaves out all but the first with a key, matched or not.
	DuplicatesFirst
)

// MergeInsert merges rows into the table by a key: an upsert, a "find or create", a
// bulk delete, or the replacement of a part of the table, as its clauses say. The
// zero values of the clauses are the stock engine's defaults: find or create.
//
// Rows match if their key columns are equal. A key with a null in it is equal to
// none, so that such source rows are inserted; all NaN are equal,
// whatever their bits, and 0.0 is not equal to -0.0. A row of the table that matches is
// updated by writing it anew, whole, and deleting the old one; it stays the same row in
// a table with stable row ids.
//
// The source and a table of its keys are held in memory; the table is streamed. Of
// it the key columns are read, those that conditions look at, and, of the rows that
// are updated, the columns that the source does not have.
//
// Rows that a compaction moves before it is committed are followed; if others delete
// or update one of them, everything is computed again from the newest version. So it
// is if they insert a row with the same key, in a table whose declared primary key On
// is; where it is only computed, the change says so, and committing it is then a
// conflict if others inserted rows.
type MergeInsert struct {
	// On are the key columns. The default is the table's declared primary key.
	On []string
	// Source are the rows to be merged, in batches that have the same columns of the
	// table, in any order: all of them or some, but the key. Columns that it does not
	// have keep their values in rows that are updated, and are null in rows that are
	// inserted, and so do subfields of structs. It is read once, to its end.
	Source iter.Seq2[arrow.RecordBatch, error]

	WhenMatched WhenMatched
	// UpdateIf narrows MatchedUpdate. It is asked about records with columns of both
	// sides, which are named "source.x" and "target.x", one row for each row of the
	// table and source row that match. The default is to update always.
	UpdateIf Predicate

	WhenNotMatched WhenNotMatched

	WhenNotMatchedBySource WhenNotMatchedBySource
	// DeleteIf narrows BySourceDelete, by a condition on the table's columns. The
	// default is to delete always.
	DeleteIf Predicate

	Duplicates Duplicates
	// Write bounds the fragments that are written.
	Write table.WriteOptions
}

// computer reads the source once, whatever versions the merge is computed from.
func (m MergeInsert) computer() computer {
	var src *source
	return computer{
		compute: func(ctx context.Context, r reader) (computed, error) {
			j, err := m.join(ctx, r, src)
			if err != nil {
				return computed{}, err
			}
			src = j.source
			return j.compute(ctx)
		},
		release: func() {
			if src != nil {
				src.release()
			}
		},
	}
}

// join checks the clauses against a version of the table and reads the source, unless
// it was read already.
func (m MergeInsert) join(ctx context.Context, r reader, src *source) (*join, error) {
	on, err := m.key(r.snapshot.Schema)
	if err == nil {
		err = m.validate()
	}
	if err != nil {
		return nil, r.errorf("merge insert: %w", err)
	}
	if src != nil {
		if !slices.EqualFunc(src.schema.Fields, r.snapshot.Schema.Fields, sameColumn) {
			return nil, fmt.Errorf("%w: %w", table.ErrTerminal, table.Conflictf(
				"dml: table %s version %d: the columns are not those that the source was read for", r.snapshot.Table, r.snapshot.Version))
		}
		return m.prepare(r, on, src)
	}
	if src, err = readSource(ctx, r.snapshot.Schema, m.Source, on, m.Duplicates == DuplicatesFirst); err != nil {
		return nil, r.errorf("merge insert: source: %w", err)
	}
	j, err := m.prepare(r, on, src)
	if err != nil {
		src.release()
	}
	return j, err
}

func sameColumn(f, g table.Field) bool {
	return f.ID == g.ID && f.Name == g.Name && f.Nullable == g.Nullable && arrow.TypeEqual(f.Type, g.Type)
}

// key is On, or the declared primary key, in the table's spelling. Like the stock
// engine it does not mind the case of names that are no others' in the exact case.
func (m MergeInsert) key(s table.Schema) ([]string, error) {
	on := m.On
	if len(on) == 0 {
		if on = PrimaryKey(s); len(on) == 0 {
			return nil, errors.New("the key columns are not said, and the table has no declared primary key")
		}
	}
	var out []string
	for _, name := range on {
		f, ok := s.Field(name)
		for i := 0; !ok && i < len(s.Fields); i++ {
			f = s.Fields[i]
			ok = strings.EqualFold(f.Name, name)
		}
		switch {
		case !ok:
			return nil, fmt.Errorf("no column %q for a key: %w", name, table.ErrNotFound)
		case slices.Contains(out, f.Name):
			return nil, fmt.Errorf("key column %q is named twice", f.Name)
		}
		if err := checkKeyType(f); err != nil {
			return nil, err
		}
		out = append(out, f.Name)
	}
	return out, nil
}

func (m MergeInsert) validate() error {
	switch {
	case m.Source == nil:
		return errors.New("there is no source")
	case m.WhenMatched < MatchedKeep || m.WhenMatched > MatchedFail,
		m.WhenNotMatched < NotMatchedInsert || m.WhenNotMatched > NotMatchedSkip,
		m.WhenNotMatchedBySource < BySourceKeep || m.WhenNotMatchedBySource > BySourceDelete,
		m.Duplicates < DuplicatesFail || m.Duplicates > DuplicatesFirst:
		return fmt.Errorf("a clause has no meaning: %d, %d, %d, %d", m.WhenMatched, m.WhenNotMatched, m.WhenNotMatchedBySource, m.Duplicates)
	case m.WhenMatched == MatchedKeep && m.WhenNotMatched == NotMatchedSkip && m.WhenNotMatchedBySource == BySourceKeep:
		return errors.New("no clause changes anything")
	case m.UpdateIf != nil && m.WhenMatched != MatchedUpdate:
		return errors.New("UpdateIf is for MatchedUpdate")
	case m.DeleteIf != nil && m.WhenNotMatchedBySource != BySourceDelete:
		return errors.New("DeleteIf is for BySourceDelete")
	}
	return nil
}

// The sides of a pair of rows, as UpdateIf sees them.
const (
	sourceSide = "source."
	targetSide = "target."
)

// pairSchema are the columns that UpdateIf can ask for.
func pairSchema(l layout) table.Schema {
	var out table.Schema
	for i, f := range l.schema.Fields {
		if l.has[i] {
			f.Name, f.Nullable = sourceSide+f.Name, true
			out.Fields = append(out.Fields, f)
		}
	}
	for _, f := range l.schema.Fields {
		f.Name = targetSide + f.Name
		out.Fields = append(out.Fields, f)
	}
	return out
}

// prepare checks what the columns of table and source have to be for the clauses.
func (m MergeInsert) prepare(r reader, on []string, src *source) (*join, error) {
	s := r.snapshot.Schema
	j := &join{reader: r, MergeInsert: m, on: on, source: src, schema: s.Arrow(), columns: on}
	// Of a source without rows not even the columns are known.
	if m.UpdateIf != nil && src.rows > 0 {
		pair := pairSchema(src.layout)
		names, err := m.UpdateIf.Columns(pair)
		if err == nil {
			err = noPositions(pair, names)
		}
		if err != nil {
			return nil, r.errorf("merge insert: the condition for updates: %w", err)
		}
		j.pairColumns = names
		var target []string
		for _, n := range names {
			if name, ok := strings.CutPrefix(n, targetSide); ok {
				target = append(target, name)
			}
		}
		j.columns = union(s, j.columns, target)
	}
	if m.DeleteIf != nil {
		names, err := m.DeleteIf.Columns(s)
		if err == nil {
			err = noPositions(s, names)
		}
		if err != nil {
			return nil, r.errorf("merge insert: the condition for deletes: %w", err)
		}
		j.columns = union(s, j.columns, names)
	}
	var err error
	if m.WhenMatched == MatchedUpdate {
		j.ids, err = r.identities()
	}
	return j, err
}
