package store

import (
	"fmt"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// tempPrefix marks unfinished objects on disk. Every engine ignores such names
// when it lists versions: it looks for a ".manifest" suffix, which they do not
// have either.
const tempPrefix = ".tmp_"

func isTemp(name string) bool { return strings.HasPrefix(name, tempPrefix) }

func notFound(name string) error {
	return fmt.Errorf("store: %s: %w", name, table.ErrNotFound)
}

func exists(name string) error { return fmt.Errorf("store: %s: %w", name, ErrExists) }

func ioError(verb, name string, err error) error {
	return fmt.Errorf("store: %s %s: %w", verb, name, err)
}
