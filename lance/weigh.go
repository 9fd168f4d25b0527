package lance

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/table"
)

// WeighHistory implements table.HistoryWeigher.
func (e *Engine) WeighHistory(ctx context.Context, s *table.Snapshot, limit int) (table.History, error) {
	var h table.History
	if err := e.root.Ready(ctx); err != nil {
		return h, err
	}
	stored, err := e.stored(ctx)
	if err != nil {
		return h, err
	}
	names, err := e.manifestNames(ctx)
	if err != nil {
		return h, err
	}
	needed, others := neededBy(s, newReferences(e.root.Store)), newReferences(e.root.Store)
	h.Versions = len(names)
	for _, name := range names[:min(len(names), limit)] {
		switch err := e.referencesOf(ctx, others, name); {
		case err == nil:
			h.Read++
		case errors.Is(err, errVersionGone):
			h.Versions--
		case errors.Is(err, table.ErrCorrupt), errors.Is(err, table.ErrUnsupported):
		default:
			return h, err
		}
	}
	for _, o := range stored {
		if !needed.has(o.Path) && others.has(o.Path) {
			h.HeldFiles++
			h.HeldBytes += o.Bytes
		}
	}
	return h, nil
}

// neededBy adds the files that hold the rows and the indexes of a version.
func neededBy(s *table.Snapshot, r *references) *references {
	for _, f := range s.Fragments {
		for _, d := range f.Files {
			if d.Base == "" {
				r.objects[d.Path] = true
				r.trees[strings.TrimSuffix(d.Path, path.Ext(d.Path))] = true
			}
		}
		if f.Deletion != nil && f.Deletion.Base == "" {
			r.objects[f.Deletion.Path] = true
		}
	}
	for _, x := range s.Indexes {
		r.trees[path.Join(objects.IndicesDir, x.UUID.String())] = true
	}
	if s.Reuse != nil {
		r.trees[path.Join(objects.IndicesDir, s.Reuse.UUID.String())] = true
	}
	return r
}

var _ table.HistoryWeigher = (*Engine)(nil)
