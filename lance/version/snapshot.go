package version

import (
	"context"
	"fmt"
	"time"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/rowids"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// Version is the Handle of a snapshot: everything that was in the manifest file,
// to be changed into the next one without losing what we do not understand. It is
// immutable, and so are the messages in it; what was decoded of them it remembers.
type Version struct {
	Contents *manifest.Contents
	Scheme   manifest.Scheme
	Schema   *schema.Schema
	Bases    Bases
	rowIDs   rowids.Sequences
}

// Messages implements rowids.TableVersion.
func (v *Version) Messages() []*tablepb.DataFragment { return v.Contents.Manifest.GetFragments() }

// Fragment implements rowids.TableVersion.
func (v *Version) Fragment(m *tablepb.DataFragment) table.Fragment { return v.Bases.fragment(m) }

// RowIDs implements rowids.TableVersion.
func (v *Version) RowIDs() *rowids.Sequences { return &v.rowIDs }

// NextRowID implements rowids.TableVersion.
func (v *Version) NextRowID() uint64 { return v.Contents.Manifest.GetNextRowId() }

// Of returns the handle of a snapshot that this package made.
func Of(s *table.Snapshot) (*Version, error) {
	if s == nil {
		return nil, fmt.Errorf("lance: no snapshot was given")
	}
	v, ok := s.Handle.(*Version)
	if !ok {
		return nil, fmt.Errorf("lance: version %d of table %s was loaded by another engine", s.Version, s.Table)
	}
	return v, nil
}

// Snapshot puts a manifest into the terms of package table.
func (h *History) Snapshot(ctx context.Context, c *manifest.Contents, scheme manifest.Scheme) (*table.Snapshot, error) {
	m := c.Manifest
	where := fmt.Sprintf("lance: table %s version %d", h.root.Store, m.GetVersion())
	if err := manifest.CheckReader(m); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	sch, err := schema.FromProto(m.GetFields(), m.GetSchemaMetadata())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	v := &Version{Contents: c, Scheme: scheme, Schema: sch, Bases: basesOf(m)}
	s := &table.Snapshot{
		Table:          h.root.Store.String(),
		Version:        m.GetVersion(),
		Schema:         sch.ToTable(),
		NextFragmentID: nextFragmentID(m),
		StableRowIDs:   m.GetReaderFeatureFlags()&manifest.FlagStableRowIDs != 0,
		DataFormat:     dataFormat(m),
		Handle:         v,
	}
	if ts := m.GetTimestamp(); ts != nil {
		s.Timestamp = time.Unix(ts.GetSeconds(), int64(ts.GetNanos())).UTC()
	}
	for _, f := range m.GetFragments() {
		frag := v.Bases.fragment(f)
		if frag.Deletion != nil && frag.Deletion.Rows == 0 {
			// The writer did not record the number, and everybody needs it.
			if frag.Deletion.Rows, err = h.root.CountDeletions(ctx, frag); err != nil {
				return nil, fmt.Errorf("%s: %w", where, err)
			}
		}
		s.Fragments = append(s.Fragments, frag)
	}
	if s.Indexes, err = indexesOf(c.Indexes); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if s.Reuse, err = reuseOf(c.Indexes); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	return s, nil
}

// nextFragmentID is past the recorded high-water mark and past every fragment
// that is there: some writers let the mark fall behind.
func nextFragmentID(m *tablepb.Manifest) table.FragmentID {
	var next table.FragmentID
	if m.MaxFragmentId != nil {
		next = table.FragmentID(m.GetMaxFragmentId())
		if next <= table.MaxFragmentID {
			next++
		}
	}
	for _, f := range m.GetFragments() {
		next = max(next, table.FragmentID(f.GetId())+1)
	}
	return next
}

// dataFormat names the version of the data files. Manifests from before that was
// recorded have it in their files, or in a flag.
func dataFormat(m *tablepb.Manifest) string {
	if f := m.GetDataFormat().GetVersion(); f != "" {
		return f
	}
	for _, f := range m.GetFragments() {
		if files := f.GetFiles(); len(files) == 0 {
			continue
		} else if format := fileFormat(files[0]); files[0].GetFileMajorVersion() >= 2 || format == Format20 {
			return format
		}
		return legacyFormat
	}
	if m.GetWriterFeatureFlags()&manifest.FlagV2Format != 0 {
		return "2.0"
	}
	return legacyFormat
}

// legacyFormat is the first file format, whose files call themselves 0.2.
const legacyFormat = "0.1"

// Format20 is the format in which lists have columns of their own.
const Format20 = "2.0"
