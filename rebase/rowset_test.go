package rebase_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

func drawAddrs(t *rapid.T) []table.RowAddr {
	return rapid.SliceOf(rapid.Custom(func(t *rapid.T) table.RowAddr {
		return table.NewRowAddr(table.FragmentID(rapid.IntRange(0, 3).Draw(t, "fragment")), rapid.Uint32Range(0, 200_000).Draw(t, "offset"))
	})).Draw(t, "addresses")
}

// TestRowSetIsASet compares with a sorted list.
func TestRowSetIsASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawAddrs(t), drawAddrs(t)
		s := rebase.Rows(a...)
		before := s.Clone()
		union := s.Clone()
		union.AddAll(rebase.Rows(b...))
		require.True(t, s.Equal(before))
		want := slices.Concat(a, b)
		slices.Sort(want)
		want = slices.Compact(want)
		got := slices.Collect(union.Addrs())
		require.Equal(t, len(want), len(got))
		require.True(t, slices.Equal(want, got))
		require.EqualValues(t, len(want), union.Rows())
		require.Equal(t, len(want) == 0, union.IsEmpty())
		for _, x := range want {
			require.True(t, union.Contains(x))
		}
		require.Equal(t, slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), want), union.Equal(s))

		data, err := json.Marshal(union)
		require.NoError(t, err)
		var back rebase.RowSet
		require.NoError(t, json.Unmarshal(data, &back))
		require.True(t, union.Equal(back))
	})
}

func TestRowSetNamesAFewRows(t *testing.T) {
	require.Equal(t, "no rows", rebase.RowSet{3: nil}.String())
	require.Equal(t, "row 2:7", rebase.Rows(table.NewRowAddr(2, 7)).String())
	require.Equal(t, "rows 2:0, 2:1, 2:2, 2:3 and 996 more", rebase.RowSet{2: deletion.Range(0, 1000)}.String())
	require.True(t, rebase.RowSet(nil).Equal(rebase.RowSet{1: nil}))
}

func TestRowSetRefusesDamage(t *testing.T) {
	for _, bad := range []string{`{"1":"AAAA"}`, `{"x":""}`, `{"1":"%"}`, `[]`} {
		var s rebase.RowSet
		require.Error(t, json.Unmarshal([]byte(bad), &s), bad)
	}
}

// TestUncommittedIsPlainData: what goes in comes out, and what cannot be committed
// does not go in.
func TestUncommittedIsPlainData(t *testing.T) {
	fragment := table.NewFragment{PhysicalRows: 3, Files: []table.DataFile{{Path: "p", Fields: []int32{0}, Bytes: 8}}, Kept: []table.RowIdentity{{ID: 7, CreatedAt: 2}}}
	base := rebase.Uncommitted{Table: "t", Transaction: table.Transaction{ID: "x", ReadVersion: 4, Properties: map[string]string{"a": "b"}}}
	with := func(op table.Operation, affected rebase.RowSet, added ...table.NewFragment) rebase.Uncommitted {
		u := base
		u.Transaction.Operation, u.Affected, u.New = op, affected, added
		return u
	}
	rows := rebase.Rows(table.NewRowAddr(1, 2))
	rewrite := with(table.Rewrite{}, nil)
	rewrite.Groups = []rebase.Group{{
		ReadVersion: 5, Old: []table.Fragment{{ID: 1, PhysicalRows: 9, Deletion: &table.DeletionRef{Path: "d", Rows: 2}}},
		Deleted: rebase.RowSet{1: deletion.Of(3, 4)}, New: []table.NewFragment{fragment}, Shape: rebase.Shape{{ID: 0, Parent: -1, Name: "a", Type: "int64"}},
	}}
	twice := with(table.Rewrite{}, nil)
	twice.Groups = []rebase.Group{{Old: []table.Fragment{{ID: 1}}}, {Old: []table.Fragment{{ID: 1}}}}
	mixed := with(table.Delete{}, rows)
	mixed.Groups = rewrite.Groups
	for _, u := range []rebase.Uncommitted{
		with(table.Append{}, nil, fragment),
		with(table.Delete{}, rows),
		with(table.Update{UniqueKeys: []int32{3}}, rows, fragment),
		rewrite,
	} {
		data, err := json.Marshal(u)
		require.NoError(t, err)
		var back rebase.Uncommitted
		require.NoError(t, json.Unmarshal(data, &back))
		require.True(t, u.Affected.Equal(back.Affected))
		u.Affected, back.Affected = nil, nil
		for i := range u.Groups {
			require.True(t, u.Groups[i].Deleted.Equal(back.Groups[i].Deleted))
			u.Groups[i].Deleted, back.Groups[i].Deleted = nil, nil
		}
		require.Equal(t, u, back)
	}
	for want, u := range map[string]rebase.Uncommitted{
		"does not say what it does":           with(nil, nil),
		"an append deletes no rows":           with(table.Append{}, rows),
		"a delete adds no fragments":          with(table.Delete{}, rows, fragment),
		"has no rows to follow":               with(table.Update{InPlace: true}, rows),
		"a rewrite has groups of fragments":   with(table.Rewrite{}, nil),
		"fragment 1 is rewritten twice":       twice,
		"rewrites no fragments":               mixed,
		`of kind "merge" cannot be rebased`:   with(table.Merge{}, nil),
		"a new fragment has 0 rows":           with(table.Append{}, nil, table.NewFragment{}),
		"the transaction has no id":           {Transaction: table.Transaction{ReadVersion: 1}},
		"the transaction has no read version": {Transaction: table.Transaction{ID: "x"}},
	} {
		_, err := json.Marshal(u)
		require.ErrorContains(t, err, want)
		_, err = rebase.NewRebasing(nil, u, rebase.Options{})
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, json.Unmarshal([]byte(`{"id":"x","read_version":1,"operation":"magic"}`), &base), "does not say what it does")
}

// TestMemoryForgets what was not used for the longest time.
func TestMemoryForgets(t *testing.T) {
	c, err := rebase.NewChangeOfAddress(groupsOf(move{Sources: []source{{Fragment: 1, PhysicalRows: 4}}, Destinations: []uint64{4}}), [][]table.FragmentID{{2}})
	require.NoError(t, err)
	m := rebase.NewMemory(2 * c.Bytes())
	key := func(tx string) rebase.MemoryKey { return rebase.MemoryKey{Table: "t", Transaction: tx} }
	m.Put(key("a"), c)
	m.Put(key("b"), c)
	require.Same(t, c, m.Get(key("a")))
	m.Put(key("c"), c)
	require.Nil(t, m.Get(key("b")))
	require.Same(t, c, m.Get(key("a")))
	m.Put(key("a"), c) // again: it is counted once
	require.Same(t, c, m.Get(key("c")))
	require.Nil(t, m.Get(rebase.MemoryKey{Table: "u", Transaction: "a"}))
	small := rebase.NewMemory(1)
	small.Put(key("a"), c)
	require.Nil(t, small.Get(key("a")))
}

// FuzzUncommitted reads changes that somebody sent: nothing but an error may come of
// one that is no change, and what is one comes out as it went in.
func FuzzUncommitted(f *testing.F) {
	for _, u := range []rebase.Uncommitted{
		{Table: "t", Transaction: table.Transaction{ID: "x", ReadVersion: 4, Operation: table.Delete{}}, Affected: rebase.Rows(1, 2, 1<<32+7)},
		{Transaction: table.Transaction{ID: "x", ReadVersion: 4, Operation: table.Update{UniqueKeys: []int32{0}}},
			Affected: rebase.RowSet{7: deletion.Range(0, 100_000)}, New: []table.NewFragment{{PhysicalRows: 3}}},
		{Transaction: table.Transaction{ID: "x", ReadVersion: 4, Operation: table.Rewrite{}}, Groups: []rebase.Group{{Old: []table.Fragment{{ID: 1}}}}},
	} {
		data, err := json.Marshal(u)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"id":"x","read_version":1,"operation":"delete","affected":{"0":"OzAAAAEAAAA="}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var u, v rebase.Uncommitted
		if json.Unmarshal(data, &u) != nil {
			return
		}
		again, err := json.Marshal(u)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(again, &v))
		require.True(t, u.Affected.Equal(v.Affected))
		require.Equal(t, u.Affected.Rows(), v.Affected.Rows())
	})
}
