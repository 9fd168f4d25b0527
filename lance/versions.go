package lance

import (
	"context"

	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

// DamagedLatestError says that the manifest of the latest version is empty or damaged,
// and what to do.
type DamagedLatestError = version.DamagedLatestError

// Load implements table.Loader. A version that is known is not read again if its
// manifest is the same; the latest version is looked for each time.
func (e *Engine) Load(ctx context.Context, number uint64) (*table.Snapshot, error) {
	return e.history.Load(ctx, number)
}

// TransactionsSince implements table.Loader. A version in between that is gone
// makes it fail with table.ErrTerminal: what it did can never be known. Transactions
// that are known are not read again. The result shares what it refers to with other
// callers, and is not to be changed.
func (e *Engine) TransactionsSince(ctx context.Context, after, upTo uint64) ([]table.Transaction, error) {
	return e.history.TransactionsSince(ctx, after, upTo)
}

// ReuseIndex implements table.Loader.
func (e *Engine) ReuseIndex(ctx context.Context, s *table.Snapshot) ([]byte, error) {
	return e.history.ReuseIndex(ctx, s)
}

// Orphans implements table.OrphanFinder: data, deletion, index, transaction and
// label files that no version refers to, of the table or of its branches, and
// unfinished manifests. The versions of a branch are not looked at by themselves
// (ErrUnsupported): others branches of the same table may refer to its files.
func (e *Engine) Orphans(ctx context.Context, found func(table.Orphan)) (versions int, err error) {
	return e.history.Orphans(ctx, found)
}

// WeighHistory implements table.HistoryWeigher.
func (e *Engine) WeighHistory(ctx context.Context, s *table.Snapshot, limit int) (table.History, error) {
	return e.history.Weigh(ctx, s, limit)
}

var (
	_ table.OrphanFinder   = (*Engine)(nil)
	_ table.HistoryWeigher = (*Engine)(nil)
)
