package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// Opener returns the store at a location of its scheme. It reads nothing yet.
type Opener func(location string) (Store, error)

// Schemes says which store a location is in, by the scheme of its URI in lower case. A
// location without one is a path, which is the scheme "file". A program that has stores
// of its own adds them to what [LocalSchemes] returns.
type Schemes map[string]Opener

// LocalSchemes returns a new table of what is built in: paths, and file:// URIs of this
// machine.
func LocalSchemes() Schemes { return Schemes{"file": openFile} }

// Open returns the store at a location. A scheme that is not in the table is
// [table.ErrUnsupported].
func (s Schemes) Open(location string) (Store, error) {
	scheme, _, ok := strings.Cut(location, "://")
	if scheme = strings.ToLower(scheme); !ok {
		scheme = "file"
	}
	if open := s[scheme]; open != nil {
		return open(location)
	}
	var known []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		known = append(known, name+"://")
	}
	return nil, table.Unsupportedf("lance: %s: this program knows no store for %s://, only %s (a path is file://); it was built without one, or the scheme is misspelt",
		location, scheme, strings.Join(known, ", "))
}

func openFile(location string) (Store, error) {
	if strings.Contains(location, "://") {
		u, err := url.Parse(location)
		if err != nil {
			return nil, fmt.Errorf("lance: %s is no file URI: %w", location, err)
		}
		if u.Host != "" && u.Host != "localhost" {
			return nil, table.Unsupportedf("lance: %s names the host %q, and only files of this one can be opened", location, u.Host)
		}
		location = u.Path
	}
	if location == "" {
		return nil, fmt.Errorf("lance: the path of the table is empty: %w", table.ErrNotTable)
	}
	return NewLocal(location)
}

// Place is implemented by a store that is found by its location, so that the locations
// of others mean something beside it. It is optional.
type Place interface {
	// CheckRoot says, as [table.ErrNotTable], why the root can hold no table, if a look
	// at it alone tells.
	CheckRoot(ctx context.Context) error
}

// CheckRoot implements [Place].
func (l *Local) CheckRoot(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	switch info, err := os.Stat(l.root); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("lance: there is no directory %s: %w", l, table.ErrNotTable)
	case err == nil && !info.IsDir():
		return fmt.Errorf("lance: %s is a file, and a table is a directory: %w", l, table.ErrNotTable)
	}
	return nil
}
