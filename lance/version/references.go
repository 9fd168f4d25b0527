package version

import (
	"context"
	"fmt"
	"path"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/rehome-db/rehome/fri"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// references are the objects that some versions of a table need: what a clean-up
// has to keep. They are collected from everything in a manifest that names a file,
// and the test TestEveryFieldOfAManifestIsKnownToReferToFilesOrNotTo fails for a
// field that nobody has decided about. A manifest with a field that is not known
// at all is refused: what it refers to cannot be known.
//
// It is a set to keep, so doubtful objects are in it. It cannot contain what tables
// elsewhere refer to (shallow clones that are no branches): this table does not list them.
type references struct {
	// root is the table's, to recognise a base path that leads back to it.
	root string
	// objects are paths relative to the root; trees are directories of which
	// everything is needed.
	objects, trees map[string]bool
	// histories are the fragment reuse indexes that were looked into; their
	// content changes with their id.
	histories map[table.UUID]bool
}

func newReferences(s store.Store) *references {
	return &references{
		root: path.Clean(s.String()), objects: map[string]bool{}, trees: map[string]bool{}, histories: map[table.UUID]bool{},
	}
}

// has says whether an object, given by its path relative to the table, is needed.
func (r *references) has(name string) bool {
	if r.objects[name] {
		return true
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if r.trees[dir] {
			return true
		}
	}
	return false
}

// holder is a manifest whose references are being collected.
type holder struct {
	*references
	bases Bases
	// dir is where the manifest's own files lie, relative to the table: empty for
	// the table itself, tree/<branch> for a branch.
	dir string
}

// add collects what a manifest refers to. dir is the directory of the branch that
// it belongs to, empty for the main one. Content that is not in the manifest is
// read from s.
func (r *references) add(ctx context.Context, s store.Store, dir string, c *manifest.Contents) error {
	m := c.Manifest
	if err := manifest.CheckReader(m); err != nil {
		return err
	}
	for _, message := range []proto.Message{m, c.Indexes} {
		if name := unknownField(message.ProtoReflect()); name != "" {
			return table.Unsupportedf("%s is not known here, and may refer to files", name)
		}
	}
	h := holder{references: r, bases: basesOf(m), dir: dir}
	for _, f := range m.GetFragments() {
		h.fragment(f)
	}
	if name := m.GetTransactionFile(); name != "" {
		h.object(nil, objects.TransactionsDir, name)
	}
	for _, ix := range c.Indexes.GetIndices() {
		// All of the directory, whatever the entry lists of it.
		h.tree(ix.BaseId, objects.IndicesDir, uuidOf(ix.GetUuid()).String())
		if ix.GetName() != reuseIndexName {
			continue
		}
		if err := h.labels(ctx, s, ix); err != nil {
			return fmt.Errorf("fragment reuse index %s: %w", uuidOf(ix.GetUuid()), err)
		}
	}
	return nil
}

func (h holder) fragment(f *tablepb.DataFragment) {
	for _, d := range f.GetFiles() {
		h.dataFile(d)
	}
	for _, o := range f.GetOverlays() {
		h.dataFile(o.GetDataFile())
	}
	if d := f.GetDeletionFile(); d != nil {
		h.object(d.BaseId, objects.DeletionsDir, objects.DeletionName(f.GetId(), d))
	}
	for _, x := range []*tablepb.ExternalFile{
		f.GetExternalRowIds(), f.GetExternalLastUpdatedAtVersions(), f.GetExternalCreatedAtVersions(),
	} {
		if x != nil {
			h.object(nil, "", x.GetPath())
		}
	}
}

func (h holder) dataFile(d *tablepb.DataFile) {
	h.object(d.BaseId, objects.DataDir, d.GetPath())
	// Large values can lie in files of their own, in a directory that is called
	// like the data file: data/x.lance, data/x/*.blob. No manifest names them.
	h.tree(d.BaseId, objects.DataDir, strings.TrimSuffix(d.GetPath(), path.Ext(d.GetPath())))
}

// labels collects the label files of a tagged history.
func (h holder) labels(ctx context.Context, s store.Store, ix *tablepb.IndexMetadata) error {
	id := uuidOf(ix.GetUuid())
	if ix.GetIndexVersion() < TaggedReuse || h.histories[id] {
		return nil
	}
	d, err := reuseDetails(ix)
	if err != nil {
		return err
	}
	if name := unknownField(d.ProtoReflect()); name != "" {
		return table.Unsupportedf("%s is not known here, and may refer to files", name)
	}
	content := d.GetInline()
	if ext := d.GetExternal(); ext != nil {
		place, ours := h.place(ix.BaseId, objects.IndicesDir, path.Join(id.String(), ext.GetPath()))
		if !ours {
			return table.Unsupportedf("it lies in another table")
		}
		if content, err = readExternal(ctx, s, place, ext); err != nil {
			return err
		}
	}
	history, err := fri.Recover(content, ix.GetIndexVersion())
	if err != nil {
		return err
	}
	if bad := history.Damaged(); len(bad) > 0 && ix.GetIndexVersion() >= TaggedReuse {
		return history.Damage(bad[0]) // it may refer to a label file
	}
	for _, ref := range history.Partitions() {
		var base *uint32
		if ref.HasBase {
			base = &ref.Base
		}
		h.tree(base, objects.PartitionsDir, ref.MapID)
	}
	h.histories[id] = true
	return nil
}

func (h holder) object(base *uint32, usual, name string) {
	if place, ours := h.place(base, usual, name); ours {
		h.objects[place] = true
	}
}

func (h holder) tree(base *uint32, usual, name string) {
	if place, ours := h.place(base, usual, name); ours {
		h.trees[place] = true
	}
}

// place is where an object lies, relative to the table's root; ours is false if
// that is under some other root.
func (h holder) place(id *uint32, usual, name string) (place string, ours bool) {
	if id == nil {
		return path.Join(h.dir, usual, name), true
	}
	base := h.bases[*id]
	if h.dir != "" && base.GetIsDatasetRoot() {
		// A branch refers to the table that it is part of, by a path that was
		// right when the branch was made. The table may have been moved since.
		return path.Join(usual, name), true
	}
	full := path.Join(strings.TrimPrefix(base.GetPath(), "file://"), h.bases.Dir(id, usual), name)
	return strings.CutPrefix(full, h.root+"/")
}

// readExternal reads a part of a file that a manifest leaves its content in.
func readExternal(ctx context.Context, s store.Store, name string, ext *tablepb.ExternalFile) ([]byte, error) {
	data, err := store.ReadAll(ctx, s, name, maxReuseSize)
	if err != nil {
		return nil, objects.Missing(err)
	}
	n := uint64(len(data))
	if ext.GetOffset() > n || ext.GetSize() > n-ext.GetOffset() {
		return nil, table.Corruptf("%s has %d bytes, and the content is said to be %d from %d", name, n, ext.GetSize(), ext.GetOffset())
	}
	return data[ext.GetOffset():][:ext.GetSize()], nil
}

// unknownField names a field that the message, or one in it, has and that is not
// declared here; empty if there is none.
func unknownField(m protoreflect.Message) (name string) {
	if b := m.GetUnknown(); len(b) > 0 {
		number, _, _ := protowire.ConsumeTag(b)
		return fmt.Sprintf("field %d of %s", number, m.Descriptor().Name())
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Message() == nil || fd.IsMap():
		case fd.IsList():
			for i := 0; i < v.List().Len() && name == ""; i++ {
				name = unknownField(v.List().Get(i).Message())
			}
		default:
			name = unknownField(v.Message())
		}
		return name == ""
	})
	return name
}
