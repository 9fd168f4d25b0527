package version

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

var (
	someUUID = table.UUID{0x7e, 0xce, 0x35, 0xda, 0x27, 0xac, 0x4b, 0xc9, 0xa2, 0x0b, 0x53, 0x4f, 0x6a, 0xd0, 0x31, 0x22}
	someBase = proto.Uint32(7)
)

func fragmentWith(f *tablepb.DataFragment) func() *manifest.Contents {
	return func() *manifest.Contents {
		return contentsWith(&tablepb.Manifest{Fragments: []*tablepb.DataFragment{f}})
	}
}

func contentsWith(m *tablepb.Manifest, indexes ...*tablepb.IndexMetadata) *manifest.Contents {
	m.BasePaths = append(m.BasePaths, &tablepb.BasePath{Id: *someBase, IsDatasetRoot: true, Path: "/elsewhere/t.lance"})
	return &manifest.Contents{Manifest: m, Indexes: &tablepb.IndexSection{Indices: indexes}}
}

// referring are the fields of a manifest that name files, each with contents that
// have nothing but that reference and the object that must be kept for it.
var referring = map[string]struct {
	contents func() *manifest.Contents
	keeps    string
}{
	"Manifest.fragments.files.path": {
		fragmentWith(&tablepb.DataFragment{Files: []*tablepb.DataFile{{Path: "x.lance"}}}), "data/x.lance",
	},
	"Manifest.fragments.overlays.data_file.path": {
		fragmentWith(&tablepb.DataFragment{Overlays: []*tablepb.DataOverlayFile{{DataFile: &tablepb.DataFile{Path: "x.lance"}}}}), "data/x.lance",
	},
	// A deletion file is named by numbers.
	"Manifest.fragments.deletion_file.file_type":    deletionReference,
	"Manifest.fragments.deletion_file.read_version": deletionReference,
	"Manifest.fragments.deletion_file.id":           deletionReference,
	"Manifest.fragments.external_row_ids.path": {
		fragmentWith(&tablepb.DataFragment{RowIdSequence: &tablepb.DataFragment_ExternalRowIds{
			ExternalRowIds: &tablepb.ExternalFile{Path: "data/ids"}}}), "data/ids",
	},
	"Manifest.fragments.external_last_updated_at_versions.path": {
		fragmentWith(&tablepb.DataFragment{LastUpdatedAtVersionSequence: &tablepb.DataFragment_ExternalLastUpdatedAtVersions{
			ExternalLastUpdatedAtVersions: &tablepb.ExternalFile{Path: "data/updated"}}}), "data/updated",
	},
	"Manifest.fragments.external_created_at_versions.path": {
		fragmentWith(&tablepb.DataFragment{CreatedAtVersionSequence: &tablepb.DataFragment_ExternalCreatedAtVersions{
			ExternalCreatedAtVersions: &tablepb.ExternalFile{Path: "data/created"}}}), "data/created",
	},
	"Manifest.transaction_file": {
		func() *manifest.Contents { return contentsWith(&tablepb.Manifest{TransactionFile: "3-x.txn"}) }, "_transactions/3-x.txn",
	},
	"IndexSection.indices.uuid.uuid": indexReference,
	// Listed or not, all of the directory is kept.
	"IndexSection.indices.files.path": indexReference,
	// Also the content of a fragment reuse index, which lies in the index's directory.
	// What that refers to in turn is tested with a real one.
	"FragmentReuseIndexDetails.external.path": indexReference,
}

var deletionReference = struct {
	contents func() *manifest.Contents
	keeps    string
}{
	fragmentWith(&tablepb.DataFragment{Id: 4, DeletionFile: &tablepb.DeletionFile{FileType: tablepb.DeletionFile_BITMAP, ReadVersion: 9, Id: 77}}),
	"_deletions/4-9-77.bin",
}

var indexReference = struct {
	contents func() *manifest.Contents
	keeps    string
}{
	func() *manifest.Contents {
		return contentsWith(&tablepb.Manifest{}, &tablepb.IndexMetadata{Uuid: uuidMessage(someUUID)})
	},
	"_indices/7ece35da-27ac-4bc9-a20b-534f6ad03122/part/page_data.lance",
}

// inert are the fields that name no file.
var inert = []string{
	"Manifest.version", "Manifest.version_aux_data", "Manifest.schema_metadata", "Manifest.timestamp", "Manifest.tag",
	"Manifest.reader_feature_flags", "Manifest.writer_feature_flags", "Manifest.max_fragment_id", "Manifest.next_row_id",
	"Manifest.config", "Manifest.table_metadata", "Manifest.branch",
	"Manifest.writer_version.library", "Manifest.writer_version.version", "Manifest.writer_version.prerelease", "Manifest.writer_version.build_metadata",
	"Manifest.data_format.file_format", "Manifest.data_format.version",
	// Positions in the manifest's own file. The transaction there names files of this
	// version, which are found above, and of those before it, which keep their own.
	"Manifest.index_section", "Manifest.transaction_section", "Manifest.transaction_section_v14",
	// The schema. Its dictionaries are in the manifest's own file.
	"Manifest.fields.type", "Manifest.fields.name", "Manifest.fields.id", "Manifest.fields.parent_id", "Manifest.fields.logical_type",
	"Manifest.fields.nullable", "Manifest.fields.encoding", "Manifest.fields.dictionary.offset", "Manifest.fields.dictionary.length",
	"Manifest.fields.extension_name", "Manifest.fields.metadata", "Manifest.fields.storage_class",
	"Manifest.fields.unenforced_primary_key", "Manifest.fields.unenforced_primary_key_position",
	"Manifest.fields.unenforced_clustering_key", "Manifest.fields.unenforced_clustering_key_position",
	// Which root a file lies under: part of each reference.
	"Manifest.base_paths.id", "Manifest.base_paths.name", "Manifest.base_paths.is_dataset_root", "Manifest.base_paths.path",
	"Manifest.fragments.files.base_id", "Manifest.fragments.deletion_file.base_id", "Manifest.fragments.overlays.data_file.base_id",
	"IndexSection.indices.base_id",
	// What is in a file, and where in it.
	"Manifest.fragments.id", "Manifest.fragments.physical_rows", "Manifest.fragments.deletion_file.num_deleted_rows",
	"Manifest.fragments.files.fields", "Manifest.fragments.files.column_indices", "Manifest.fragments.files.file_major_version",
	"Manifest.fragments.files.file_minor_version", "Manifest.fragments.files.file_size_bytes",
	"Manifest.fragments.overlays.data_file.fields", "Manifest.fragments.overlays.data_file.column_indices", "Manifest.fragments.overlays.data_file.file_major_version",
	"Manifest.fragments.overlays.data_file.file_minor_version", "Manifest.fragments.overlays.data_file.file_size_bytes",
	"Manifest.fragments.inline_row_ids", "Manifest.fragments.inline_last_updated_at_versions", "Manifest.fragments.inline_created_at_versions",
	"Manifest.fragments.external_row_ids.offset", "Manifest.fragments.external_row_ids.size",
	"Manifest.fragments.external_last_updated_at_versions.offset", "Manifest.fragments.external_last_updated_at_versions.size",
	"Manifest.fragments.external_created_at_versions.offset", "Manifest.fragments.external_created_at_versions.size",
	// Indexes. The details of the fragment reuse index are looked into below, and
	// those of other kinds are about the files in the index's own directory.
	"IndexSection.indices.fields", "IndexSection.indices.name", "IndexSection.indices.dataset_version", "IndexSection.indices.fragment_bitmap",
	"IndexSection.indices.index_details", "IndexSection.indices.index_version", "IndexSection.indices.created_at", "IndexSection.indices.files.size_bytes",
	"FragmentReuseIndexDetails.inline", "FragmentReuseIndexDetails.external.offset", "FragmentReuseIndexDetails.external.size",
}

// A field that is new in the format fails here until somebody has decided whether
// it refers to files, and then has made the walk follow it: a clean-up that misses
// a kind of reference deletes files that are needed.
func TestEveryFieldOfAManifestIsKnownToReferToFilesOrNotTo(t *testing.T) {
	var leaves []string
	var walk func(prefix string, d protoreflect.MessageDescriptor)
	walk = func(prefix string, d protoreflect.MessageDescriptor) {
		for i := range d.Fields().Len() {
			f := d.Fields().Get(i)
			name := prefix + "." + string(f.Name())
			if m := f.Message(); m != nil && !f.IsMap() && strings.HasPrefix(string(m.FullName()), "rehome.") {
				walk(name, m)
				continue
			}
			leaves = append(leaves, name)
		}
	}
	for _, m := range []proto.Message{&tablepb.Manifest{}, &tablepb.IndexSection{}, &tablepb.FragmentReuseIndexDetails{}} {
		d := m.ProtoReflect().Descriptor()
		walk(string(d.Name()), d)
	}
	for _, name := range leaves {
		_, refers := referring[name]
		require.True(t, refers != slices.Contains(inert, name),
			"%s: say in this test whether it refers to files, and if it does make references.add follow it", name)
	}
	require.Len(t, leaves, len(referring)+len(inert), "a field is listed that is no longer there")
}

func TestEveryKindOfReferenceIsFollowed(t *testing.T) {
	ctx := context.Background()
	for name, c := range referring {
		refs := newReferences(store.NewMem())
		require.False(t, refs.has(c.keeps), name)
		require.NoError(t, refs.add(ctx, store.NewMem(), "", c.contents()), name)
		require.True(t, refs.has(c.keeps), name)
		require.False(t, refs.has("data/other.lance"), name)
		require.False(t, refs.has("_indices/00000000-0000-0000-0000-000000000000/page_data.lance"), name)
	}
}

func TestLargeValuesBesideADataFileAreKeptWithIt(t *testing.T) {
	refs := newReferences(store.NewMem())
	require.NoError(t, refs.add(context.Background(), nil, "", referring["Manifest.fragments.files.path"].contents()))
	require.True(t, refs.has("data/x/01000000000000000000000000000000.blob"))
	require.False(t, refs.has("data/y/01000000000000000000000000000000.blob"))
}

// A base path leads to another table, or back to this one.
func TestReferencesUnderABasePath(t *testing.T) {
	ctx := context.Background()
	local, err := store.NewLocal("/tables/t.lance")
	require.NoError(t, err)
	withFile := func(base *tablepb.BasePath) *manifest.Contents {
		c := fragmentWith(&tablepb.DataFragment{Files: []*tablepb.DataFile{{Path: "x.lance", BaseId: someBase}}})()
		base.Id = *someBase
		c.Manifest.BasePaths = []*tablepb.BasePath{base}
		return c
	}
	for what, c := range map[string]struct {
		base  *tablepb.BasePath
		dir   string
		keeps string // of this table; empty if the file is elsewhere
	}{
		"another table":                   {base: &tablepb.BasePath{IsDatasetRoot: true, Path: "/tables/u.lance"}},
		"this one":                        {base: &tablepb.BasePath{IsDatasetRoot: true, Path: "/tables/t.lance"}, keeps: "data/x.lance"},
		"this one, as a URI":              {base: &tablepb.BasePath{IsDatasetRoot: true, Path: "file:///tables/t.lance/"}, keeps: "data/x.lance"},
		"a directory of this one":         {base: &tablepb.BasePath{Path: "/tables/t.lance/_deletions"}, keeps: "_deletions/x.lance"},
		"a name that only begins alike":   {base: &tablepb.BasePath{IsDatasetRoot: true, Path: "/tables/t.lance2"}},
		"from a branch, the table":        {base: &tablepb.BasePath{IsDatasetRoot: true, Path: "/tables/t.lance"}, dir: "tree/b", keeps: "data/x.lance"},
		"from a branch, before the move":  {base: &tablepb.BasePath{IsDatasetRoot: true, Path: "/before/t.lance"}, dir: "tree/b", keeps: "data/x.lance"},
		"from a branch, some directory":   {base: &tablepb.BasePath{Path: "/imported"}, dir: "tree/b"},
		"from a branch, of another depth": {base: &tablepb.BasePath{IsDatasetRoot: true, Path: "/tables/t.lance/tree/a"}, dir: "tree/b", keeps: "data/x.lance"},
	} {
		refs := newReferences(local)
		require.NoError(t, refs.add(ctx, local, c.dir, withFile(c.base)), what)
		if c.keeps == "" {
			require.Empty(t, refs.objects, what)
			continue
		}
		require.True(t, refs.has(c.keeps), what)
	}
	// What a branch wrote itself is its own.
	refs := newReferences(local)
	require.NoError(t, refs.add(ctx, local, "tree/b", referring["Manifest.fragments.files.path"].contents()))
	require.True(t, refs.has("tree/b/data/x.lance"))
	require.False(t, refs.has("data/x.lance"))
}

// A reference that is not understood is not overlooked.
func TestReferencesOfAManifestThatIsNotUnderstoodAreRefused(t *testing.T) {
	ctx := context.Background()
	unknown := protowire.AppendTag(nil, 999, protowire.VarintType)
	unknown = protowire.AppendVarint(unknown, 1)
	for what, c := range map[string]func() *manifest.Contents{
		"a feature flag": func() *manifest.Contents { return contentsWith(&tablepb.Manifest{ReaderFeatureFlags: 1 << 6}) },
		"a field of a data file": func() *manifest.Contents {
			f := &tablepb.DataFile{Path: "x.lance"}
			f.ProtoReflect().SetUnknown(unknown)
			return fragmentWith(&tablepb.DataFragment{Files: []*tablepb.DataFile{f}})()
		},
		"a field of the manifest": func() *manifest.Contents {
			c := contentsWith(&tablepb.Manifest{})
			c.Manifest.ProtoReflect().SetUnknown(unknown)
			return c
		},
		"a field of an index": func() *manifest.Contents {
			ix := &tablepb.IndexMetadata{Uuid: uuidMessage(someUUID)}
			ix.ProtoReflect().SetUnknown(unknown)
			return contentsWith(&tablepb.Manifest{}, ix)
		},
		"a field of the details of a tagged history": func() *manifest.Contents {
			d := &tablepb.FragmentReuseIndexDetails{}
			d.ProtoReflect().SetUnknown(unknown)
			value, err := proto.Marshal(d)
			require.NoError(t, err)
			return contentsWith(&tablepb.Manifest{}, &tablepb.IndexMetadata{
				Uuid: uuidMessage(someUUID), Name: reuseIndexName, IndexVersion: proto.Int32(TaggedReuse),
				IndexDetails: &anypb.Any{TypeUrl: ReuseTypeURL, Value: value},
			})
		},
	} {
		err := newReferences(store.NewMem()).add(ctx, store.NewMem(), "", c())
		require.ErrorIs(t, err, table.ErrUnsupported, what)
	}
}
