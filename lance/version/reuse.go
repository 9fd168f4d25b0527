package version

import (
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/rehome-db/rehome/fri"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

const (
	// ReuseTypeURL is the type of the details of a fragment reuse index, in its entry.
	ReuseTypeURL = "/lance.table.FragmentReuseIndexDetails"
	// reuseInlineMax is the largest content that is kept in the manifest, which
	// everybody reads at every version.
	reuseInlineMax = 204_800
	// ReuseFile is the object of a larger content, in the index's own directory.
	ReuseFile = "details.binpb"
	// maxReuseSize bounds an external content: with one bit a row, some 16
	// billion moved rows.
	maxReuseSize = 2 << 30
	// TaggedReuse is the index version from which on the table needs a flag.
	TaggedReuse = 1
)

// hasTaggedReuse says whether the version has, or once had, a fragment reuse index
// of tagged transitions.
func hasTaggedReuse(v *Version) bool {
	m := v.Contents.Manifest
	return (m.GetReaderFeatureFlags()|m.GetWriterFeatureFlags())&manifest.FlagTaggedReuse != 0 ||
		ReuseEntry(v.Contents.Indexes).GetIndexVersion() >= TaggedReuse
}

// ReuseEntry finds the fragment reuse index among the indexes; nil if none.
func ReuseEntry(section *tablepb.IndexSection) *tablepb.IndexMetadata {
	for _, ix := range section.GetIndices() {
		if ix.GetName() == reuseIndexName {
			return ix
		}
	}
	return nil
}

func reuseDetails(ix *tablepb.IndexMetadata) (*tablepb.FragmentReuseIndexDetails, error) {
	d := &tablepb.FragmentReuseIndexDetails{}
	if url := ix.GetIndexDetails().GetTypeUrl(); url != ReuseTypeURL {
		return nil, table.Corruptf("fragment reuse index %s: its details are a %q", uuidOf(ix.GetUuid()), url)
	}
	if err := proto.Unmarshal(ix.GetIndexDetails().GetValue(), d); err != nil {
		return nil, table.Corruptf("fragment reuse index %s: %w", uuidOf(ix.GetUuid()), err)
	}
	return d, nil
}

// reuseOf describes the fragment reuse index of a version without reading it.
func reuseOf(section *tablepb.IndexSection) (*table.ReuseIndexMeta, error) {
	ix := ReuseEntry(section)
	if ix == nil {
		return nil, nil
	}
	d, err := reuseDetails(ix)
	if err != nil {
		return nil, err
	}
	out := &table.ReuseIndexMeta{UUID: uuidOf(ix.GetUuid()), IndexVersion: ix.GetIndexVersion(), Handle: d}
	if ext := d.GetExternal(); ext != nil {
		out.External = true
		out.Bytes = ext.GetSize()
		out.Path = path.Join(objects.IndicesDir, out.UUID.String(), ext.GetPath())
		if err := store.CheckName(ext.GetPath()); err != nil {
			return nil, table.Corruptf("fragment reuse index %s: %w", out.UUID, err)
		}
		if ix.BaseId != nil {
			return nil, table.Unsupportedf("fragment reuse index %s lies in another table", out.UUID)
		}
		return out, nil
	}
	out.Bytes = uint64(len(d.GetInline()))
	return out, nil
}

// ReuseIndex reads the content of the fragment reuse index of a snapshot. It is nil only if
// there is none.
func (h *History) ReuseIndex(ctx context.Context, s *table.Snapshot) ([]byte, error) {
	if err := h.root.Ready(ctx); err != nil {
		return nil, err
	}
	if _, err := Of(s); err != nil {
		return nil, err
	}
	if s.Reuse == nil {
		return nil, nil
	}
	content, err := h.ReuseContent(ctx, s.Reuse)
	if err != nil {
		return nil, fmt.Errorf("lance: table %s version %d: fragment reuse index %s: %w", h.root.Store, s.Version, s.Reuse.UUID, err)
	}
	return content, nil
}

// ReuseContent reads the content of a fragment reuse index. It is never nil.
func (h *History) ReuseContent(ctx context.Context, meta *table.ReuseIndexMeta) ([]byte, error) {
	d, ok := meta.Handle.(*tablepb.FragmentReuseIndexDetails)
	if !ok {
		return nil, fmt.Errorf("it was loaded by another engine")
	}
	ext := d.GetExternal()
	if ext == nil {
		// Never nil: that would say that there is no index.
		return append([]byte{}, d.GetInline()...), nil
	}
	data, err := store.ReadAll(ctx, h.root.Store, meta.Path, maxReuseSize)
	if err != nil {
		return nil, objects.Missing(err)
	}
	n := uint64(len(data))
	if ext.GetOffset() > n || ext.GetSize() > n-ext.GetOffset() {
		return nil, table.Corruptf("%s has %d bytes, and the index is said to be %d from %d", meta.Path, n, ext.GetSize(), ext.GetOffset())
	}
	return data[ext.GetOffset():][:ext.GetSize()], nil
}

// OnlyTrimmed refuses a fragment reuse index for a table with stable row ids, unless it
// is what a trim leaves of one that is there. Old releases wrote such.
func (h *History) OnlyTrimmed(ctx context.Context, base *table.Snapshot, up *table.ReuseIndexUpdate) error {
	refused := table.Unsupportedf("the table has stable row ids: a fragment reuse index would make stock readers take ids for addresses")
	if base.Reuse == nil {
		return refused
	}
	content, err := h.ReuseIndex(ctx, base)
	if err != nil {
		return err
	}
	had, err := fri.Recover(content, base.Reuse.IndexVersion)
	if err != nil {
		return err
	}
	left, err := fri.Recover(up.Content, up.IndexVersion)
	if err != nil {
		return err
	}
	if !left.PartOf(had) {
		return refused
	}
	return nil
}

// NewReuseEntry makes the entry of a fragment reuse index that replaces whatever
// the version has, created now, and writes its content where it belongs. The object that was
// written, if any, is returned also with an error.
//
// A tagged history (index version 1) is for good: a table that has had one is
// announced by a feature flag that stays, and so that stock engines go on with its
// form everything that is published later is said to be in it. That is no lie, for
// the content of version 0 is content of version 1.
func (h *History) NewReuseEntry(ctx context.Context, base *Version, next *Applied, up *table.ReuseIndexUpdate, now time.Time) (*tablepb.IndexMetadata, []table.Object, error) {
	indexVersion, coverage := up.IndexVersion, up.Coverage
	if hasTaggedReuse(base) {
		indexVersion = max(indexVersion, TaggedReuse)
	}
	if indexVersion < 0 || indexVersion > fri.MaxIndexVersion {
		return nil, nil, table.Unsupportedf("fragment reuse index version %d", indexVersion)
	}
	if indexVersion >= TaggedReuse {
		lineage, labels, err := reuseChange(base, nextFragmentID(next.Contents.Manifest), up.Content)
		if err != nil {
			return nil, nil, fmt.Errorf("fragment reuse index: %w", err)
		}
		// Engines that find a fragment in this coverage do not rewrite it without
		// recording a transition.
		coverage = slices.Concat(coverage, lineage)
		slices.Sort(coverage)
		coverage = slices.Compact(coverage)
		next.Refers = append(next.Refers, labels...)
	}
	// Readers cache what they decoded under the id, so content and id change
	// together.
	id := table.UUID(uuid.New())
	d := &tablepb.FragmentReuseIndexDetails{Content: &tablepb.FragmentReuseIndexDetails_Inline{Inline: up.Content}}
	var wrote []table.Object
	if len(up.Content) > reuseInlineMax {
		name := path.Join(objects.IndicesDir, id.String(), ReuseFile)
		wrote = append(wrote, table.Object{Kind: table.ObjectReuseIndex, Path: name, Bytes: uint64(len(up.Content))})
		if err := h.root.Store.Put(ctx, name, up.Content, store.WriteOptions{}); err != nil {
			return nil, wrote, err
		}
		d.Content = &tablepb.FragmentReuseIndexDetails_External{External: &tablepb.ExternalFile{
			Path: ReuseFile, Size: uint64(len(up.Content)),
		}}
	}
	value, err := proto.Marshal(d)
	if err != nil {
		return nil, wrote, fmt.Errorf("encode the details of the fragment reuse index: %w", err)
	}
	return &tablepb.IndexMetadata{
		Uuid:           uuidMessage(id),
		Name:           reuseIndexName,
		DatasetVersion: base.Contents.Manifest.GetVersion(),
		FragmentBitmap: manifest.CoverageBytes(coverage),
		IndexDetails:   &anypb.Any{TypeUrl: ReuseTypeURL, Value: value},
		IndexVersion:   proto.Int32(indexVersion),
		CreatedAt:      proto.Uint64(uint64(now.UnixMilli())),
	}, wrote, nil
}

// reuseChange checks a tagged history that is to be published and returns what the
// entry and the commit need to know of it: every fragment that it is about, and the
// label files that have to be there.
func reuseChange(base *Version, next table.FragmentID, content []byte) (lineage []table.FragmentID, labels []table.Object, err error) {
	h, err := fri.Recover(content, fri.MaxIndexVersion)
	if err != nil {
		return nil, nil, err
	}
	if base.Contents.Manifest.GetReaderFeatureFlags()&manifest.FlagStableRowIDs != 0 {
		return nil, nil, table.Unsupportedf("the table has stable row ids")
	}
	for i, t := range h.All() {
		for _, d := range t.Sources() {
			lineage = append(lineage, d.ID)
		}
		for _, d := range t.Destinations() {
			if !t.Followed() {
				continue // what it says of destinations is carried and not vouched for
			}
			lineage = append(lineage, d.ID)
			// A transition comes with its fragments or after them: an address
			// that leads to one that is yet to be would be somebody else's.
			if d.ID >= next {
				return nil, nil, fmt.Errorf("transition %d leads to fragment %d, which no version has had: %w", i, d.ID, table.ErrNotFound)
			}
		}
	}
	for i, ref := range h.Partitions() {
		switch {
		case !ref.HasBase:
			labels = append(labels, table.Object{Kind: table.ObjectPartition, Path: objects.LabelPath(ref.MapID), Bytes: ref.Bytes})
		case base.Bases[ref.Base] == nil:
			return nil, nil, table.Corruptf("transition %d: label file %s lies under base %d, which is not listed", i, ref.MapID, ref.Base)
		}
	}
	return lineage, labels, nil
}
