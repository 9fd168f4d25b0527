package rows

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// Each column of an output opens every source, and decoding the metadata of a small one
// takes longer than reading it. The engine's cache is shared by all rewrites and may have
// lost it by then, so a rewrite holds on to it, in as much memory as the cache may take.

// keep remembers what was read of a source's file, if there is room.
func (g *rewriteGroup) keep(s *rewriteSource, file int, of *objects.DataFile) {
	m := of.Metadata()
	if g.kept+m.Bytes() > g.table.cacheBytes {
		g.forgotten = true
		return
	}
	g.kept += m.Bytes()
	if s.metadata == nil {
		s.metadata = make([]*datafile.Metadata, len(s.fragment.Files))
	}
	s.metadata[file] = m
}

// open opens a file of a source. The caller releases it.
func (g *rewriteGroup) open(ctx context.Context, s *rewriteSource, file int) (*objects.DataFile, error) {
	metadata := g.table.root.Metadata
	if s.metadata != nil && s.metadata[file] != nil {
		// The file was read in this rewrite, and is never written again.
		metadata = func(_ context.Context, o store.File, _ table.DataFile) (*datafile.File, error) {
			return s.metadata[file].Open(o), nil
		}
	}
	return g.table.root.OpenDataWith(ctx, s.fragment, s.fragment.Files[file], metadata)
}
