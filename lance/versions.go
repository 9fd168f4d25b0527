package lance

import (
	"context"
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// Load implements table.Loader. A version that is known is not read again if its
// manifest is the same; the latest version is looked for each time.
func (e *Engine) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	return e.history.loadVersion(ctx, version)
}

// TransactionsSince implements table.Loader. A version in between that is gone
// makes it fail with table.ErrTerminal: what it did can never be known. Transactions
// that are known are not read again. The result shares what it refers to with other
// callers, and is not to be changed.
func (e *Engine) TransactionsSince(ctx context.Context, after, upTo uint64) ([]table.Transaction, error) {
	return e.history.transactionsSince(ctx, after, upTo)
}

// ReuseIndex implements table.Loader.
func (e *Engine) ReuseIndex(ctx context.Context, s *table.Snapshot) ([]byte, error) {
	if err := e.root.Ready(ctx); err != nil {
		return nil, err
	}
	if _, err := versionOf(s); err != nil {
		return nil, err
	}
	if s.Reuse == nil {
		return nil, nil
	}
	content, err := e.history.reuseContent(ctx, s.Reuse)
	if err != nil {
		return nil, fmt.Errorf("lance: table %s version %d: fragment reuse index %s: %w", e.root.Store, s.Version, s.Reuse.UUID, err)
	}
	return content, nil
}

// Orphans implements table.OrphanFinder: data, deletion, index, transaction and
// label files that no version refers to, of the table or of its branches, and
// unfinished manifests. The versions of a branch are not looked at by themselves
// (ErrUnsupported): others branches of the same table may refer to its files.
func (e *Engine) Orphans(ctx context.Context, found func(table.Orphan)) (versions int, err error) {
	return e.history.orphans(ctx, found)
}

// WeighHistory implements table.HistoryWeigher.
func (e *Engine) WeighHistory(ctx context.Context, s *table.Snapshot, limit int) (table.History, error) {
	return e.history.weigh(ctx, s, limit)
}

var (
	_ table.OrphanFinder   = (*Engine)(nil)
	_ table.HistoryWeigher = (*Engine)(nil)
)
