package version

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/deletion"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/table"
)

// Bases are the other roots that a version's files may lie under, by id.
type Bases map[uint32]*tablepb.BasePath

func basesOf(m *tablepb.Manifest) Bases {
	out := make(Bases, len(m.GetBasePaths()))
	for _, b := range m.GetBasePaths() {
		out[b.GetId()] = b
	}
	return out
}

// Root is the path of a base; empty for the table's own root.
func (b Bases) Root(id *uint32) string {
	if id == nil {
		return ""
	}
	base, listed := b[*id]
	if !listed {
		// Of a manifest's own fragments this was checked; a transaction may be
		// older than the list.
		return fmt.Sprintf("unlisted base %d", *id)
	}
	return base.GetPath()
}

// Dir is where objects of a kind lie in a base: in the usual directory if the base
// is the root of a table, directly in it otherwise.
func (b Bases) Dir(id *uint32, usual string) string {
	if id != nil && !b[*id].GetIsDatasetRoot() {
		return ""
	}
	return usual
}

// id is the number of the base with the given root, nil for the table's own.
func (b Bases) id(root string) (*uint32, error) {
	if root == "" {
		return nil, nil
	}
	for id, base := range b {
		if base.GetPath() == root {
			return proto.Uint32(id), nil
		}
	}
	return nil, fmt.Errorf("the version lists no base path %s", root)
}

// fragment puts a fragment into the terms of package table.
func (b Bases) fragment(f *tablepb.DataFragment) table.Fragment {
	out := table.Fragment{ID: table.FragmentID(f.GetId()), PhysicalRows: f.GetPhysicalRows()}
	for _, d := range f.GetFiles() {
		out.Files = append(out.Files, b.dataFile(d))
	}
	if d := f.GetDeletionFile(); d != nil {
		out.Deletion = &table.DeletionRef{
			Path: path.Join(b.Dir(d.BaseId, objects.DeletionsDir), objects.DeletionName(f.GetId(), d)),
			Rows: d.GetNumDeletedRows(),
			Base: b.Root(d.BaseId),
		}
	}
	return out
}

func (b Bases) dataFile(d *tablepb.DataFile) table.DataFile {
	return table.DataFile{
		Path:    path.Join(b.Dir(d.BaseId, objects.DataDir), d.GetPath()),
		Fields:  d.GetFields(),
		Columns: d.GetColumnIndices(),
		Format:  fileFormat(d),
		Bytes:   d.GetFileSizeBytes(),
		Base:    b.Root(d.BaseId),
	}
}

func fileFormat(d *tablepb.DataFile) string {
	if d.GetFileMajorVersion() == 0 && d.GetFileMinorVersion() == 3 {
		return Format20 // what its files call themselves
	}
	return fmt.Sprintf("%d.%d", d.GetFileMajorVersion(), d.GetFileMinorVersion())
}

// message puts a fragment back into the format's terms. It is the inverse of
// fragment as far as package table knows fragments; what else the format has must
// come from the manifest's own message.
func (b Bases) message(f table.Fragment) (*tablepb.DataFragment, error) {
	out := &tablepb.DataFragment{Id: uint64(f.ID), PhysicalRows: f.PhysicalRows}
	for _, d := range f.Files {
		m, err := b.fileMessage(d)
		if err != nil {
			return nil, fmt.Errorf("fragment %d: file %s: %w", f.ID, d.Path, err)
		}
		out.Files = append(out.Files, m)
	}
	if f.Deletion != nil {
		m, err := b.deletionMessage(f.ID, *f.Deletion)
		if err != nil {
			return nil, fmt.Errorf("fragment %d: deletion file %s: %w", f.ID, f.Deletion.Path, err)
		}
		out.DeletionFile = m
	}
	return out, nil
}

func (b Bases) fileMessage(d table.DataFile) (*tablepb.DataFile, error) {
	id, err := b.id(d.Base)
	if err != nil {
		return nil, err
	}
	major, minor, ok := strings.Cut(d.Format, ".")
	maj, err1 := strconv.ParseUint(major, 10, 16)
	mnr, err2 := strconv.ParseUint(minor, 10, 16)
	if !ok || err1 != nil || err2 != nil {
		return nil, fmt.Errorf("%q is no format version", d.Format)
	}
	name, err := within(d.Path, b.Dir(id, objects.DataDir))
	if err != nil {
		return nil, err
	}
	return &tablepb.DataFile{
		Path: name, Fields: d.Fields, ColumnIndices: d.Columns,
		FileMajorVersion: uint32(maj), FileMinorVersion: uint32(mnr), FileSizeBytes: d.Bytes, BaseId: id,
	}, nil
}

// within strips the directory from a path that must lie in it.
func within(p, dir string) (string, error) {
	if dir == "" {
		return p, nil
	}
	name, ok := strings.CutPrefix(p, dir+"/")
	if !ok || name == "" {
		return "", fmt.Errorf("the path is not in %s", dir)
	}
	return name, nil
}

func (b Bases) deletionMessage(id table.FragmentID, ref table.DeletionRef) (*tablepb.DeletionFile, error) {
	base, err := b.id(ref.Base)
	if err != nil {
		return nil, err
	}
	name, err := within(ref.Path, b.Dir(base, objects.DeletionsDir))
	if err != nil {
		return nil, err
	}
	out := &tablepb.DeletionFile{NumDeletedRows: ref.Rows, BaseId: base}
	stem, ext, _ := strings.Cut(name, ".")
	if ext == deletion.Bitmap.Ext() {
		out.FileType = tablepb.DeletionFile_BITMAP
	}
	parts := strings.Split(stem, "-")
	if len(parts) == 3 {
		out.ReadVersion, _ = strconv.ParseUint(parts[1], 10, 64)
		out.Id, _ = strconv.ParseUint(parts[2], 10, 64)
	}
	// Whatever was not understood above makes another name than this one.
	if want := objects.DeletionName(uint64(id), out); want != name {
		return nil, fmt.Errorf("a deletion file of fragment %d cannot be called %q", id, name)
	}
	return out, nil
}

// withDeletion returns a copy of a fragment's message with another deletion file.
func withDeletion(f *tablepb.DataFragment, d *tablepb.DeletionFile) *tablepb.DataFragment {
	out := proto.CloneOf(f)
	out.DeletionFile = d
	return out
}
