package dml

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// join is one computation of a merge: the pass over the table that decides what
// becomes of each row, and then the rows to be written.
type join struct {
	reader
	MergeInsert
	on     []string
	source *source
	schema *arrow.Schema // of the table
	ids    *identities

	columns     []string // of the table, that the pass reads
	pairColumns []string // that UpdateIf looks at

	// updated are the rows that get new values, and values, in table order, the source
	// rows that have them.
	updated rowCollector
	values  sourceRows
	deleted rowCollector
	// matched says for each source row whether the table has its key.
	matched []bool
	stats   Stats
}

// pair is a row of the table and the source row whose values it gets.
type pair struct {
	addr   table.RowAddr
	source int32
}

// compute decides, writes, and describes the change.
func (j *join) compute(ctx context.Context) (computed, error) {
	j.matched = make([]bool, j.source.rows)
	m := j.meter(Matching, j.snapshot.LiveRows())
	for batch, err := range j.scan(ctx, j.columns) {
		if err == nil {
			err = j.decide(ctx, batch)
		}
		if err != nil {
			return computed{}, j.errorf("merge insert: %w", err)
		}
		m.add(int64(len(batch.Addrs)))
	}
	inserts := j.inserts()
	if len(inserts) > 0 {
		// Rows that replace others keep what the source does not have.
		if err := j.source.canInsert(); err != nil {
			return computed{}, j.errorf("merge insert: %d of the rows are new: %w", len(inserts), err)
		}
	}
	updated, deleted := j.updated.rows(), j.deleted.rows()
	j.stats.Updated, j.stats.Deleted, j.stats.Inserted = updated.Rows(), deleted.Rows(), uint64(len(inserts))
	j.stats.SkippedDuplicates = uint64(len(j.source.skipped))

	c := computed{change: uncommitted(j.snapshot, table.Delete{}), stats: j.stats}
	if rows := j.stats.Updated + j.stats.Inserted; rows > 0 {
		out, err := j.write(ctx, j.output(ctx, updated, inserts), rows, j.Write)
		if err != nil {
			return computed{}, err
		}
		j.ids.give(out.Fragments)
		var op table.Update
		if len(inserts) > 0 {
			op.UniqueKeys = uniqueKeys(j.snapshot.Schema, j.on)
		}
		if len(op.UniqueKeys) > 0 {
			c.clash = j.clashes(inserts)
		}
		c.change.Transaction.Operation = op
		c.change.New, c.change.Objects = out.Fragments, out.Objects
	}
	deleted.AddAll(updated)
	c.change.Affect(j.snapshot, deleted)
	return c, nil
}

// inserts are the source rows that become new rows.
func (j *join) inserts() []int32 {
	var out []int32
	if j.WhenNotMatched != NotMatchedInsert {
		return nil
	}
	for i, matched := range j.matched {
		if !matched && !j.source.skipped[int32(i)] {
			out = append(out, int32(i))
		}
	}
	return out
}

// decide settles what becomes of some rows of the table.
func (j *join) decide(ctx context.Context, batch table.Batch) error {
	keys, err := newKeyReader(batch.Record, j.on)
	if err != nil {
		return err
	}
	mayDelete := j.WhenNotMatchedBySource == BySourceDelete
	var hit *array.Boolean
	if mayDelete && j.DeleteIf != nil {
		if hit, err = j.match(ctx, j.DeleteIf, batch.Record); err != nil {
			return err
		}
		defer hit.Release()
	}
	var all []candidate
	for i, addr := range batch.Addrs {
		with := len(all)
		if key, ok := keys.key(i); ok {
			for row := range j.source.find(key) {
				j.matched[row] = true
				all = append(all, candidate{i, row})
			}
		}
		switch n := len(all) - with; {
		case n == 0:
			if mayDelete && (hit == nil || matches(hit, i)) {
				j.deleted.add(addr)
			}
			continue
		case j.WhenMatched == MatchedFail:
			return fmt.Errorf("the table has a row with %s already", keys.text(i))
		case j.WhenMatched == MatchedDelete && n > 1:
			return ambiguous(keys, i)
		case j.WhenMatched == MatchedDelete:
			j.deleted.add(addr)
		}
		j.stats.Matched++
	}
	if j.WhenMatched != MatchedUpdate {
		return nil
	}
	if all, err = j.narrow(ctx, batch, all); err != nil {
		return err
	}
	for n, c := range all {
		if n > 0 && all[n-1].row == c.row {
			return ambiguous(keys, c.row)
		}
		j.updated.add(batch.Addrs[c.row])
		j.values.add(c.source)
	}
	return nil
}

func ambiguous(keys *keyReader, row int) error {
	return fmt.Errorf("several source rows match the row of the table with %s, and which of them counts is not said", keys.text(row))
}

// candidate is a row of a batch of the table and a source row with its key.
type candidate struct {
	row    int
	source int32
}

// narrow leaves the candidates that UpdateIf agrees with.
func (j *join) narrow(ctx context.Context, batch table.Batch, all []candidate) ([]candidate, error) {
	if j.UpdateIf == nil {
		return all, nil
	}
	agreed := make([]bool, len(all))
	for part := range j.source.parts(len(all), func(n int) int32 { return all[n].source }) {
		rec, err := j.pairs(batch, all, part)
		if err != nil {
			return nil, err
		}
		hit, err := j.match(ctx, j.UpdateIf, rec)
		rec.Release()
		if err != nil {
			return nil, err
		}
		for i, n := range part.items {
			agreed[n] = matches(hit, i)
		}
		hit.Release()
	}
	var out []candidate
	for n, c := range all {
		if agreed[n] {
			out = append(out, c)
		}
	}
	return out, nil
}

// pairs is the record that UpdateIf is asked about.
func (j *join) pairs(batch table.Batch, all []candidate, part sourcePart) (arrow.RecordBatch, error) {
	rows := make([]int, len(part.items))
	for i, n := range part.items {
		rows[i] = all[n].row
	}
	var fields []arrow.Field
	var columns []arrow.Array
	defer func() { release(columns) }()
	for i, f := range j.snapshot.Schema.Fields {
		if name := sourceSide + f.Name; slices.Contains(j.pairColumns, name) {
			c, err := part.take(i)
			if err == nil {
				c, err = j.source.complete(i, c, nil)
			}
			if err != nil {
				return nil, err
			}
			fields, columns = append(fields, arrow.Field{Name: name, Type: f.Type, Nullable: true}), append(columns, c)
		}
		if name := targetSide + f.Name; slices.Contains(j.pairColumns, name) {
			from, err := column(batch.Record, f.Name)
			if err != nil {
				return nil, err
			}
			c, err := gather.Take(memory.DefaultAllocator, from, rows)
			if err != nil {
				return nil, err
			}
			fields, columns = append(fields, arrow.Field{Name: name, Type: f.Type, Nullable: f.Nullable}), append(columns, c)
		}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(len(rows))), nil
}

// sameKeys is a conflict if a later version knows the key columns by other names, or
// other columns by theirs: then its rows cannot be compared by the names.
func (j *join) sameKeys(base *table.Snapshot) error {
	for _, name := range j.on {
		mine, _ := j.snapshot.Schema.Field(name)
		theirs, ok := base.Schema.Field(name)
		if !ok || theirs.ID != mine.ID || !arrow.TypeEqual(theirs.Type, mine.Type) {
			return table.Conflictf("dml: column %q, by which rows are matched, was changed between the versions %d and %d", name, j.snapshot.Version, base.Version)
		}
	}
	return nil
}

// clashes compares keys that others inserted meanwhile with those that this merge
// inserts.
func (j *join) clashes(inserts []int32) rebase.KeysClash {
	mine := make(map[int32]bool, len(inserts))
	for _, row := range inserts {
		mine[row] = true
	}
	return func(ctx context.Context, base *table.Snapshot, added []table.Fragment) (bool, error) {
		if err := j.sameKeys(base); err != nil {
			return false, err
		}
		var ids []table.FragmentID
		for _, f := range added {
			ids = append(ids, f.ID)
		}
		for batch, err := range j.engine.Rows(ctx, base, ids, table.ReadOptions{Columns: j.on}) {
			if err != nil {
				return false, err
			}
			keys, err := newKeyReader(batch.Record, j.on)
			if err != nil {
				return false, err
			}
			for i := range int(batch.Record.NumRows()) {
				key, ok := keys.key(i)
				if !ok {
					continue
				}
				for row := range j.source.find(key) {
					if mine[row] {
						return true, nil
					}
				}
			}
		}
		return false, nil
	}
}
