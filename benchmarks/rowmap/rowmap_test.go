package rowmap

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// drawCompactions makes up to four compactions of small fragments, groups with
// several destinations among them, empty ones and wholly deleted sources too.
func drawCompactions(t *rapid.T, shuffle bool) [][]Group {
	next := table.FragmentID(rapid.SampledFrom([]uint32{0, 1, 9000}).Draw(t, "first id"))
	var live []fri.Digest
	for range rapid.IntRange(1, 5).Draw(t, "fragments") {
		live = append(live, fri.Digest{ID: next, PhysicalRows: rapid.Uint64Range(1, 40).Draw(t, "rows")})
		next++
	}
	var out [][]Group
	for range rapid.IntRange(1, 4).Draw(t, "compactions") {
		cut := rapid.IntRange(0, len(live)).Draw(t, "groups are cut at")
		var gs []Group
		var rest []fri.Digest
		for _, ds := range [][]fri.Digest{live[:cut], live[cut:]} {
			if len(ds) == 0 || rapid.IntRange(0, 4).Draw(t, "leave") == 0 {
				rest = append(rest, ds...)
				continue
			}
			g := Group{Sources: slices.Clone(ds)}
			for i, d := range g.Sources {
				v := deletion.Of()
				if rapid.Bool().Draw(t, "delete") {
					a := rapid.Uint64Range(0, d.PhysicalRows).Draw(t, "from")
					v = deletion.Range(a, rapid.Uint64Range(a, d.PhysicalRows).Draw(t, "to"))
					v = v.Union(deletion.Of(uint32(rapid.Uint64Range(0, d.PhysicalRows-1).Draw(t, "one"))))
				}
				g.Deleted = append(g.Deleted, v)
				g.Sources[i].DeletedRows = v.Cardinality()
			}
			left := moved([]Group{g})
			if shuffle && rapid.Bool().Draw(t, "shuffled") {
				for k := range uint32(left) {
					g.Order = append(g.Order, k)
				}
				g.Order = rapid.Permutation(g.Order).Draw(t, "order")
			}
			for left > 0 {
				n := rapid.Uint64Range(1, left).Draw(t, "destination")
				g.Destinations = append(g.Destinations, fri.Digest{ID: next, PhysicalRows: n})
				rest = append(rest, fri.Digest{ID: next, PhysicalRows: n})
				next, left = next+1, left-n
			}
			gs = append(gs, g)
		}
		slices.SortFunc(rest, func(a, b fri.Digest) int { return int(int64(a.ID) - int64(b.ID)) })
		if live = rest; len(gs) > 0 {
			out = append(out, gs)
		}
		if len(live) == 0 {
			break
		}
	}
	return out
}

// naive answers by looking at every move.
func naive(cs [][]Group, a table.RowAddr) fri.Translation {
	out := fri.Translation{State: fri.Unaffected, Addr: a}
	for _, gs := range cs {
		for _, g := range gs {
			for _, s := range g.Sources {
				if s.ID != a.Fragment() || uint64(a.Offset()) >= s.PhysicalRows {
					continue
				}
				out = fri.Translation{State: fri.Deleted}
				for m := range g.Moves() {
					if a >= m.From && a < m.From+table.RowAddr(m.Rows) {
						out = fri.Translation{State: fri.Moved, Addr: m.To + a - m.From}
					}
				}
				if out.State == fri.Deleted {
					return out
				}
			}
			if out.State == fri.Moved && out.Addr != a {
				break
			}
		}
		a = out.Addr
	}
	return out
}

// open returns every decoded form of every coding, and the reuse index if it can
// express the workload.
func open(t require.TestingT, cs [][]Group) map[string]ChangeOfAddress {
	out := make(map[string]ChangeOfAddress)
	shuffled := false
	for _, gs := range cs {
		for _, g := range gs {
			shuffled = shuffled || g.Order != nil
		}
	}
	for _, c := range append(Packed(), Plain) {
		var txs []*Transaction
		for _, gs := range cs {
			tx, err := NewTransaction(gs, c)
			if shuffled && (c == Gaps || c == Bits) {
				if err != nil {
					require.ErrorIs(t, err, table.ErrUnsupported)
					break
				}
			}
			require.NoError(t, err)
			b, err := tx.Encode()
			require.NoError(t, err)
			tx, err = DecodeTransaction(b)
			require.NoError(t, err)
			txs = append(txs, tx)
		}
		if len(txs) < len(cs) {
			continue
		}
		h, err := OpenHash(txs)
		require.NoError(t, err, "%v", c)
		s, err := OpenSorted(txs)
		require.NoError(t, err, "%v", c)
		i, err := OpenIntervals(txs)
		require.NoError(t, err, "%v", c)
		out[c.String()+" hash"], out[c.String()+" sorted"], out[c.String()+" intervals"] = h, s, i
	}
	if shuffled {
		return out
	}
	h := &fri.History{}
	for v, gs := range cs {
		var ts []*fri.Transition
		for _, g := range gs {
			var b fri.Builder
			for i, s := range g.Sources {
				require.NoError(t, b.AddSource(s, g.Deleted[i]))
			}
			tr, err := b.Build(g.Destinations)
			require.NoError(t, err)
			ts = append(ts, tr)
		}
		var err error
		h, err = h.Append(uint64(v+1), ts...)
		require.NoError(t, err)
	}
	opened, err := OpenHistory(h.Encode())
	require.NoError(t, err)
	out["fri"] = opened
	return out
}

// every address that ever was, and the first that never was of each fragment.
func everywhere(cs [][]Group) []table.RowAddr {
	var out []table.RowAddr
	for _, gs := range cs {
		for _, g := range gs {
			for _, d := range slices.Concat(g.Sources, g.Destinations) {
				for o := range d.PhysicalRows + 1 {
					out = append(out, table.NewRowAddr(d.ID, uint32(o)))
				}
			}
		}
	}
	out = append(out, table.NewRowAddr(77777, 3))
	slices.Sort(out)
	return out
}

// TestAllFormsAgree: every form of every coding answers like the naive model, and
// like the reuse index, one by one and in batches.
func TestAllFormsAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cs := drawCompactions(t, true)
		if len(cs) == 0 {
			return
		}
		addrs := everywhere(cs)
		want := make([]fri.Translation, len(addrs))
		for i, a := range addrs {
			want[i] = naive(cs, a)
		}
		for name, c := range open(t, cs) {
			got, states := slices.Clone(addrs), make([]fri.State, len(addrs))
			require.NoError(t, c.TranslateSorted(got, states))
			for i, a := range addrs {
				one, err := c.Translate(a)
				require.NoError(t, err)
				for _, g := range []fri.Translation{one, {State: states[i], Addr: got[i]}} {
					if g.State != want[i].State || g.State != fri.Deleted && g.Addr != want[i].Addr {
						t.Fatalf("%s: %v: got %v (batch: %v %v), want %v", name, a, one, states[i], got[i], want[i])
					}
				}
			}
		}
	})
}

// TestWorkloads: the workloads that are measured give the same answers in every
// approach, each under its own pattern.
func TestWorkloads(t *testing.T) {
	for _, w := range []Workload{
		{Rows: 30_000}, {Rows: 30_000, DeletedPercent: 1}, {Rows: 30_000, DeletedPercent: 10, Pattern: Clustered},
		{Rows: 30_000, DeletedPercent: 50, Pattern: Regular}, {Rows: 30_000, DeletedPercent: 50, Stacked: 12},
		{Rows: 30_000, DeletedPercent: 10, Shuffled: true},
	} {
		w.SourceRows = 4000
		t.Run(w.String(), func(t *testing.T) {
			costs, answers, err := Run(t.Context(), w, Approaches(), Questions{Lookups: 20_000, Rounds: 1, Rebase: []int{1, 500}})
			require.NoError(t, err)
			require.Len(t, costs, 3)
			want := len(Approaches())
			if w.Shuffled {
				want-- // the index cannot express it
				require.Contains(t, costs[StoredFRI].Refused, "does not keep the order")
			}
			require.Len(t, answers, want)
			digest := answers[Approach{StoredPlain, FormHash}].Digest
			for a, got := range answers {
				require.Equal(t, digest, got.Digest, "%v", a)
				require.Len(t, got.Rebases, 2)
				require.Positive(t, got.Rebases[1].Cold)
			}
			plain := costs[StoredPlain]
			require.InDelta(t, 32*float64(w.Rows), float64(plain.Total)/float64(max(1, w.Stacked)), 16*float64(w.Rows), "both copies count")
			require.Less(t, costs[StoredPacked].Total, plain.Total/5)
		})
	}
}

func TestRebaseCollectsTheRowsWhereTheyAre(t *testing.T) {
	g := Group{
		Sources:      []fri.Digest{{ID: 3, PhysicalRows: 4, DeletedRows: 1}},
		Deleted:      []*deletion.Vector{deletion.Of(2)},
		Destinations: []fri.Digest{{ID: 9, PhysicalRows: 1}, {ID: 10, PhysicalRows: 2}},
	}
	for name, c := range open(t, [][]Group{{g}}) {
		dead, gone, err := Rebase(c, []table.RowAddr{table.NewRowAddr(0, 0), table.NewRowAddr(0, 7), table.NewRowAddr(3, 0), table.NewRowAddr(3, 2), table.NewRowAddr(3, 3)})
		require.NoError(t, err)
		require.Equal(t, 1, gone, name)
		require.Len(t, dead, 3)
		require.True(t, dead[0].Equal(deletion.Of(0, 7)), name)
		require.True(t, dead[9].Equal(deletion.Of(0)), name)
		require.True(t, dead[10].Equal(deletion.Of(1)), name)
	}
}

func TestAMapIsStoredTwice(t *testing.T) {
	cs, err := Workload{Rows: 1000}.Compactions()
	require.NoError(t, err)
	tx, err := NewTransaction(cs[0], Plain)
	require.NoError(t, err)
	require.Len(t, tx.Map, 16_000)
	b, err := tx.Encode()
	require.NoError(t, err)
	n, err := tx.Committed(b)
	require.NoError(t, err)
	require.InDelta(t, 2*16_000, n, 40)
}

// A map that does not belong to its transaction is refused, whatever its coding.
func TestForeignMapsAreRefused(t *testing.T) {
	cs, err := Workload{Rows: 3000, SourceRows: 1000, DeletedPercent: 10}.Compactions()
	require.NoError(t, err)
	other, err := Workload{Rows: 3300, SourceRows: 1100, DeletedPercent: 10, Seed: 1}.Compactions()
	require.NoError(t, err)
	for _, c := range append(Packed(), Plain) {
		tx, err := NewTransaction(cs[0], c)
		require.NoError(t, err)
		foreign, err := NewTransaction(other[0], c)
		require.NoError(t, err)
		tx.Map = foreign.Map
		_, err = OpenHash([]*Transaction{tx})
		require.ErrorIs(t, err, table.ErrCorrupt, "%v", c)
		tx.Map = tx.Map[:len(tx.Map)-16]
		_, err = OpenSorted([]*Transaction{tx})
		require.ErrorIs(t, err, table.ErrCorrupt, "%v", c)
	}
	tx, err := NewTransaction(cs[0], Runs)
	require.NoError(t, err)
	for _, open := range []func([]*Transaction) error{
		func(t []*Transaction) error { _, err := OpenHash(t); return err },
		func(t []*Transaction) error { _, err := OpenSorted(t); return err },
		func(t []*Transaction) error { _, err := OpenIntervals(t); return err },
	} {
		require.ErrorContains(t, open([]*Transaction{tx, tx}), "rewritten twice")
	}
}

func TestWorkloadsThatCannotBe(t *testing.T) {
	for _, w := range []Workload{{}, {Rows: 1, DeletedPercent: 100}, {Rows: 1, Pattern: "?"}, {Rows: 1, Stacked: -1}, {Rows: 1, SourceRows: 1 << 32}} {
		_, err := w.Compactions()
		require.Error(t, err, "%+v", w)
	}
}

// FuzzTransaction: whatever the bytes, decoding ends with moves that fit the
// fragments or with an error.
func FuzzTransaction(f *testing.F) {
	for _, w := range []Workload{{Rows: 60, SourceRows: 20, DeletedPercent: 20}, {Rows: 40, SourceRows: 15, Shuffled: true}} {
		cs, err := w.Compactions()
		require.NoError(f, err)
		for _, c := range append(Packed(), Plain) {
			if tx, err := NewTransaction(cs[0], c); err == nil {
				b, err := tx.Encode()
				require.NoError(f, err)
				f.Add(b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		tx, err := DecodeTransaction(data)
		if err != nil {
			require.ErrorIs(t, err, table.ErrCorrupt)
			return
		}
		if moved(tx.Groups) > 1<<20 {
			return // larger than it can justify is for the reader of the file to refuse
		}
		rows := uint64(0)
		for m, err := range tx.Moves() {
			if err != nil {
				require.ErrorIs(t, err, table.ErrCorrupt)
				return
			}
			rows += m.Rows
		}
		require.Equal(t, moved(tx.Groups), rows)
		for _, c := range []Coding{Plain, Runs, Delta} {
			tx.Coding = c
			tx.Map = binary.LittleEndian.AppendUint64(tx.Map, 1)
			for range tx.Moves() { //nolint:revive // it must end
			}
		}
	})
}
