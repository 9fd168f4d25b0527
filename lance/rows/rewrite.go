package rows

import (
	"context"
	"fmt"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

// CanRewrite implements table.Rewriter. It reads the metadata of every data file
// of the sources, and their deletion vectors, but no column data, unless a dictionary
// column could have more values than its indices tell apart.
func (t *Table) CanRewrite(ctx context.Context, s *table.Snapshot, sources []table.FragmentID) error {
	if _, err := t.prepareRewrite(ctx, s, sources); err != nil {
		return t.rewriteError(s, err)
	}
	return nil
}

// RewriteGroup writes the live rows of some fragments into new files. It works in level space, one leaf
// column at a time: pages of the sources are decoded to levels and values, deleted
// rows are dropped, and what is left is gathered into new pages. Nested arrays are
// never put together, and memory is a few pages for each column that is being
// worked on, of which there are at most req.Threads.
//
// New files have the table's format and schema, whatever those of the sources,
// and one file is one fragment.
func (t *Table) RewriteGroup(ctx context.Context, req table.RewriteRequest) (table.Written, error) {
	group, err := t.prepareRewrite(ctx, req.Snapshot, req.Sources)
	if err != nil {
		return table.Written{}, t.rewriteError(req.Snapshot, err)
	}
	outputs, err := group.plan(withDefaults(req.Options))
	if err != nil {
		return table.Written{}, t.rewriteError(req.Snapshot, err)
	}
	out, err := newRewriteRun(group, outputs, req).run(ctx)
	if err != nil {
		return out, t.rewriteError(req.Snapshot, err)
	}
	return out, nil
}

func (t *Table) rewriteError(s *table.Snapshot, err error) error {
	if s == nil {
		return fmt.Errorf("lance: table %s: rewrite: %w", t.root.Store, err)
	}
	return fmt.Errorf("lance: table %s version %d: rewrite: %w", t.root.Store, s.Version, err)
}

// rewriteGroup is the sources of a rewrite, checked.
type rewriteGroup struct {
	table   *Table
	schema  *schema.Schema
	format  datafile.Version
	leaves  []schema.Leaf
	sources []rewriteSource
	// bytes is the size of each leaf's column over all sources, and items that of its
	// dictionaries where there can be too many values for one.
	bytes, items []uint64
	// layers are what all pages of a leaf declare, see addLayers.
	layers [][]level.Layer
	// kept is the size of the sources' metadata that is kept; forgotten says that some is
	// not.
	kept      int64
	forgotten bool
}

// rewriteSource is one fragment, and where in its files each leaf lies.
type rewriteSource struct {
	fragment table.Fragment
	dead     *deletion.Vector
	places   []leafPlace          // by leaf
	absent   []absence            // by leaf
	bytes    uint64               // of all columns
	metadata []*datafile.Metadata // by file, see keep; nil if none is
}

// prepareRewrite finds everything out that can make a rewrite impossible before
// any of it is done.
func (t *Table) prepareRewrite(ctx context.Context, s *table.Snapshot, ids []table.FragmentID) (*rewriteGroup, error) {
	if err := t.root.Ready(ctx); err != nil {
		return nil, err
	}
	v, err := version.Of(s)
	if err != nil {
		return nil, err
	}
	// A commit would refuse it too, but after all the work.
	if err := manifest.CheckWriter(v.Contents.Manifest); err != nil {
		return nil, err
	}
	g := &rewriteGroup{table: t, schema: v.Schema, leaves: v.Schema.Leaves()}
	var fragments []table.Fragment
	for _, id := range ids {
		f, ok := s.Fragment(id)
		if !ok {
			return nil, fmt.Errorf("there is no fragment %d: %w", id, table.ErrNotFound)
		}
		fragments = append(fragments, f)
	}
	if g.format, err = t.pagesOf(ctx, s, fragments); err != nil {
		return nil, err
	}
	for _, leaf := range g.leaves {
		if err := datafile.CanWrite(g.format, leaf); err != nil {
			return nil, err
		}
	}
	g.bytes, g.items = make([]uint64, len(g.leaves)), make([]uint64, len(g.leaves))
	g.layers = make([][]level.Layer, len(g.leaves))
	for _, f := range fragments {
		source, err := g.prepareSource(ctx, f)
		if err != nil {
			return nil, err
		}
		g.sources = append(g.sources, source)
	}
	return g, g.checkIndexes(ctx)
}

func (g *rewriteGroup) prepareSource(ctx context.Context, f table.Fragment) (rewriteSource, error) {
	s := rewriteSource{fragment: f}
	var err error
	if s.places, err = placeLeaves(f, g.leaves); err != nil {
		return s, err
	}
	if s.absent, err = findAbsent(f, g.schema, g.leaves, s.places); err != nil {
		return s, err
	}
	for i, p := range s.places {
		if p.file < 0 {
			g.addLayers(i, g.leaves[i].Layers)
		}
	}
	if g.format == datafile.V2_0 {
		if err = checkNullStructs(f, g.leaves, s.places, s.absent); err != nil {
			return s, err
		}
	}
	if s.dead, err = g.table.root.Deletions(ctx, f); err != nil {
		return s, err
	}
	for file, d := range f.Files {
		if err := g.checkFile(ctx, &s, file, d); err != nil {
			return s, err
		}
	}
	return s, nil
}

// checkFile checks that every column that the source needs of a file can be read.
func (g *rewriteGroup) checkFile(ctx context.Context, s *rewriteSource, file int, d table.DataFile) error {
	var of *objects.DataFile
	for i, p := range s.places {
		if p.file != file {
			continue
		}
		if of == nil {
			// Files of dropped columns only are not even opened.
			var err error
			if of, err = g.table.root.OpenData(ctx, s.fragment, d); err != nil {
				return err
			}
			defer of.Release()
			g.keep(s, file, of)
		}
		column, err := p.Open(of)
		if err == nil {
			err = column.Check(g.leaves[i])
		}
		if err != nil {
			return fmt.Errorf("fragment %d: %w", s.fragment.ID, err)
		}
		g.bytes[i] += column.Bytes()
		g.addLayers(i, column.Layers(g.leaves[i]))
		if g.leaves[i].Indexes() > 0 {
			g.items[i] += dictionaryItems(column)
		}
		s.bytes += column.Bytes()
	}
	return nil
}
