package compaction

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/table"
)

// losing is an engine from whose table a clean-up takes what each commit brings in,
// between the last look and the commit.
type losing struct {
	table.Engine
	committed bool
}

func (e *losing) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	s, err := e.Engine.Commit(ctx, p)
	e.committed = err == nil
	if err == nil && s.Reuse != nil {
		// As where the history is an object of its own.
		copied, reuse := *s, *s.Reuse
		reuse.Path = "_fri/history"
		copied.Reuse = &reuse
		s = &copied
	}
	return s, err
}

func (e *losing) Stat(ctx context.Context, o table.Object) (uint64, error) {
	if e.committed {
		return 0, table.ErrNotFound
	}
	return e.Engine.(interface {
		Stat(context.Context, table.Object) (uint64, error)
	}).Stat(ctx, o)
}

// What was committed is reported together with the error that some of it is gone.
func TestReport14LossIsReportedWithWhatWasCommitted(t *testing.T) {
	e := newTable(t, 10)
	for range 2 {
		appendRows(t, e, 3)
		_, err := Compact(ctx, e, Options{FRI: FRIAlways})
		require.NoError(t, err)
	}
	appendRows(t, e, 3)
	var lost *commit.LostError
	report, err := Compact(ctx, &losing{Engine: e}, Options{FRI: FRIAlways})
	require.ErrorAs(t, err, &lost)
	require.True(t, report.Committed)
	require.Equal(t, report.Version, lost.Version)
	require.NotEmpty(t, lost.Objects)
	require.Equal(t, table.OutcomeDamaged, table.Classify(err))

	trimmed, err := Trim(ctx, &losing{Engine: e}, TrimOptions{RetainVersions: 1})
	require.ErrorAs(t, err, &lost)
	require.True(t, trimmed.Committed)
	require.Equal(t, trimmed.Version, lost.Version)
	require.Equal(t, []table.Object{{Kind: table.ObjectReuseIndex, Path: "_fri/history"}}, lost.Objects)
	require.Less(t, historyOf(t, e).Len(), 3)
}
