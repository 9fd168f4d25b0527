package lance_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/lance"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/rowids"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// stableRow is what must be true of a row wherever it is.
type stableRow struct {
	key              int64
	id               table.RowID
	created, updated uint64
}

// stableTable is a table with stable row ids, and a model of it, by the rows' key.
type stableTable struct {
	t      testing.TB
	engine *lance.Engine
	store  *store.Mem
	rows   map[int64]stableRow
	nextID table.RowID
	keys   int64 // the next key that was never used
}

func newStableTable(t testing.TB, s *store.Mem) *stableTable {
	t.Helper()
	e, err := lance.CreateStore(context.Background(), s, people, lance.CreateOptions{StableRowIDs: true}, lance.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return &stableTable{t: t, engine: e, store: s, rows: map[int64]stableRow{}}
}

// found reads the table: where the row with each key is.
func (s *stableTable) found(snap *table.Snapshot) map[int64]table.RowAddr {
	s.t.Helper()
	out := map[int64]table.RowAddr{}
	for b, err := range s.engine.Rows(context.Background(), snap, fragmentIDs(snap), table.ReadOptions{Columns: []string{"id"}, WithAddrs: true}) {
		require.NoError(s.t, err)
		keys := b.Record.Column(0).(*array.Int64)
		for i, a := range b.Addrs {
			require.NotContains(s.t, out, keys.Value(i), "a row is there twice")
			out[keys.Value(i)] = a
		}
	}
	return out
}

// check compares the latest version with the model.
func (s *stableTable) check() {
	t, ctx := s.t, context.Background()
	t.Helper()
	snap := load(t, s.engine, 0)
	require.True(t, snap.StableRowIDs)
	places := s.found(snap)
	var got, want []stableRow
	var addrs []table.RowAddr
	var ids []table.RowID
	for key, at := range places {
		got, addrs = append(got, stableRow{key: key}), append(addrs, at)
	}
	identities, err := s.engine.RowIdentities(ctx, snap, addrs)
	require.NoError(t, err)
	updated, err := s.engine.LastUpdated(ctx, snap, addrs)
	require.NoError(t, err)
	for i := range got {
		got[i].id, got[i].created, got[i].updated = identities[i].ID, identities[i].CreatedAt, updated[i]
		ids = append(ids, got[i].id)
	}
	for _, r := range s.rows {
		want = append(want, r)
	}
	byKey := func(a, b stableRow) int { return cmp.Compare(a.key, b.key) }
	slices.SortFunc(got, byKey)
	slices.SortFunc(want, byKey)
	require.Equal(t, want, got)

	// The ids lead back to the rows, and those of rows that are gone to none.
	back, err := s.engine.FindRows(ctx, snap, append(ids, s.nextID, s.nextID+1<<40))
	require.NoError(t, err)
	require.Len(t, back, len(want))
	for key, at := range places {
		require.Equal(t, at, back[s.rows[key].id])
	}
	_, err = s.engine.Check(ctx, snap, func(f table.Finding) {
		// The indexes of these tests have no files.
		require.Equal(t, "index", f.Kind, "%s: %v", f.Where, f.Err)
	})
	require.NoError(t, err)
}

func (s *stableTable) append(n int64) {
	s.t.Helper()
	snap, err := s.engine.Append(context.Background(), rows(s.keys, n), table.WriteOptions{})
	require.NoError(s.t, err)
	for range n {
		s.rows[s.keys] = stableRow{s.keys, s.nextID, snap.Version, snap.Version}
		s.keys, s.nextID = s.keys+1, s.nextID+1
	}
}

func (s *stableTable) delete(keys ...int64) {
	s.t.Helper()
	places := s.found(load(s.t, s.engine, 0))
	var addrs []table.RowAddr
	for _, k := range keys {
		addrs = append(addrs, places[k])
		delete(s.rows, k)
	}
	_, err := s.engine.DeleteRows(context.Background(), addrs...)
	require.NoError(s.t, err)
}

// upsert gives the rows with the given keys new ones, under which they keep their
// identity, and adds some.
func (s *stableTable) upsert(keys []int64, inserts int64) {
	t := s.t
	t.Helper()
	p := s.upserted(keys, inserts)
	next, err := s.engine.Commit(context.Background(), p)
	require.NoError(t, err)
	for i := range int64(len(keys)) {
		r := s.rows[keys[i]]
		delete(s.rows, r.key)
		r.key, r.updated = s.keys+i, next.Version
		s.rows[r.key] = r
	}
	s.keys += int64(len(keys))
	for range inserts {
		s.rows[s.keys] = stableRow{s.keys, s.nextID, next.Version, next.Version}
		s.keys, s.nextID = s.keys+1, s.nextID+1
	}
}

// upserted proposes that.
func (s *stableTable) upserted(keys []int64, inserts int64) table.Proposal {
	t, ctx := s.t, context.Background()
	t.Helper()
	base := load(t, s.engine, 0)
	places := s.found(base)
	w, err := s.engine.WriteFragments(ctx, base.Schema, rows(s.keys, int64(len(keys))+inserts), table.WriteOptions{})
	require.NoError(t, err)
	require.Len(t, w.Fragments, 1)
	var addrs []table.RowAddr
	dead := map[table.FragmentID][]uint32{}
	for _, k := range keys {
		a := places[k]
		addrs = append(addrs, a)
		dead[a.Fragment()] = append(dead[a.Fragment()], a.Offset())
	}
	kept, err := s.engine.RowIdentities(ctx, base, addrs)
	require.NoError(t, err)
	added := table.Fragment{ID: base.NextFragmentID, PhysicalRows: w.Fragments[0].PhysicalRows, Files: w.Fragments[0].Files, Kept: kept}
	c := table.Change{Add: []table.Fragment{added}, SetDeletion: map[table.FragmentID]*table.DeletionRef{}}
	op := table.Update{New: c.Add}
	for id, offsets := range dead {
		f, _ := base.Fragment(id)
		was, err := s.engine.ReadDeletions(ctx, base, f)
		require.NoError(t, err)
		all := was.(*deletion.Vector).Union(deletion.Of(offsets...))
		if all.Cardinality() == f.PhysicalRows {
			c.Remove, op.Removed = append(c.Remove, id), append(op.Removed, id)
			continue
		}
		ref, err := s.engine.WriteDeletions(ctx, id, base.Version, all)
		require.NoError(t, err)
		f.Deletion, c.SetDeletion[id] = &ref, &ref
		op.Updated = append(op.Updated, f)
	}
	return table.Proposal{Base: base, Change: c, Transaction: table.Transaction{
		ID: fmt.Sprintf("upsert-%d", s.keys), ReadVersion: base.Version, Operation: op,
	}}
}

// some draws keys of live rows.
func (s *stableTable) some(r *rand.Rand, most int) []int64 {
	var keys []int64
	for k := range s.rows {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	r.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	return keys[:min(len(keys), 1+r.IntN(most))]
}

func (s *stableTable) change(r *rand.Rand) {
	s.t.Helper()
	switch r.IntN(4) {
	case 0:
		s.append(1 + r.Int64N(30))
	case 1:
		s.delete(s.some(r, 12)...)
	case 2:
		s.upsert(s.some(r, 8), 0)
	default:
		s.upsert(s.some(r, 8), 1+r.Int64N(5))
	}
}

// Whatever happens to a row, and however often it is moved, also while it is being
// moved: it keeps its id and its creation, and a compaction is no update.
func TestRowsKeepTheirIdentity(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		r := rand.New(rand.NewPCG(seed, 0))
		s := newStableTable(t, store.NewMem())
		for range 4 {
			s.append(10 + r.Int64N(20))
		}
		for range 3 {
			for range 1 + r.IntN(3) {
				s.change(r)
			}
			s.check()
			results := execute(t, s.engine, compaction.Options{TargetRows: 20 + uint64(r.IntN(40)), DeletionThreshold: 0.01})
			for range r.IntN(4) {
				s.change(r)
			}
			if len(results) == 0 {
				continue
			}
			_, err := compaction.Publish(t.Context(), s.engine, results, compaction.Options{})
			require.NoError(t, err)
			s.check()
		}
	})
}

// A source that lost its last row while it was rewritten is gone, and the ids that its
// rows had come from an older version.
func TestRewriteOfAFragmentThatIsGone(t *testing.T) {
	s := newStableTable(t, store.NewMem())
	s.append(3)
	s.append(5)
	s.append(4)
	s.delete(1)
	results := execute(t, s.engine, compaction.Options{})
	require.Len(t, results, 1)
	s.upsert([]int64{0, 5}, 0)
	s.delete(2)
	require.Len(t, load(t, s.engine, 0).Fragments, 3, "one died, one is new")
	out, err := compaction.Publish(t.Context(), s.engine, results, compaction.Options{})
	require.NoError(t, err)
	require.Equal(t, uint64(3), out.RowsRelocated)
	s.check()
	s.append(2)
	s.upsert([]int64{8, 12}, 3)
	s.check()

	// And if that is not there any more, nobody knows.
	s.append(1)
	results = execute(t, s.engine, compaction.Options{})
	read := results[0].Task.ReadVersion
	s.delete(slices.Sorted(func(yield func(int64) bool) {
		for k, r := range s.rows {
			if r.created == read && !yield(k) {
				return
			}
		}
	})...)
	require.NoError(t, s.store.Delete(t.Context(), "_versions/"+manifest.V2.Name(read)))
	_, err = compaction.Publish(t.Context(), s.engine, results, compaction.Options{})
	require.ErrorIs(t, err, table.ErrConflict)
	require.ErrorContains(t, err, "which row ids it had")
	s.check()
}

// Not every change makes sense where ids must stay with their rows, and those that
// do not are refused before anything is written.
func TestIdentitiesThatCannotBeKept(t *testing.T) {
	s := newStableTable(t, store.NewMem())
	s.append(5)
	s.append(5)
	s.delete(9)
	for name, c := range map[string]struct {
		damage  func(p *table.Proposal)
		want    error
		message string
	}{
		"a row stays alive": {func(p *table.Proposal) { p.Change.SetDeletion = nil }, nil, "the row at 0:1, which has it, is not deleted"},
		"another row is deleted": {func(p *table.Proposal) {
			ref, err := s.engine.WriteDeletions(t.Context(), 0, p.Base.Version, deletion.Of(2))
			require.NoError(t, err)
			p.Change.SetDeletion[0] = &ref
		}, nil, "is not deleted"},
		"an id that nobody got":     {func(p *table.Proposal) { p.Change.Add[0].Kept[0].ID = 10 }, nil, "only those below 10"},
		"an id of a dead row":       {func(p *table.Proposal) { p.Change.Add[0].Kept[0].ID = 9 }, table.ErrConflict, "no live row has it"},
		"an id twice":               {func(p *table.Proposal) { p.Change.Add[0].Kept[1].ID = 1 }, nil, "two rows are to keep the row id 1"},
		"created in the future":     {func(p *table.Proposal) { p.Change.Add[0].Kept[1].CreatedAt = 99 }, nil, "created by version 99"},
		"more identities than rows": {func(p *table.Proposal) { p.Change.Add[0].PhysicalRows = 1 }, nil, "is to keep the ids of 2"},
	} {
		p := s.upserted([]int64{1, 2}, 1)
		names := s.store.Names()
		c.damage(&p)
		_, err := s.engine.Commit(t.Context(), p)
		require.ErrorContains(t, err, c.message, name)
		if c.want != nil {
			require.ErrorIs(t, err, c.want, name)
		}
		require.Subset(t, append(names, s.store.Names()...), s.store.Names())
		require.Equal(t, p.Base.Version, load(t, s.engine, 0).Version, name)
	}
	s.check()
	s.upsert([]int64{1, 2}, 1)
	s.check()

	// A rewrite says where all its rows come from, and brings none back.
	for name, c := range map[string]struct {
		damage  func(p *table.Proposal)
		message string
	}{
		"deletions since are forgotten": {func(p *table.Proposal) {
			_, err := s.engine.DeleteRows(t.Context(), table.NewRowAddr(1, 0))
			require.NoError(t, err)
			delete(s.rows, 5)
			p.Base = load(t, s.engine, 0)
		}, "have 7 live rows, and those that they replace 6"},
		"a source stays":      {func(p *table.Proposal) { p.Change.Remove = p.Change.Remove[:1] }, "fragment 1 was rewritten and is not to be removed"},
		"another fragment":    {func(p *table.Proposal) { p.Change.Add[0].ID++ }, "which is not what is to be added"},
		"a fragment too many": {func(p *table.Proposal) { p.Change.Add = append(p.Change.Add, table.Fragment{ID: 9}) }, "fragment 9 is to be added, and the rewrite does not say"},
		"identities kept":     {func(p *table.Proposal) { p.Change.Add[0].Kept = []table.RowIdentity{{}} }, "a rewrite keeps those of all"},
		"no sources":          {func(p *table.Proposal) { p.Transaction.Operation.(table.Rewrite).Groups[0].Old = nil }, "without old fragments"},
	} {
		p := rewrite(t, s.engine, load(t, s.engine, 0), 0, 1)
		p.Change.Add = slices.Clone(p.Change.Add)
		c.damage(&p)
		_, err := s.engine.Commit(t.Context(), p)
		require.ErrorContains(t, err, c.message, name)
	}
	s.check()

	// Without stable ids there is nothing to keep.
	e := newTable(t, store.NewMem(), 3)
	base := load(t, e, 0)
	w, err := e.WriteFragments(t.Context(), base.Schema, rows(5, 1), table.WriteOptions{})
	require.NoError(t, err)
	f := table.Fragment{ID: 1, PhysicalRows: 1, Files: w.Fragments[0].Files, Kept: []table.RowIdentity{{ID: 1}}}
	_, err = e.Commit(t.Context(), table.Proposal{Base: base, Change: table.Change{Add: []table.Fragment{f}},
		Transaction: table.Transaction{Operation: table.Append{Fragments: []table.Fragment{f}}}})
	require.ErrorContains(t, err, "the table has no stable row ids")
	_, err = e.RowIdentities(t.Context(), base, []table.RowAddr{0})
	require.ErrorIs(t, err, table.ErrUnsupported)
	_, err = e.FindRows(t.Context(), base, []table.RowID{0})
	require.ErrorIs(t, err, table.ErrUnsupported)
}

// Indexes hold ids, so they go on answering for rows that moved: the new fragments
// take the place of the old ones in what they claim. A group that an index covers in
// part, because it was built meanwhile, is lost.
func TestIndexesFollowRowIDs(t *testing.T) {
	s := newStableTable(t, store.NewMem())
	for range 6 {
		s.append(5)
	}
	index := func(name, kind string, covers ...table.FragmentID) table.UUID {
		t.Helper()
		id, err := s.engine.AddIndex(t.Context(), table.IndexMeta{Name: name, Kind: kind, Fields: []int32{0}, CoverageKnown: true, Coverage: covers})
		require.NoError(t, err)
		return id
	}
	all := index("all", "BTree", 0, 1, 2, 3, 4, 5)
	half := index("half", "LabelList", 0, 1, 2)
	zones := index("zones", "ZoneMap", 0, 1, 2, 3)
	results := execute(t, s.engine, compaction.Options{})
	require.Len(t, results, 2, "what one index covers stays apart from what it does not")
	s.delete(1, 2)
	late := index("late", "Bitmap", 3)
	out, err := compaction.Publish(t.Context(), s.engine, results, compaction.Options{})
	require.NoError(t, err)
	require.Equal(t, compaction.IndexRetarget, out.Decision.Policy)
	require.Len(t, out.Published, 1)
	require.Len(t, out.Lost, 1)
	require.Equal(t, []table.FragmentID{3, 4, 5}, out.Lost[0].Sources)
	require.Equal(t, `index "late" covers 1 of its 3 fragments, and it is to answer for the new ones`, out.Lost[0].Reason)
	s.check()

	want := map[table.UUID][]table.FragmentID{all: {3, 4, 5, 6}, half: {6}, zones: {3}, late: {3}}
	for _, m := range load(t, s.engine, 0).Indexes {
		require.Equal(t, want[m.UUID], m.Coverage, m.Name)
	}
	report, err := compaction.Compact(t.Context(), s.engine, compaction.Options{})
	require.NoError(t, err)
	require.Equal(t, 2, report.GroupsPublished, "fragments 4 and 5, and 6 for its deleted rows")
	s.check()
}

// The lists may lie in a file, and those of versions may be missing.
func TestRowListsInFilesAndMissing(t *testing.T) {
	m := inMemory(t, "stable_row_ids")
	e := openStore(t, m)
	before := load(t, e, 0)
	addrs := []table.RowAddr{table.NewRowAddr(4, 0), table.NewRowAddr(4, 40), table.NewRowAddr(4, 76)}
	want, err := e.RowIdentities(t.Context(), before, addrs)
	require.NoError(t, err)
	wantUpdated, err := e.LastUpdated(t.Context(), before, addrs)
	require.NoError(t, err)

	f := contents(t, m, before.Version).Manifest.GetFragments()[0]
	var file []byte
	part := func(data []byte) *tablepb.ExternalFile {
		x := &tablepb.ExternalFile{Path: "_rowids/all", Offset: uint64(len(file) + 3), Size: uint64(len(data))}
		file = append(append(file, "gap"...), data...)
		return x
	}
	ids, created, updated := part(f.GetInlineRowIds()), part(f.GetInlineCreatedAtVersions()), part(f.GetInlineLastUpdatedAtVersions())
	put(t, m, "_rowids/all", file)
	tamper(t, m, func(c *manifest.Contents) {
		f := c.Manifest.Fragments[0]
		f.RowIdSequence = &tablepb.DataFragment_ExternalRowIds{ExternalRowIds: ids}
		f.CreatedAtVersionSequence = &tablepb.DataFragment_ExternalCreatedAtVersions{ExternalCreatedAtVersions: created}
		f.LastUpdatedAtVersionSequence = &tablepb.DataFragment_ExternalLastUpdatedAtVersions{ExternalLastUpdatedAtVersions: updated}
	})
	s := load(t, e, 0)
	got, err := e.RowIdentities(t.Context(), s, addrs)
	require.NoError(t, err)
	require.Equal(t, want, got)
	// A rewrite reads them, and writes its own into the manifest.
	s, err = e.Commit(t.Context(), rewrite(t, e, s, 4))
	require.NoError(t, err)
	for i := range addrs {
		addrs[i] = table.NewRowAddr(s.Fragments[0].ID, addrs[i].Offset())
	}
	require.NoError(t, m.Delete(t.Context(), "_rowids/all"))
	got, err = e.RowIdentities(t.Context(), s, addrs)
	require.NoError(t, err)
	require.Equal(t, want, got)
	gotUpdated, err := e.LastUpdated(t.Context(), s, addrs)
	require.NoError(t, err)
	require.Equal(t, wantUpdated, gotUpdated)

	for name, c := range map[string]struct {
		damage  func(f *tablepb.DataFragment)
		message string
	}{
		"no file": {func(f *tablepb.DataFragment) {
			f.RowIdSequence = &tablepb.DataFragment_ExternalRowIds{ExternalRowIds: ids}
		}, "does not exist"},
		"past its end":  {func(f *tablepb.DataFragment) { f.RowIdSequence = external("_rowids/all", 1<<63, 1<<63) }, "are to be read"},
		"another place": {func(f *tablepb.DataFragment) { f.RowIdSequence = external("../x", 0, 1) }, "x"},
		"none":          {func(f *tablepb.DataFragment) { f.RowIdSequence = nil }, "this fragment has none"},
		"of other rows": {func(f *tablepb.DataFragment) { f.RowIdSequence = inlineIDs(rowids.Range(0, 5)) }, "5 ids for 77 rows"},
		"versions wrong": {func(f *tablepb.DataFragment) {
			f.CreatedAtVersionSequence = &tablepb.DataFragment_InlineCreatedAtVersions{InlineCreatedAtVersions: []byte{0xff}}
		}, "row versions"},
	} {
		put(t, m, "_rowids/all", file)
		if name == "no file" {
			require.NoError(t, m.Delete(t.Context(), "_rowids/all"))
		}
		tamper(t, m, func(c2 *manifest.Contents) { c.damage(c2.Manifest.Fragments[0]) })
		_, err := e.RowIdentities(t.Context(), load(t, e, 0), addrs)
		require.ErrorIs(t, err, table.ErrCorrupt, name)
		require.ErrorContains(t, err, c.message, name)
		require.ErrorContains(t, err, "fragment 5", name)
		tamper(t, m, func(c *manifest.Contents) {
			c.Manifest.Fragments[0].RowIdSequence = inlineIDs(rowids.Range(0, 77))
			c.Manifest.Fragments[0].CreatedAtVersionSequence = nil
			c.Manifest.Fragments[0].LastUpdatedAtVersionSequence = nil
		})
	}

	// What is missing is that every row is of version 1, and was not updated since.
	s, err = e.Commit(t.Context(), rewrite(t, e, load(t, e, 0), 5))
	require.NoError(t, err)
	last := contents(t, m, s.Version).Manifest.GetFragments()[0]
	require.Equal(t, rowids.Uniform(77, 1).Encode(), last.GetInlineCreatedAtVersions())
	require.Equal(t, rowids.Uniform(77, 1).Encode(), last.GetInlineLastUpdatedAtVersions())
}

func external(path string, offset, size uint64) *tablepb.DataFragment_ExternalRowIds {
	return &tablepb.DataFragment_ExternalRowIds{ExternalRowIds: &tablepb.ExternalFile{Path: path, Offset: offset, Size: size}}
}

func TestRowIdentitiesOfRowsThatAreNotThere(t *testing.T) {
	s := newStableTable(t, store.NewMem())
	s.append(5)
	s.append(5)
	s.delete(3)
	snap := load(t, s.engine, 0)
	got, err := s.engine.RowIdentities(t.Context(), snap, []table.RowAddr{3, table.NewRowAddr(1, 4), 0, 3})
	require.NoError(t, err)
	require.Equal(t, []table.RowIdentity{{ID: 3, CreatedAt: 2}, {ID: 9, CreatedAt: 3}, {ID: 0, CreatedAt: 2}, {ID: 3, CreatedAt: 2}}, got, "dead rows have theirs")
	for _, a := range []table.RowAddr{5, table.NewRowAddr(7, 0)} {
		_, err = s.engine.RowIdentities(t.Context(), snap, []table.RowAddr{0, a})
		require.ErrorIs(t, err, table.ErrNotFound)
		require.ErrorContains(t, err, a.String())
	}
	found, err := s.engine.FindRows(t.Context(), snap, []table.RowID{9, 3, 0, 9, 77})
	require.NoError(t, err)
	require.Equal(t, map[table.RowID]table.RowAddr{0: 0, 9: table.NewRowAddr(1, 4)}, found)
}

// racing is a store in which others commit just before a version is put in place.
type racing struct {
	store.Store
	others []func()
}

func (r *racing) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if len(r.others) > 0 {
		other := r.others[0]
		r.others = r.others[1:]
		other()
	}
	return r.Store.PutIfAbsent(ctx, name, data)
}

// Each attempt gives new rows the ids and the version that are free by then, and leaves
// those of moved rows as they are.
func TestIdentitiesOfAnotherAttempt(t *testing.T) {
	s := newStableTable(t, store.NewMem())
	s.append(10)
	s.append(10)
	s.delete(2)
	slow := &racing{Store: s.store}
	e := openStore(t, slow)
	results := execute(t, e, compaction.Options{})
	slow.others = []func(){func() { s.delete(3, 12) }, func() { s.upsert([]int64{5, 13}, 2) }, func() { s.append(1) }}
	out, err := compaction.Publish(t.Context(), e, results, compaction.Options{})
	require.NoError(t, err)
	require.Equal(t, 4, out.Attempts)
	require.Equal(t, uint64(4), out.RowsRelocated)
	s.check()

	s.keys += 5
	slow.others = []func(){func() { s.keys += 100; s.append(4); s.keys -= 104 }}
	snap, err := e.Append(t.Context(), rows(s.keys-5, 5), table.WriteOptions{})
	require.NoError(t, err)
	for k := s.keys - 5; k < s.keys; k++ {
		s.rows[k] = stableRow{k, s.nextID, snap.Version, snap.Version}
		s.nextID++
	}
	s.keys += 104
	s.check()
}
