package version

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/table"
)

// Weigh tells what the versions of the table keep that s does not need. It reads up to limit
// of their manifests.
func (h *History) Weigh(ctx context.Context, s *table.Snapshot, limit int) (table.History, error) {
	var out table.History
	if err := h.root.Ready(ctx); err != nil {
		return out, err
	}
	stored, err := h.stored(ctx)
	if err != nil {
		return out, err
	}
	names, err := h.manifestNames(ctx)
	if err != nil {
		return out, err
	}
	needed, others := neededBy(s, newReferences(h.root.Store)), newReferences(h.root.Store)
	out.Versions = len(names)
	for _, name := range names[:min(len(names), limit)] {
		switch err := h.referencesOf(ctx, others, name); {
		case err == nil:
			out.Read++
		case errors.Is(err, errVersionGone):
			out.Versions--
		case errors.Is(err, table.ErrCorrupt), errors.Is(err, table.ErrUnsupported):
		default:
			return out, err
		}
	}
	for _, o := range stored {
		if !needed.has(o.Path) && others.has(o.Path) {
			out.HeldFiles++
			out.HeldBytes += o.Bytes
		}
	}
	return out, nil
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
