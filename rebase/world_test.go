package rebase_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var ctx = context.Background()

// tester is a *testing.T, a *rapid.T or what stands for one.
type tester interface {
	require.TestingT
	Helper()
}

// world is a table of rows that are told apart by their one value, a word, and those
// who change it. What others do is done by the plainest means, without this package.
type world struct {
	t    tester
	mem  *memengine.Engine
	e    table.Engine // mem, or something around it
	made int          // transactions by others

	strewn []string // objects that others left about
}

func newWorld(t tester) *world {
	e := memengine.New("t", table.Schema{Fields: []table.Field{{ID: 0, Name: "word", Type: arrow.BinaryTypes.String}}})
	return &world{t: t, mem: e, e: e}
}

func (w *world) head() *table.Snapshot {
	s, err := w.mem.Load(ctx, 0)
	require.NoError(w.t, err)
	return s
}

func (w *world) record(words []string) arrow.RecordBatch {
	b := array.NewStringBuilder(memory.DefaultAllocator)
	b.AppendValues(words, nil)
	return array.NewRecordBatch(w.head().Schema.Arrow(), []arrow.Array{b.NewArray()}, int64(len(words)))
}

// row is a live row.
type row struct {
	word string
	addr table.RowAddr
}

// rows are the live rows of a version, in table order.
func (w *world) rows(s *table.Snapshot) (out []row) {
	var ids []table.FragmentID
	for _, f := range s.Fragments {
		ids = append(ids, f.ID)
	}
	return w.rowsOf(s, ids)
}

func (w *world) rowsOf(s *table.Snapshot, ids []table.FragmentID) (out []row) {
	for b, err := range w.mem.Rows(ctx, s, ids, table.ReadOptions{WithAddrs: true}) {
		require.NoError(w.t, err)
		column := b.Record.Column(0).(*array.String)
		for i, a := range b.Addrs {
			out = append(out, row{strings.Clone(column.Value(i)), a})
		}
	}
	return out
}

// find returns the addresses of words that are there.
func (w *world) find(s *table.Snapshot, words []string) (addrs []table.RowAddr) {
	for _, r := range w.rows(s) {
		if slices.Contains(words, r.word) {
			addrs = append(addrs, r.addr)
		}
	}
	require.Len(w.t, addrs, len(words), "words %v", words)
	return addrs
}

// write writes words as new fragments of the given sizes.
func (w *world) write(words []string, sizes ...int) (out []table.NewFragment, objects []table.Object) {
	for _, n := range sizes {
		rec := w.record(words[:n])
		words = words[n:]
		rows := func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rec}, nil) }
		written, err := w.mem.WriteFragments(ctx, w.head().Schema, rows, table.WriteOptions{})
		require.NoError(w.t, err)
		out = append(out, written.Fragments...)
		objects = append(objects, written.Objects...)
	}
	return out, objects
}

// uncommitted computes a change from the newest version.
func (w *world) uncommitted(op table.Operation, affected, words []string) rebase.Uncommitted {
	s := w.head()
	u := rebase.Uncommitted{Table: s.Table}
	u.Affect(s, rebase.Rows(w.find(s, affected)...))
	w.made++
	u.Transaction = table.Transaction{ID: fmt.Sprint("change-", w.made), ReadVersion: s.Version, Operation: op}
	if len(words) > 0 {
		u.New, u.Objects = w.write(words, len(words))
	}
	return u
}

// uncommittedRewrite computes a compaction.
func (w *world) uncommittedRewrite(ids []table.FragmentID, sizes []int) rebase.Uncommitted {
	s := w.head()
	g := rebase.Group{Deleted: rebase.RowSet{}, Shape: rebase.ShapeOf(s.Schema)}
	for _, id := range ids {
		f, ok := s.Fragment(id)
		require.True(w.t, ok, "fragment %d", id)
		g.Old = append(g.Old, f)
		if f.Deletion != nil {
			dead, err := w.mem.ReadDeletions(ctx, s, f)
			require.NoError(w.t, err)
			g.Deleted.Add(id, dead.(*deletion.Vector))
		}
	}
	u := w.uncommitted(table.Rewrite{}, nil, nil)
	var words []string
	for _, r := range w.rowsOf(s, ids) {
		words = append(words, r.word)
	}
	g.New, g.Objects = w.write(words, fitSizes(sizes, len(words))...)
	u.Groups = []rebase.Group{g}
	return u
}

// fitSizes makes the last of sizes what is left of n.
func fitSizes(sizes []int, n int) (out []int) {
	for _, s := range sizes {
		if n > 0 {
			out = append(out, min(s, n))
			n -= min(s, n)
		}
	}
	if n > 0 {
		out = append(out, n)
	}
	return out
}

// commit commits a change of somebody else.
func (w *world) commit(op table.Operation, c table.Change) {
	w.made++
	base := w.head()
	_, err := w.mem.Commit(ctx, table.Proposal{Base: base, Change: c,
		Transaction: table.Transaction{ID: fmt.Sprint("others-", w.made), ReadVersion: base.Version, Operation: op}})
	require.NoError(w.t, err)
}

func (w *world) append(words ...string) { require.NoError(w.t, w.mem.Append(ctx, w.record(words))) }

func (w *world) delete(words ...string) {
	require.NoError(w.t, w.mem.DeleteRows(ctx, w.find(w.head(), words)...))
}

// update gives rows another value: "a" becomes "a'".
func (w *world) update(words ...string) {
	s := w.head()
	var op table.Update
	c := table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{}}
	for id, v := range rebase.Rows(w.find(s, words)...) {
		f, _ := s.Fragment(id)
		dead, err := w.mem.ReadDeletions(ctx, s, f)
		require.NoError(w.t, err)
		v = v.Union(dead.(*deletion.Vector))
		if v.Cardinality() == f.PhysicalRows {
			op.Removed = append(op.Removed, id)
			continue
		}
		ref, err := w.mem.WriteDeletions(ctx, id, s.Version, v)
		require.NoError(w.t, err)
		f.Deletion, c.SetDeletion[id] = &ref, &ref
		op.Updated = append(op.Updated, f)
	}
	op.New = w.numbered(primed(words), len(words))
	c.Remove, c.Add = op.Removed, op.New
	w.commit(op, c)
}

// primed are the words that an update makes of others.
func primed(words []string) (out []string) {
	for _, x := range words {
		out = append(out, x+"'")
	}
	return out
}

func (w *world) numbered(words []string, sizes ...int) (out []table.Fragment) {
	fragments, _ := w.write(words, sizes...)
	for i, f := range fragments {
		out = append(out, table.Fragment{ID: w.head().NextFragmentID + table.FragmentID(i), PhysicalRows: f.PhysicalRows, Files: f.Files})
	}
	return out
}

// how a compaction by others is done.
type how struct {
	recorded bool // in the fragment reuse index
	reversed bool // it does not keep the order of rows
	vague    bool // it names the old fragments without their deletion vectors
	mistaken bool // it names other dead rows than there were, the same number
}

// compact rewrites fragments, as a stock engine does.
func (w *world) compact(ids []table.FragmentID, sizes []int, h how) {
	s := w.head()
	var g table.RewriteGroup
	var b fri.Builder
	for _, id := range ids {
		f, ok := s.Fragment(id)
		require.True(w.t, ok, "fragment %d", id)
		dead, err := w.mem.ReadDeletions(ctx, s, f)
		require.NoError(w.t, err)
		require.NoError(w.t, b.AddSource(fri.DigestOf(f), dead))
		if h.vague {
			f.Deletion = nil
		}
		if h.mistaken {
			last := f.PhysicalRows
			ref, err := w.mem.WriteDeletions(ctx, id, s.Version, deletion.Range(last-f.DeletedRows(), last))
			require.NoError(w.t, err)
			w.strewn = append(w.strewn, ref.Path)
			f.Deletion = &ref
		}
		g.Old = append(g.Old, f)
	}
	var words []string
	for _, r := range w.rowsOf(s, ids) {
		words = append(words, r.word)
	}
	if h.reversed {
		slices.Reverse(words)
	}
	g.New = w.numbered(words, fitSizes(sizes, len(words))...)
	c := table.Change{Remove: ids, Add: g.New}
	if h.recorded {
		history, err := fri.Load(ctx, w.mem, s)
		require.NoError(w.t, err)
		var to []fri.Digest
		for _, f := range g.New {
			to = append(to, fri.DigestOf(f))
		}
		t, err := b.Build(to)
		require.NoError(w.t, err)
		history, err = history.Append(s.Version+1, t)
		require.NoError(w.t, err)
		c.Reuse = &table.ReuseIndexUpdate{Content: history.Encode(), IndexVersion: history.IndexVersion()}
	}
	w.commit(table.Rewrite{Groups: []table.RewriteGroup{g}}, c)
}

// String shows the newest version: for each fragment its rows, a dot for a dead one.
func (w *world) String() string {
	s := w.head()
	var out strings.Builder
	for _, f := range s.Fragments {
		fmt.Fprintf(&out, "%d:", f.ID)
		words := make([]string, f.PhysicalRows)
		for _, r := range w.rowsOf(s, []table.FragmentID{f.ID}) {
			words[r.addr.Offset()] = r.word
		}
		for _, x := range words {
			if x == "" {
				x = "."
			}
			out.WriteString(" " + x)
		}
		out.WriteString("\n")
	}
	if out.Len() == 0 {
		return "no rows\n"
	}
	return out.String()
}

// words are the live rows of the newest version, sorted.
func (w *world) words() (out []string) {
	for _, r := range w.rows(w.head()) {
		out = append(out, r.word)
	}
	slices.Sort(out)
	return out
}

// orphans are objects that no version refers to.
func (w *world) orphans() (out []string) {
	used := map[string]bool{}
	for v := uint64(1); v <= w.head().Version; v++ {
		s, err := w.mem.Load(ctx, v)
		require.NoError(w.t, err)
		for _, f := range s.Fragments {
			for _, d := range f.Files {
				used[d.Path] = true
			}
			if f.Deletion != nil {
				used[f.Deletion.Path] = true
			}
		}
	}
	objects, err := w.mem.Objects(ctx)
	require.NoError(w.t, err)
	for _, o := range objects {
		if !used[o.Path] && !slices.Contains(w.strewn, o.Path) {
			out = append(out, o.Path)
		}
	}
	return out
}

// objectsOf are all objects that were written for a change.
func objectsOf(u rebase.Uncommitted) []table.Object {
	out := slices.Clone(u.Objects)
	for _, g := range u.Groups {
		out = append(out, g.Objects...)
	}
	return out
}
