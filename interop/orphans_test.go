package interop_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/table"
)

// orphan is a file that no version of a table refers to, as it lies there after a
// commit that failed and did not clean up.
type orphan struct {
	// path is relative to the table.
	path  string
	bytes int64
}

// orphans lists the data files, deletion files and transaction files of a table
// that no version refers to, and makes sure that rehome finds the same. It reads every
// version that is there, so it says nothing about a table that somebody is committing
// to.
func orphans(ctx context.Context, path string) (out []orphan, err error) {
	e, err := lance.Open(ctx, path, lance.Options{})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	found := map[string]bool{}
	if _, err := e.Orphans(ctx, func(o table.Orphan) { found[o.Path] = true }); err != nil {
		return nil, err
	}
	referred, err := referredFiles(ctx, e, path)
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{"data", "_deletions", "_transactions"} {
		entries, err := os.ReadDir(filepath.Join(path, dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, entry := range entries {
			name := dir + "/" + entry.Name()
			if referred[name] == found[name] {
				return nil, fmt.Errorf("%s: a version refers to it: %t; rehome calls it an orphan: %t", name, referred[name], found[name])
			}
			if referred[name] {
				continue
			}
			info, err := entry.Info()
			if err != nil {
				return nil, err
			}
			out = append(out, orphan{name, info.Size()})
		}
	}
	slices.SortFunc(out, func(a, b orphan) int { return strings.Compare(a.path, b.path) })
	return out, nil
}

// referredFiles are the files that the versions of a table refer to.
func referredFiles(ctx context.Context, e *lance.Engine, path string) (map[string]bool, error) {
	entries, err := os.ReadDir(filepath.Join(path, "_versions"))
	if err != nil {
		return nil, err
	}
	referred := map[string]bool{}
	for _, entry := range entries {
		number, _, ok := manifest.ParseName(entry.Name())
		if !ok {
			continue
		}
		s, err := e.Load(ctx, number)
		if err != nil {
			return nil, err
		}
		for _, f := range s.Fragments {
			for _, d := range f.Files {
				referred[d.Path] = true
			}
			if f.Deletion != nil {
				referred[f.Deletion.Path] = true
			}
		}
		raw, err := os.ReadFile(filepath.Join(path, "_versions", entry.Name()))
		if err != nil {
			return nil, err
		}
		m, err := manifest.Decode(raw)
		if err != nil {
			return nil, err
		}
		referred["_transactions/"+m.Manifest.GetTransactionFile()] = true
	}
	return referred, nil
}

// ownUmask is what rehome runs under where its files are to be told from others':
// the group gets no access, and all others do, which nobody else would ask for.
const ownUmask = "0040"

// marked says whether a file was made under ownUmask.
func marked(info os.FileInfo) bool { return info.Mode()&0o044 == 0o004 }

// rehomeCompactMarked is rehomeCompact under ownUmask.
func rehomeCompactMarked(ctx context.Context, path string, flags ...string) (compactReport, error) {
	return compactWith(ctx, underOwnUmask(), path, flags...)
}

// underOwnUmask starts the binary under ownUmask.
func underOwnUmask() []string {
	return []string{"sh", "-c", "umask " + ownUmask + ` && exec "$0" "$@"`, rehomeBinary}
}
