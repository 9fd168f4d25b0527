package table_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/table"
)

func TestRowAddrSplitsAndPrintsBothHalves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := table.FragmentID(rapid.Uint32().Draw(t, "fragment"))
		off := rapid.Uint32().Draw(t, "offset")
		a := table.NewRowAddr(id, off)
		require.Equal(t, id, a.Fragment())
		require.Equal(t, off, a.Offset())
		for _, text := range []string{a.String(), fmt.Sprint(uint64(a))} {
			back, err := table.ParseRowAddr(text)
			require.NoError(t, err)
			require.Equal(t, a, back)
		}
	})
}

func TestParseRowAddrNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                     "want a decimal number or fragment:offset",
		"x":                    "want a decimal number or fragment:offset",
		"-1":                   "want a decimal number or fragment:offset",
		"18446744073709551616": "want a decimal number or fragment:offset",
		":1":                   "fragment id",
		"4294967296:0":         "fragment id",
		"1:":                   "offset",
		"1:4294967296":         "offset",
		"1:2:3":                "offset",
	} {
		_, err := table.ParseRowAddr(text)
		require.ErrorContains(t, err, want, "address %q", text)
	}
}

func TestClassifyTellsTheCallerWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err  error
		want table.Outcome
	}{
		{nil, table.OutcomeDone},
		{table.Conflictf("version 3 rewrote fragment 1"), table.OutcomeRetryable},
		{fmt.Errorf("publish: %w", table.ErrVersionTaken), table.OutcomeRetryable},
		{table.Corruptf("bad"), table.OutcomeDamaged},
		{table.Unsupportedf("bad"), table.OutcomeDamaged},
		{table.ErrNotTable, table.OutcomeDamaged},
		{table.ErrNotFound, table.OutcomeFailed},
		{table.ErrAmbiguousCommit, table.OutcomeFailed},
		{errors.New("disk full"), table.OutcomeFailed},
		{errors.Join(table.ErrConflict, context.Canceled), table.OutcomeFailed},
	} {
		require.Equal(t, c.want, table.Classify(c.err), "%v", c.err)
	}
}

func TestMarkedErrorsPrintTheMessageAndKeepTheCause(t *testing.T) {
	cause := errors.New("short read")
	err := table.Corruptf("lance: manifest 3: %w", cause)
	require.Equal(t, "lance: manifest 3: short read", err.Error())
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.ErrorIs(t, err, cause)
	require.NotErrorIs(t, err, table.ErrConflict)
}

func TestSameNeedsTheSameFilesAndTheSameVector(t *testing.T) {
	f := table.Fragment{ID: 1, PhysicalRows: 10, Files: []table.DataFile{{Path: "a", Fields: []int32{0, 1}}}}
	g := f
	require.True(t, f.Same(g))
	g.Deletion = &table.DeletionRef{Path: "d1", Rows: 2}
	require.False(t, f.Same(g), "a row was deleted since")
	require.True(t, f.SameData(g), "but no row moved")
	require.Equal(t, uint64(8), g.LiveRows())
	f.Deletion = &table.DeletionRef{Path: "d1", Rows: 2}
	require.True(t, f.Same(g))
	for name, change := range map[string]func(*table.Fragment){
		"another file":      func(f *table.Fragment) { f.Files = []table.DataFile{{Path: "b", Fields: []int32{0, 1}}} },
		"a column replaced": func(f *table.Fragment) { f.Files = []table.DataFile{{Path: "a", Fields: []int32{0, -2}}} },
		"another base":      func(f *table.Fragment) { f.Files = []table.DataFile{{Path: "a", Fields: []int32{0, 1}, Base: "x"}} },
		"a column added":    func(f *table.Fragment) { f.Files = append(f.Files, table.DataFile{Path: "c", Fields: []int32{2}}) },
		"another id":        func(f *table.Fragment) { f.ID = 2 },
	} {
		h := g
		change(&h)
		require.False(t, g.SameData(h), name)
	}
}

func TestSnapshotFindsFragmentsAlsoWhenTheyAreNotSorted(t *testing.T) {
	s := table.Snapshot{Fragments: []table.Fragment{{ID: 5}, {ID: 1}, {ID: 3, PhysicalRows: 7}}}
	for _, id := range []table.FragmentID{5, 1, 3} {
		f, ok := s.Fragment(id)
		require.True(t, ok)
		require.Equal(t, id, f.ID)
	}
	_, ok := s.Fragment(2)
	require.False(t, ok)
	require.Equal(t, uint64(7), s.LiveRows())
}

func TestCoverageThatIsUnknownCoversNothing(t *testing.T) {
	m := table.IndexMeta{Coverage: []table.FragmentID{1, 4}, CoverageKnown: true}
	require.True(t, m.Covers(4))
	require.False(t, m.Covers(2))
	m.CoverageKnown = false
	require.False(t, m.Covers(4))
}

func TestUUIDPrintsHyphenated(t *testing.T) {
	u := table.UUID{0x7e, 0xce, 0x35, 0xda, 0x27, 0xac, 0x4b, 0xc9, 0xa2, 0x0b, 0x53, 0x4f, 0x6a, 0xd0, 0x31, 0x22}
	require.Equal(t, "7ece35da-27ac-4bc9-a20b-534f6ad03122", u.String())
}
