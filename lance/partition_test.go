package lance_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// reclustered is a table of two fragments, ids 0 to 159, that was rewritten into
// three by id modulo 3.
type reclustered struct {
	engine    *lance.Engine
	before    *table.Snapshot
	after     *table.Snapshot
	labels    table.Object
	partition *fri.Partition
	change    table.Proposal
}

var deletedBefore = deletion.Of(3, 4, 63, 64, 99)

func recluster(t *testing.T, m store.Store) reclustered {
	t.Helper()
	e := newTable(t, m, 100, 60)
	base := load(t, e, 0)
	ref, err := e.WriteDeletions(ctx, 0, base.Version, deletedBefore)
	require.NoError(t, err)
	f, _ := base.Fragment(0)
	f.Deletion = &ref
	base, err = e.Commit(ctx, table.Proposal{
		Base:        base,
		Transaction: table.Transaction{ReadVersion: base.Version, Operation: table.Delete{Updated: []table.Fragment{f}}},
		Change:      table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{0: &ref}},
	})
	require.NoError(t, err)
	r := reclustered{engine: e, before: base}

	const n = 3
	b, err := fri.NewPartitionBuilder(n)
	require.NoError(t, err)
	clusters := make([][]int64, n)
	next := int64(0)
	for i, dead := range []*deletion.Vector{deletedBefore, deletion.Of()} {
		f := base.Fragments[i]
		var labels []uint16
		for o := range f.PhysicalRows {
			if !dead.Contains(uint32(o)) {
				labels = append(labels, uint16(next%n))
				clusters[next%n] = append(clusters[next%n], next)
			}
			next++
		}
		require.NoError(t, b.AddSource(fri.DigestOf(f), dead, labels))
	}
	r.partition = b.Build()
	mapRef, object, err := e.WritePartition(ctx, r.partition)
	require.NoError(t, err)
	r.labels = object

	group := table.RewriteGroup{Old: base.Fragments}
	var ids []table.FragmentID
	for i, cluster := range clusters {
		out, err := e.WriteFragments(ctx, base.Schema, rowsOf(cluster), table.WriteOptions{})
		require.NoError(t, err)
		id := base.NextFragmentID + table.FragmentID(n-1-i) // ids need not ascend
		ids = append(ids, id)
		group.New = append(group.New, table.Fragment{ID: id, PhysicalRows: out.Fragments[0].PhysicalRows, Files: out.Fragments[0].Files})
	}
	tr, err := r.partition.Transition(ids, mapRef)
	require.NoError(t, err)
	h, err := (&fri.History{}).Append(base.Version+1, tr)
	require.NoError(t, err)
	added := []table.Fragment{group.New[2], group.New[1], group.New[0]}
	r.change = table.Proposal{
		Base:        base,
		Transaction: table.Transaction{ReadVersion: base.Version, Operation: table.Rewrite{Groups: []table.RewriteGroup{group}}},
		Change: table.Change{
			Remove: []table.FragmentID{0, 1}, Add: added,
			Reuse: &table.ReuseIndexUpdate{Content: h.Encode(), IndexVersion: h.IndexVersion(), Coverage: ids},
		},
	}
	return r
}

func (r *reclustered) commit(t *testing.T) {
	t.Helper()
	var err error
	r.after, err = r.engine.Commit(ctx, r.change)
	require.NoError(t, err)
}

// rowsOf are rows with the given ids, as rows makes them.
func rowsOf(ids []int64) func(yield func(table.Batch, error) bool) {
	b := array.NewRecordBuilder(memory.DefaultAllocator, people)
	for _, id := range ids {
		b.Field(0).(*array.Int64Builder).Append(id)
		if id%5 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append("name" + strings.Repeat("x", int(id%7)))
		}
	}
	rec := b.NewRecordBatch()
	return func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rec}, nil) }
}

// idsIn are the ids of a fragment's rows, in order.
func idsIn(t *testing.T, e *lance.Engine, s *table.Snapshot, f table.FragmentID) (out []int64) {
	t.Helper()
	for batch, err := range e.Rows(ctx, s, []table.FragmentID{f}, table.ReadOptions{Columns: []string{"id"}}) {
		require.NoError(t, err)
		out = append(out, batch.Record.Column(0).(*array.Int64).Int64Values()...)
	}
	return out
}

// Every row of the sources is found where it was put, through the files alone.
func TestRowsAreFoundThroughLabels(t *testing.T) {
	m := store.NewMem()
	r := recluster(t, m)
	r.commit(t)
	require.EqualValues(t, 1, r.after.Reuse.IndexVersion)
	c := contents(t, m, r.after.Version)
	require.EqualValues(t, manifest.FlagTaggedReuse, c.Manifest.GetReaderFeatureFlags())
	require.EqualValues(t, manifest.FlagTaggedReuse, c.Manifest.GetWriterFeatureFlags())
	require.Equal(t, []table.FragmentID{0, 1, 2, 3, 4}, r.after.Indexes[0].Coverage, "all that the history is about")

	e := openStore(t, m)
	h, err := fri.Load(ctx, e, load(t, e, 0))
	require.NoError(t, err)
	now := map[table.FragmentID][]int64{}
	for _, f := range r.after.Fragments {
		now[f.ID] = idsIn(t, e, r.after, f.ID)
	}
	for id := range int64(160) {
		a := table.NewRowAddr(table.FragmentID(id/100), uint32(id%100))
		got := h.Translate(a)
		if id < 100 && deletedBefore.Contains(uint32(id)) {
			require.Equal(t, fri.Translation{State: fri.Deleted}, got, "%v", a)
			continue
		}
		require.Equal(t, fri.Moved, got.State, "%v", a)
		require.Equal(t, id, now[got.Addr.Fragment()][got.Addr.Offset()], "%v", a)
	}
	findings, checked := check(t, m, 0)
	require.Empty(t, findings)
	require.Equal(t, 1, checked["label_files"])
}

// What is said to be tagged stays tagged, whatever is published later.
func TestATaggedTableStaysOne(t *testing.T) {
	m := store.NewMem()
	r := recluster(t, m)
	r.commit(t)
	e := r.engine
	flags := func(s *table.Snapshot) (uint64, uint64) {
		c := contents(t, m, s.Version).Manifest
		return c.GetReaderFeatureFlags(), c.GetWriterFeatureFlags()
	}
	s, err := e.Append(ctx, rows(1000, 5), table.WriteOptions{})
	require.NoError(t, err)
	reader, writer := flags(s)
	require.EqualValues(t, 1024, reader)
	require.EqualValues(t, 1024, writer)
	require.EqualValues(t, 1, s.Reuse.IndexVersion)

	s, err = e.Commit(ctx, table.Proposal{Base: s, Transaction: table.Transaction{ReadVersion: s.Version, Operation: table.CreateIndex{}}, Change: table.Change{DropReuse: true}})
	require.NoError(t, err)
	require.Nil(t, s.Reuse)
	reader, writer = flags(s)
	require.EqualValues(t, 1024, reader)
	require.EqualValues(t, 1024, writer)

	// Content of version 0 is content of version 1, and is said to be.
	p := rewrite(t, e, s, s.Fragments[0].ID)
	g := p.Transaction.Operation.(table.Rewrite).Groups[0]
	var b fri.Builder
	require.NoError(t, b.AddSource(fri.DigestOf(g.Old[0]), nil))
	tr, err := b.Build([]fri.Digest{fri.DigestOf(g.New[0])})
	require.NoError(t, err)
	h, err := (&fri.History{}).Append(s.Version+1, tr)
	require.NoError(t, err)
	require.EqualValues(t, 0, h.IndexVersion())
	p.Change.Reuse = &table.ReuseIndexUpdate{Content: h.Encode(), Coverage: []table.FragmentID{g.New[0].ID}}
	s, err = e.Commit(ctx, p)
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Reuse.IndexVersion)
	again, err := fri.Load(ctx, e, s)
	require.NoError(t, err)
	require.Equal(t, h.Encode(), again.Encode())
}

// A history is published with everything that it refers to.
func TestATaggedHistoryIsPublishedWhole(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, m *store.Mem, r *reclustered)
		want  error
	}{
		"no label file": {func(t *testing.T, m *store.Mem, r *reclustered) {
			require.NoError(t, r.engine.Delete(ctx, r.labels))
		}, table.ErrNotFound},
		"a label file of another size": {func(t *testing.T, m *store.Mem, r *reclustered) {
			put(t, m, r.labels.Path, append(read(t, m, r.labels.Path), 0))
		}, table.ErrCorrupt},
		"fragments that are not there": {func(t *testing.T, m *store.Mem, r *reclustered) {
			r.change.Change.Remove, r.change.Change.Add = nil, nil
		}, table.ErrNotFound},
		"no history": {func(t *testing.T, m *store.Mem, r *reclustered) {
			r.change.Change.Reuse.Content = []byte{7}
		}, table.ErrCorrupt},
		"a newer version": {func(t *testing.T, m *store.Mem, r *reclustered) {
			r.change.Change.Reuse.IndexVersion = 2
		}, table.ErrUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			m := store.NewMem()
			r := recluster(t, m)
			c.spoil(t, m, &r)
			names := m.Names()
			_, err := r.engine.Commit(ctx, r.change)
			require.ErrorIs(t, err, c.want)
			require.Equal(t, names, m.Names(), "nothing is left of the attempt")
		})
	}
	// The object can be asked for and deleted like any other.
	m := store.NewMem()
	r := recluster(t, m)
	n, err := r.engine.Stat(ctx, r.labels)
	require.NoError(t, err)
	require.Equal(t, r.labels.Bytes, n)
	require.Error(t, r.engine.Delete(ctx, table.Object{Kind: table.ObjectPartition, Path: "data/x"}))
}

// Damage to a label file is found by whoever needs the row, and by a check.
func TestDamagedLabelFiles(t *testing.T) {
	m := store.NewMem()
	r := recluster(t, m)
	r.commit(t)
	good := read(t, m, r.labels.Path)
	rng := rand.New(rand.NewPCG(1, 2))
	ask := func() (answered int, err error) {
		e := openStore(t, m)
		h, err := fri.Load(ctx, e, load(t, e, 0))
		require.NoError(t, err)
		tr := h.Translator()
		var first error
		for id := range int64(160) {
			got, err := tr.Translate(table.NewRowAddr(table.FragmentID(id/100), uint32(id%100)))
			require.Equal(t, err != nil, got.State == fri.Untranslatable)
			if err != nil {
				first = err
				var te *fri.TransitionError
				require.ErrorAs(t, err, &te)
				require.Equal(t, 0, te.Index)
				continue
			}
			answered++
		}
		return answered, first
	}
	n, err := ask()
	require.NoError(t, err)
	require.Equal(t, 160, n)

	require.NoError(t, m.Delete(ctx, r.labels.Path))
	n, err = ask()
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.Zero(t, n)
	findings, _ := check(t, m, 0)
	require.Len(t, findings, 1)
	require.Contains(t, findings[0], r.labels.Path)

	put(t, m, r.labels.Path, good[:len(good)-1])
	_, err = ask()
	require.ErrorIs(t, err, table.ErrCorrupt)

	refused := 0
	for range 300 {
		bad := append([]byte(nil), good...)
		bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
		put(t, m, r.labels.Path, bad)
		if _, err := ask(); err != nil {
			refused++
			findings, _ := check(t, m, 0)
			if !errors.Is(err, table.ErrUnsupported) {
				require.ErrorIs(t, err, table.ErrCorrupt)
				require.NotEmpty(t, findings)
			}
		}
	}
	require.Greater(t, refused, 30, "the rest is padding between buffers, or swaps labels that balance")
}

// Many blocks of labels, all of them the same, and a large number of destinations.
func TestLargePartition(t *testing.T) {
	m := store.NewMem()
	e := newTable(t, m, 1)
	b, err := fri.NewPartitionBuilder(40_000)
	require.NoError(t, err)
	const physical = 3*fri.BlockRows + 17
	labels := make([]uint16, physical)
	var ids []table.FragmentID
	for i := range 40_000 {
		ids = append(ids, table.FragmentID(1000+i))
	}
	for i := range labels {
		if i > fri.BlockRows {
			labels[i] = uint16(i * 7919 % 40_000)
		}
	}
	require.NoError(t, b.AddSource(fri.Digest{ID: 7, PhysicalRows: physical}, nil, labels))
	ref, _, err := e.WritePartition(ctx, b.Build())
	require.NoError(t, err)
	tr, err := b.Build().Transition(ids, ref)
	require.NoError(t, err)
	h, err := (&fri.History{}).Append(1, tr)
	require.NoError(t, err)
	open, err := e.Partitions(load(t, e, 0))
	require.NoError(t, err)
	h = h.WithPartitions(context.Background(), open)
	seen := make([]uint32, len(ids))
	for i, label := range labels {
		want := fri.Translation{State: fri.Moved, Addr: table.NewRowAddr(ids[label], seen[label])}
		require.Equal(t, want, h.Translate(table.NewRowAddr(7, uint32(i))))
		seen[label]++
	}
	require.NoError(t, tr.CheckLabels(ctx, open))
}
