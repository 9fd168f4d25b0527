package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// tableSuffix ends the name of a table's directory in a LanceDB database.
const tableSuffix = ".lance"

// elsewhereError says that there is no table at a place, and where there are some.
type elsewhereError struct {
	message string
	err     error
}

func (e *elsewhereError) Error() string { return e.message }
func (e *elsewhereError) Unwrap() error { return e.err }

// openTable opens a table at a location, and says of a directory of tables which they are.
func (a *app) openTable(ctx context.Context, location string) (table.Engine, error) {
	engine, err := a.Open(ctx, location)
	if err == nil || !a.lance || !errors.Is(err, table.ErrNotTable) {
		return engine, err
	}
	if tables := tablesIn(location); len(tables) > 0 {
		return nil, &elsewhereError{fmt.Sprintf("%s is a directory of tables, and no table itself. It has %s: %s. Give one of them, for example %s",
			location, plural(len(tables), "table"), shorten(tables), filepath.Join(location, tables[0])), err}
	}
	if named := strings.TrimRight(location, "/") + tableSuffix; isTable(named) {
		return nil, &elsewhereError{fmt.Sprintf("%s is no table, but %s is: give that", location, named), err}
	}
	return nil, err
}

// tablesIn lists the tables of a local directory, as LanceDB lays them out.
func tablesIn(dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // the error of opening the table says more
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), tableSuffix) && isTable(filepath.Join(dir, e.Name())) {
			names = append(names, e.Name())
		}
	}
	return names
}

func isTable(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, "_versions"))
	return err == nil && info.IsDir()
}

// shorten lists names, not more than a person reads.
func shorten(names []string) string {
	const most = 20
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:most], ", ") + fmt.Sprintf(", ... and %d more", len(names)-most)
}
