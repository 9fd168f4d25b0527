package version

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// Where branches are: tree/<branch>/ is laid out like a table.
const branchesDir = "tree"

// collectedDirs are the directories whose objects exist only to be referred to.
var collectedDirs = []string{objects.DataDir, objects.DeletionsDir, objects.IndicesDir, objects.TransactionsDir, objects.PartitionsDir}

// Orphans finds data, deletion, index, transaction and
// label files that no version refers to, of the table or of its branches, and
// unfinished manifests. The versions of a branch are not looked at by themselves
// (ErrUnsupported): others branches of the same table may refer to its files.
func (h *History) Orphans(ctx context.Context, found func(table.Orphan)) (versions int, err error) {
	if err := h.root.Ready(ctx); err != nil {
		return 0, err
	}
	// Listed before the versions are: what is committed in between is referred to
	// by a version that is still to be read.
	stored, err := h.stored(ctx)
	if err != nil {
		return 0, err
	}
	refs := newReferences(h.root.Store)
	if versions, err = h.references(ctx, refs); err != nil {
		return versions, err
	}
	for _, o := range stored {
		if !refs.has(o.Path) {
			o.Unfinished = unfinishedName(o.Path)
			o.Foreign = !o.Unfinished && foreignName(o.Path)
			found(o)
		}
	}
	return versions, nil
}

// stored lists everything that versions may refer to, by path.
func (h *History) stored(ctx context.Context) (out []table.Orphan, err error) {
	list := func(dir string, skip func(name string) bool) error {
		infos, err := h.root.Store.ListAll(ctx, dir)
		if err != nil {
			return fmt.Errorf("lance: table %s: %w", h.root.Store, err)
		}
		for _, info := range infos {
			if !skip(info.Name) {
				out = append(out, table.Orphan{Path: path.Join(dir, info.Name), Bytes: info.Size, Modified: info.Modified})
			}
		}
		return nil
	}
	for _, dir := range collectedDirs {
		if err := list(dir, func(string) bool { return false }); err != nil {
			return nil, err
		}
	}
	if err := list(objects.VersionsDir, func(name string) bool { return name == HintFile || isManifest(name) }); err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b table.Orphan) int { return strings.Compare(a.Path, b.Path) })
	return out, nil
}

// references collects what all versions of the table and of its branches refer to,
// detached ones included, and returns how many there are.
func (h *History) references(ctx context.Context, refs *references) (int, error) {
	names, err := h.manifestNames(ctx)
	if err != nil {
		return 0, err
	}
	read := 0
	for _, name := range names {
		switch err := h.referencesOf(ctx, refs, name); {
		case err == nil:
			read++
		case errors.Is(err, errVersionGone):
			// Cleaned up since it was listed.
		default:
			return read, fmt.Errorf("lance: table %s: what %s refers to cannot be told: %w", h.root.Store, name, err)
		}
	}
	return read, nil
}

var errVersionGone = errors.New("version gone")

func (h *History) referencesOf(ctx context.Context, refs *references, name string) error {
	data, err := store.ReadAll(ctx, h.root.Store, name, manifest.MaxSize)
	if errors.Is(err, table.ErrNotFound) {
		return errVersionGone
	}
	if err != nil {
		return err
	}
	c, err := manifest.Decode(data)
	if err != nil {
		return err
	}
	dir := strings.TrimSuffix(path.Dir(name), objects.VersionsDir)
	dir = strings.TrimSuffix(dir, "/")
	if dir == "" && c.Manifest.GetBranch() != "" {
		return table.Unsupportedf("it is of the branch %q, and other branches of the same table may refer to its files", c.Manifest.GetBranch())
	}
	return refs.add(ctx, h.root.Store, dir, c)
}

// manifestNames lists the manifests of the table and of its branches, by path.
func (h *History) manifestNames(ctx context.Context) ([]string, error) {
	infos, err := h.root.Store.ListAll(ctx, objects.VersionsDir)
	if err == nil {
		for i := range infos {
			infos[i].Name = path.Join(objects.VersionsDir, infos[i].Name)
		}
		var branches []store.Info
		branches, err = h.root.Store.ListAll(ctx, branchesDir)
		for _, info := range branches {
			if dir := path.Dir(info.Name); path.Base(dir) == objects.VersionsDir {
				info.Name = path.Join(branchesDir, info.Name)
				infos = append(infos, info)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lance: table %s: %w", h.root.Store, err)
	}
	var names []string
	for _, info := range infos {
		if isManifest(path.Base(info.Name)) {
			names = append(names, info.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// isManifest says whether a file in the directory of versions is one: of the
// history, in either scheme, or detached from it ("d<number>.manifest").
func isManifest(name string) bool {
	stem, ok := strings.CutSuffix(strings.TrimPrefix(name, "d"), ".manifest")
	return ok && stem != "" && strings.Trim(stem, "0123456789") == ""
}
