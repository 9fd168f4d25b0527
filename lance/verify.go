package lance

import (
	"context"
	"errors"
	"fmt"
	"path"

	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/fri"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/rows"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

// Check implements table.Checker. It looks at what the format says and package
// table does not show:
//
//   - the manifest's flags and id mark fit its contents, and its transaction can be
//     read;
//   - in a table with stable row ids, every fragment has one for each of its physical
//     rows, below the mark of those that were given out, and versions for as many; no
//     two live rows have the same id;
//   - the metadata of every data file agrees with the manifest in version, rows
//     and columns, and describes pages that can be read;
//   - the files of every index are there and have the recorded sizes, segments of
//     one index do not overlap, and an external fragment reuse index is whole;
//   - a fragment reuse index of tagged transitions is announced by its flag, and the
//     labels of its stable partitions agree with their transitions, all of them.
//
// What is merely not supported is no finding.
func (e *Engine) Check(ctx context.Context, s *table.Snapshot, found func(table.Finding)) (map[string]int, error) {
	if err := e.root.Ready(ctx); err != nil {
		return nil, err
	}
	v, err := version.Of(s)
	if err != nil {
		return nil, err
	}
	c := checker{engine: e, snapshot: s, version: v, found: found, checked: map[string]int{}}
	for _, part := range []func(context.Context) error{c.manifest, c.rowIDs, c.files, c.indexes, c.reuse} {
		if err := part(ctx); err != nil {
			return c.checked, fmt.Errorf("lance: table %s version %d: check: %w", e.root.Store, s.Version, err)
		}
	}
	return c.checked, nil
}

type checker struct {
	engine   *Engine
	snapshot *table.Snapshot
	version  *version.Version
	found    func(table.Finding)
	checked  map[string]int
}

// finding reports err as one, a file that may not be read included, unless the check
// is being stopped.
func (c *checker) finding(kind, where string, err error) error {
	switch {
	case err == nil, errors.Is(err, table.ErrUnsupported):
		return nil
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	default:
		c.found(table.Finding{Kind: kind, Where: where, Err: err})
		return nil
	}
}

func (c *checker) corrupt(kind, where, format string, args ...any) {
	c.found(table.Finding{Kind: kind, Where: where, Err: table.Corruptf(format, args...)})
}

func (c *checker) manifest(ctx context.Context) error {
	m := c.version.Contents.Manifest
	where := fmt.Sprintf("version %d", m.GetVersion())
	c.checked["manifests"]++

	want := proto.CloneOf(m)
	manifest.SetFlags(want)
	if missing := want.GetReaderFeatureFlags() &^ m.GetReaderFeatureFlags(); missing != 0 {
		c.corrupt("manifest", where, "the reader flags %d are not set, so a reader that lacks the feature would read wrong rows", missing)
	}
	if missing := want.GetWriterFeatureFlags() &^ m.GetWriterFeatureFlags(); missing != 0 {
		c.corrupt("manifest", where, "the writer flags %d are not set, so a writer that lacks the feature would damage the table", missing)
	}
	for _, f := range m.GetFragments() {
		// Versions of Lance that always had a mark did not store that it is 0.
		if f.GetId() > uint64(m.GetMaxFragmentId()) {
			c.corrupt("manifest", where, "the mark of used fragment ids is below fragment %d, and some engines would give the id away again", f.GetId())
			break
		}
	}
	c.checked["transactions"]++
	_, err := c.engine.history.Transaction(ctx, c.version.Contents)
	return c.finding("manifest", where, err)
}

func (c *checker) files(ctx context.Context) error {
	leaves := map[int32]schema.Leaf{}
	for _, leaf := range c.version.Schema.Leaves() {
		leaves[leaf.FieldID] = leaf
	}
	for _, f := range c.snapshot.Fragments {
		for _, d := range f.Files {
			c.checked["files"]++
			where := fmt.Sprintf("fragment %d file %s", f.ID, d.Path)
			if err := c.finding("file", where, c.file(ctx, f, d, leaves)); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// file checks the metadata of a data file, as it is on disk now.
func (c *checker) file(ctx context.Context, f table.Fragment, d table.DataFile, leaves map[int32]schema.Leaf) error {
	of, err := c.engine.root.OpenUncached(ctx, d)
	if err != nil {
		return err
	}
	defer of.Release()
	if of.Rows() != f.PhysicalRows {
		return table.Corruptf("it has %d rows, the fragment %d", of.Rows(), f.PhysicalRows)
	}
	// Files of the first version of a format may call themselves by another
	// number; those are not opened here.
	if have := of.Version().String(); have != d.Format || have != c.snapshot.DataFormat {
		return table.Corruptf("it has format %s, the manifest says %s and the table is %s", have, d.Format, c.snapshot.DataFormat)
	}
	columns, err := rows.ColumnsOf(d)
	if err != nil {
		return err
	}
	stored := of.ColumnLeaves()
	for _, id := range d.Fields {
		leaf, live := leaves[id]
		if !live {
			continue
		}
		place, there, err := columns.Place(0, leaf, d.Format)
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		at := place.Column
		column, err := place.Open(of)
		if err != nil {
			return err
		}
		c.checked["columns"]++
		if at < len(stored) && stored[at].Field != nil && stored[at].Type != leaf.Type {
			return table.Corruptf("column %d was written as %q (%s), and the table reads it as %q (%s)",
				at, stored[at].Path, stored[at].Field.LogicalType, leaf.Path, leaf.Field.LogicalType)
		}
		if err := column.Check(leaf); err != nil && !errors.Is(err, table.ErrUnsupported) {
			return err
		}
	}
	return nil
}

func (c *checker) indexes(ctx context.Context) error {
	claimed := map[string]map[table.FragmentID]table.UUID{}
	for _, m := range c.snapshot.Indexes {
		if m.System {
			continue
		}
		where := fmt.Sprintf("index %s segment %s", m.Name, m.UUID)
		by := claimed[m.Name]
		if by == nil {
			by = map[table.FragmentID]table.UUID{}
			claimed[m.Name] = by
		}
		for _, id := range m.Coverage {
			if other, twice := by[id]; twice {
				c.corrupt("index", where, "fragment %d is covered by segment %s too, so its rows would be found twice", id, other)
				break
			}
			by[id] = m.UUID
		}
		if err := c.finding("index", where, c.indexFiles(ctx, m)); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) indexFiles(ctx context.Context, m table.IndexMeta) error {
	ix, ok := m.Handle.(*tablepb.IndexMetadata)
	if !ok {
		return nil
	}
	s, err := c.engine.root.StoreOf(c.version.Bases.Root(ix.BaseId))
	if err != nil {
		return err
	}
	dir := path.Join(c.version.Bases.Dir(ix.BaseId, objects.IndicesDir), m.UUID.String())
	if len(ix.GetFiles()) == 0 { // not recorded
		infos, err := s.List(ctx, dir)
		// Stock engines record segments that hold nothing, and write none of them.
		if nothing := m.CoverageKnown && len(m.Coverage) == 0; err == nil && len(infos) == 0 && !nothing {
			err = fmt.Errorf("there are no files in %s: %w", dir, table.ErrNotFound)
		}
		c.checked["index_files"] += len(infos)
		return err
	}
	for _, f := range ix.GetFiles() {
		c.checked["index_files"]++
		n, err := s.Stat(ctx, path.Join(dir, f.GetPath()))
		if err != nil {
			return err
		}
		if want := f.GetSizeBytes(); want != 0 && n != want {
			return table.Corruptf("file %s has %d bytes, the version records %d", f.GetPath(), n, want)
		}
	}
	return nil
}

func (c *checker) reuse(ctx context.Context) error {
	r := c.snapshot.Reuse
	if r == nil {
		return nil
	}
	where := fmt.Sprintf("fragment reuse index %s", r.UUID)
	if m := c.version.Contents.Manifest; r.IndexVersion >= version.TaggedReuse && m.GetReaderFeatureFlags()&m.GetWriterFeatureFlags()&manifest.FlagTaggedReuse == 0 {
		c.corrupt("fri", where, "it has index version %d and the flag %d is not set, so an engine that knows version 0 alone would lose it", r.IndexVersion, manifest.FlagTaggedReuse)
	}
	content, err := c.engine.history.ReuseContent(ctx, r)
	if err != nil || r.IndexVersion < version.TaggedReuse {
		return c.finding("fri", where, err)
	}
	h, err := fri.Recover(content, r.IndexVersion)
	if err != nil {
		return c.finding("fri", where, err)
	}
	open, err := c.engine.Partitions(c.snapshot)
	if err != nil {
		return err
	}
	for i, ref := range h.Partitions() {
		c.checked["label_files"]++
		err := h.At(i).CheckLabels(ctx, open)
		if err := c.finding("fri", fmt.Sprintf("%s transition %d label file %s", where, i, ref.MapID), err); err != nil {
			return err
		}
	}
	return nil
}

var _ table.Checker = (*Engine)(nil)
