package rows

import (
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/version"
)

// Table reads, writes and rewrites the rows of one table. It is safe for concurrent
// use.
type Table struct {
	root       *objects.Root
	history    *version.History
	cacheBytes int64
}

// NewTable returns the rows of the table at a root. Each rewrite keeps up to
// cacheBytes of the metadata of its sources.
func NewTable(root *objects.Root, history *version.History, cacheBytes int64) *Table {
	return &Table{root: root, history: history, cacheBytes: cacheBytes}
}
