package interop

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// AppendFragments adds rows as fragments of so many rows, in one commit. Only pylance
// offers it.
func (e *Engine) AppendFragments(ctx context.Context, path string, rows arrow.RecordBatch, perFragment int) (uint64, error) {
	enc, err := encodeRows(rows)
	if err != nil {
		return 0, err
	}
	return e.commit(ctx, request{"op": "append", "table": path, "rows": enc, "rowsPerFile": perFragment})
}

// AddComputed adds a column whose values are a SQL expression of the others: a data
// file more for each fragment.
func (e *Engine) AddComputed(ctx context.Context, path, column, sql string) (uint64, error) {
	return e.commit(ctx, request{"op": "add_columns", "table": path, "sql": map[string]string{column: sql}})
}

// AddNull adds a column that is null in all rows, which no data file has. Only pylance
// offers it.
func (e *Engine) AddNull(ctx context.Context, path string, column arrow.Field) (uint64, error) {
	enc, err := encodeEmpty(column)
	if err != nil {
		return 0, err
	}
	return e.commit(ctx, request{"op": "add_columns", "table": path, "rows": enc})
}

// AddValues adds the columns of rows but on, by which they are matched with the table's
// rows: a data file more for each fragment. Only pylance offers it.
func (e *Engine) AddValues(ctx context.Context, path, on string, rows arrow.RecordBatch) (uint64, error) {
	enc, err := encodeRows(rows)
	if err != nil {
		return 0, err
	}
	return e.commit(ctx, request{"op": "add_columns", "table": path, "rows": enc, "on": on})
}

// Rename gives a column another name.
func (e *Engine) Rename(ctx context.Context, path, column, name string) (uint64, error) {
	return e.commit(ctx, request{"op": "alter_column", "table": path, "column": column, "name": name})
}

// Retype gives a column another type, to which its values are cast. Only pylance offers
// it.
func (e *Engine) Retype(ctx context.Context, path, column string, to arrow.DataType) (uint64, error) {
	enc, err := encodeEmpty(arrow.Field{Name: column, Type: to, Nullable: true})
	if err != nil {
		return 0, err
	}
	return e.commit(ctx, request{"op": "alter_column", "table": path, "column": column, "rows": enc})
}

// DropColumn drops a column.
func (e *Engine) DropColumn(ctx context.Context, path, column string) (uint64, error) {
	return e.commit(ctx, request{"op": "drop_columns", "table": path, "columns": []string{column}})
}

// encodeEmpty is how a field travels: as a table without rows.
func encodeEmpty(f arrow.Field) (string, error) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{f}, nil))
	defer b.Release()
	rec := b.NewRecordBatch()
	defer rec.Release()
	return encodeRows(rec)
}

// A ColumnRewrite is a way to rewrite a column where it lies. Only pylance offers them.
type ColumnRewrite string

// The ways that pylance has. Not all of them say in the transaction what they did.
const (
	RewriteByMerge           ColumnRewrite = "merge"                 // a merge_insert of some columns
	RewriteByUpdate          ColumnRewrite = "update"                // update_columns, committed as documented
	RewriteByUpdateNoFields  ColumnRewrite = "update-without-fields" // the same, without a word about what was modified
	RewriteByMergeOperation  ColumnRewrite = "merge-operation"       // the same fragments, as an operation that adds columns
	RewriteByDataReplacement ColumnRewrite = "data-replacement"      // needs files of the column alone
	RewriteByAddAndDrop      ColumnRewrite = "add-and-drop"          // another column takes its place and name
)

// ColumnRewrites are all ways.
var ColumnRewrites = []ColumnRewrite{
	RewriteByMerge, RewriteByUpdate, RewriteByUpdateNoFields, RewriteByMergeOperation, RewriteByDataReplacement, RewriteByAddAndDrop,
}

// RewriteColumn gives the rows of the table that rows has the keys of rows' values in
// its other column.
func (e *Engine) RewriteColumn(ctx context.Context, path string, how ColumnRewrite, on string, rows arrow.RecordBatch) (uint64, error) {
	enc, err := encodeRows(rows)
	if err != nil {
		return 0, err
	}
	return e.commit(ctx, request{"op": "rewrite_column", "table": path, "recipe": string(how), "on": on, "rows": enc})
}
