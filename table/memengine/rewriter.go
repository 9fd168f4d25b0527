package memengine

import (
	"context"
	"slices"

	"github.com/rehome-db/rehome/table"
)

// Rewriting is an Engine that takes the rewrite of a whole group into its own
// hands, as an engine does that can copy what it need not decode. An Engine
// alone leaves the rows to the caller; test both ways.
type Rewriting struct {
	*Engine
	// Unsupported names columns that a rewrite refuses, for tests of what the
	// caller does then. The default is none.
	Unsupported []string
}

var _ table.Rewriter = Rewriting{}

// CanRewrite implements table.Rewriter.
func (r Rewriting) CanRewrite(ctx context.Context, s *table.Snapshot, _ []table.FragmentID) error {
	for _, field := range s.Schema.Fields {
		if slices.Contains(r.Unsupported, field.Name) {
			return table.Unsupportedf("memengine: table %s version %d: column %q of type %s cannot be rewritten", s.Table, s.Version, field.Name, field.Type)
		}
	}
	return ctx.Err()
}

// RewriteGroup implements table.Rewriter.
func (r Rewriting) RewriteGroup(ctx context.Context, req table.RewriteRequest) (table.Written, error) {
	if err := r.CanRewrite(ctx, req.Snapshot, req.Sources); err != nil {
		return table.Written{}, err
	}
	rows := r.Rows(ctx, req.Snapshot, req.Sources, table.ReadOptions{})
	out, err := r.WriteFragments(ctx, req.Snapshot.Schema, rows, req.Options)
	for _, id := range req.Sources {
		f, _ := req.Snapshot.Fragment(id)
		out.BytesRead += f.Bytes()
	}
	if req.Progress != nil {
		req.Progress(out.BytesRead, out.BytesWritten)
	}
	return out, err
}
