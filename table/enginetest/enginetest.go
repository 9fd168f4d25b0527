package enginetest

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/table"
)

// Config says how to reach the engine under test. Its functions are called from
// tests that run in parallel.
type Config struct {
	// New makes an empty table with the given columns. What it needs to clean up
	// it registers with t.Cleanup.
	New func(t *testing.T, schema table.Schema) (table.Engine, Ops)

	// Schema is the columns that the suite writes. The first must be a non-null
	// int64; the others can be bool, int32, int64, float32, float64, utf8, binary
	// and fixed-size lists of float32. The default is [DefaultSchema].
	Schema table.Schema

	// ReuseIndex makes the content of a fragment reuse index of at least so many
	// bytes, for an engine that looks into it. Contents of different sizes differ.
	// The default is arbitrary bytes.
	ReuseIndex func(t *testing.T, size int) []byte

	// OpenNothing opens or loads a place that holds no table, and returns the
	// error. The default is to skip that test.
	OpenNothing func(t *testing.T) error

	// Unrewritable makes a table, with rows, that the engine's Rewriter cannot
	// rewrite. The default is to skip that test.
	Unrewritable func(t *testing.T) (table.Engine, Ops)
}

// Ops changes rows, as a user of the engine would. Safe for concurrent use.
type Ops interface {
	// Append commits the rows of rec, which has the table's columns, as one
	// fragment.
	Append(ctx context.Context, rec arrow.RecordBatch) error
	// DeleteRows commits the deletion of the rows at addrs. Whether a fragment
	// that has no live row left stays is the engine's choice.
	DeleteRows(ctx context.Context, addrs ...table.RowAddr) error
}

// ObjectLister is implemented by Ops that can list the stored objects. With it
// the suite finds what an attempt left behind.
type ObjectLister interface {
	// Objects lists what a commit can refer to (table.ObjectKind), used or not.
	// What makes up the versions themselves is not in the list.
	Objects(ctx context.Context) ([]table.Object, error)
}

// Indexer is implemented by Ops that can add a secondary index. It need not be
// one that answers queries: only its metadata matters.
type Indexer interface {
	// AddIndex commits an index segment with meta's name, fields and coverage,
	// and returns its id.
	AddIndex(ctx context.Context, meta table.IndexMeta) (table.UUID, error)
}

// Run tests the engine.
func Run(t *testing.T, cfg Config) {
	if cfg.Schema.Fields == nil {
		cfg.Schema = DefaultSchema()
	}
	if cfg.ReuseIndex == nil {
		cfg.ReuseIndex = arbitraryBytes
	}
	for _, part := range []struct {
		name string
		test func(*testing.T, Config)
	}{
		{"Load", testLoad},
		{"Transactions", testTransactions},
		{"Rows", testRows},
		{"Take", testTake},
		{"WriteFragments", testWrite},
		{"Deletions", testDeletions},
		{"Commit", testCommit},
		{"CommitRefuses", testCommitRefuses},
		{"Indexes", testIndexes},
		{"ReuseIndex", testReuseIndex},
		{"ReserveFragments", testReserve},
		{"Objects", testObjects},
		{"Concurrency", testConcurrency},
		{"Rewriter", testRewriter},
		{"Model", testModel},
	} {
		t.Run(part.name, func(t *testing.T) {
			t.Parallel() // much of the time goes into waiting for disks
			part.test(t, cfg)
		})
	}
}
