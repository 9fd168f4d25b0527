package lance

import (
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/version"
)

// rowTable reads, writes and rewrites the rows of one table. It is safe for concurrent
// use.
type rowTable struct {
	root       *objects.Root
	history    *version.History
	cacheBytes int64
}

// newRowTable returns the rows of the table at a root. Each rewrite keeps up to
// cacheBytes of the metadata of its sources.
func newRowTable(root *objects.Root, history *version.History, cacheBytes int64) *rowTable {
	return &rowTable{root: root, history: history, cacheBytes: cacheBytes}
}
