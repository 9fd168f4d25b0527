package verify_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/verify"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// littered is an engine that says what it has left lying about.
type littered struct {
	*memengine.Engine
	orphans []table.Orphan
	err     error
}

func (l *littered) Orphans(_ context.Context, found func(table.Orphan)) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	for _, o := range l.orphans {
		found(o)
	}
	return 7, nil
}

func TestOrphansAreCountedAndNoProblem(t *testing.T) {
	e := &littered{Engine: newTable(t), orphans: []table.Orphan{{Path: "data/a", Bytes: 3}, {Path: "data/b", Bytes: 4}}}
	r, err := verify.Table(t.Context(), e, verify.Options{})
	require.NoError(t, err)
	require.True(t, r.OK, "%v", r.Problems)
	require.EqualValues(t, 7, r.Checked[verify.Versions])
	require.EqualValues(t, 2, r.Checked[verify.OrphanFiles])
	require.EqualValues(t, 7, r.Checked[verify.OrphanBytes])
	require.Nil(t, r.Orphans, "only listed when asked for")

	r, err = verify.Table(t.Context(), e, verify.Options{ListOrphans: true})
	require.NoError(t, err)
	require.Equal(t, e.orphans, r.Orphans)

	e.orphans = nil
	r, err = verify.Table(t.Context(), e, verify.Options{ListOrphans: true})
	require.NoError(t, err)
	require.NotNil(t, r.Orphans, "none is an answer too")
	require.Contains(t, r.Checked, verify.OrphanFiles)
}

func TestReport21ForeignFilesAreCountedByThemselves(t *testing.T) {
	e := &littered{Engine: newTable(t), orphans: []table.Orphan{
		{Path: "data/a", Bytes: 3}, {Path: "data/notes.txt", Bytes: 50, Foreign: true}, {Path: "data/b", Bytes: 4},
	}}
	r, err := verify.Table(t.Context(), e, verify.Options{ListOrphans: true})
	require.NoError(t, err)
	require.True(t, r.OK, "%v", r.Problems)
	require.EqualValues(t, 2, r.Checked[verify.OrphanFiles])
	require.EqualValues(t, 7, r.Checked[verify.OrphanBytes])
	require.EqualValues(t, 1, r.Checked[verify.ForeignFiles])
	require.EqualValues(t, 50, r.Checked[verify.ForeignBytes])
	require.Equal(t, e.orphans, r.Orphans, "listed together, each with whose it is")
}

func TestOrphansThatCannotBeToldAreNotCountedAsNone(t *testing.T) {
	for _, cause := range []error{table.Corruptf("version 3 is damaged"), table.Unsupportedf("version 3 has more")} {
		e := &littered{Engine: newTable(t), err: cause}
		r, err := verify.Table(t.Context(), e, verify.Options{ListOrphans: true})
		require.NoError(t, err)
		require.True(t, r.OK, "%v", r.Problems)
		require.Equal(t, cause.Error(), r.OrphansUnknown)
		require.NotContains(t, r.Checked, verify.OrphanFiles)
		require.Nil(t, r.Orphans)
	}
	e := &littered{Engine: newTable(t), err: errors.New("disk on fire")}
	_, err := verify.Table(t.Context(), e, verify.Options{})
	require.ErrorContains(t, err, "disk on fire")
}
