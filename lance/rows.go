package lance

import (
	"context"
	"iter"

	"github.com/rehome-db/rehome/table"
)

// Rows implements table.RowReader.
func (e *Engine) Rows(ctx context.Context, s *table.Snapshot, ids []table.FragmentID, opts table.ReadOptions) iter.Seq2[table.Batch, error] {
	return e.rows.Rows(ctx, s, ids, opts)
}

// Take implements table.RowTaker. Portions of the rows are fetched by a few
// goroutines at a time, which are done when the iteration is.
func (e *Engine) Take(ctx context.Context, s *table.Snapshot, addrs []table.RowAddr, columns []string) iter.Seq2[table.Batch, error] {
	return e.rows.Take(ctx, s, addrs, columns)
}

// WriteFragments implements table.FragmentWriter. Files have the format of the
// table's latest version. Rows that stock engines could not read again (package
// arrowcheck has the list) are refused.
func (e *Engine) WriteFragments(ctx context.Context, s table.Schema, rows iter.Seq2[table.Batch, error], opts table.WriteOptions) (table.Written, error) {
	return e.rows.WriteFragments(ctx, s, rows, opts)
}

// CanRewrite implements table.Rewriter.
func (e *Engine) CanRewrite(ctx context.Context, s *table.Snapshot, sources []table.FragmentID) error {
	return e.rows.CanRewrite(ctx, s, sources)
}

// RewriteGroup implements table.Rewriter. It works in level space, one leaf column at a
// time, and never puts nested arrays together. New files have the table's format and
// schema, whatever those of the sources, and one file is one fragment.
func (e *Engine) RewriteGroup(ctx context.Context, req table.RewriteRequest) (table.Written, error) {
	return e.rows.RewriteGroup(ctx, req)
}

var (
	_ table.RowTaker = (*Engine)(nil)
	_ table.Rewriter = (*Engine)(nil)
)
