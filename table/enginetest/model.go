package enginetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rehome-db/rehome/table"
)

// testModel does random things to a table and to a model of it, which is a list
// of lists of row numbers, and compares the two after each step; now and then it
// goes back to an old version.
func testModel(t *testing.T, cfg Config) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			m := &model{fixture: newFixture(t, cfg), rng: rand.New(rand.NewPCG(seed, 0)), past: map[uint64][]int64{}}
			m.check()
			for step := range 30 {
				m.step()
				if m.check(); t.Failed() {
					t.Fatalf("seed %d, step %d", seed, step)
				}
			}
			for version, want := range m.past {
				s, err := m.engine.Load(m.ctx, version)
				m.NoError(err)
				m.hasRows(s, want)
			}
		})
	}
}

type model struct {
	*fixture
	rng       *rand.Rand
	fragments []modelFragment    // in table order
	past      map[uint64][]int64 // the live rows of each version
}

// modelFragment is the row numbers of a fragment by offset; -1 is deleted.
type modelFragment struct {
	id   table.FragmentID
	rows []int64
}

func (f modelFragment) live() []int64 { return without(f.rows, -1) }

// check compares the latest version with the model, addresses included.
func (m *model) check() {
	s := m.latest()
	var want []int64
	var wantAddrs []table.RowAddr
	for _, frag := range m.fragments {
		want = append(want, frag.live()...)
		for offset, row := range frag.rows {
			if row >= 0 {
				wantAddrs = append(wantAddrs, table.NewRowAddr(frag.id, uint32(offset)))
			}
		}
	}
	m.hasRows(s, want)
	_, addrs := m.read(s, fragmentIDs(s), table.ReadOptions{WithAddrs: true, BatchRows: 1 + m.rng.IntN(20)})
	m.Equal(wantAddrs, addrs)
	m.past[s.Version] = want
}

func (m *model) step() {
	switch n := m.rng.IntN(10); {
	case n < 4 || len(m.fragments) == 0:
		first := m.nextID
		frag := m.add(1 + m.rng.IntN(40))
		m.fragments = append(m.fragments, modelFragment{id: frag.ID, rows: numbers(first, int(frag.PhysicalRows))})
	case n < 7:
		m.deleteSome()
	case n < 9:
		m.compact()
	default:
		_, err := m.engine.ReserveFragments(m.ctx, uint32(1+m.rng.IntN(5)))
		m.NoError(err)
	}
}

// deleteSome deletes a few rows all over the table, but the last of no fragment:
// whether the fragment then goes away is the engine's choice.
func (m *model) deleteSome() {
	var addrs []table.RowAddr
	for i := range m.fragments {
		frag := &m.fragments[i]
		for range m.rng.IntN(3) {
			offset := m.rng.IntN(len(frag.rows))
			if len(frag.live()) > 1 || frag.rows[offset] < 0 {
				frag.rows[offset] = -1
				addrs = append(addrs, table.NewRowAddr(frag.id, uint32(offset)))
			}
		}
	}
	if len(addrs) > 0 {
		m.delete(addrs...)
	}
}

// compact replaces some neighbours by their live rows, as the executor and the
// publisher of a compaction do; rows by rows or by the engine's own rewriter.
func (m *model) compact() {
	from := m.rng.IntN(len(m.fragments))
	to := from + 1 + m.rng.IntN(len(m.fragments)-from)
	var sources []table.FragmentID
	var live []int64
	for _, frag := range m.fragments[from:to] {
		sources = append(sources, frag.id)
		live = append(live, frag.live()...)
	}
	s := m.latest()
	opts := table.WriteOptions{MaxRows: uint64(5 + m.rng.IntN(60))}
	var out table.Written
	var err error
	if rw, ok := table.As[table.Rewriter](m.engine); ok && m.rng.IntN(3) > 0 {
		out, err = rw.RewriteGroup(m.ctx, table.RewriteRequest{Snapshot: s, Sources: sources, Options: opts})
	} else {
		rows := m.engine.Rows(m.ctx, s, sources, table.ReadOptions{BatchRows: 7})
		out, err = m.engine.WriteFragments(m.ctx, s.Schema, rows, opts)
	}
	m.NoError(err)
	added := place(s, out.Fragments)
	m.commit(table.Change{Remove: sources, Add: added})

	m.fragments = slices.Delete(m.fragments, from, to)
	chunks := slices.Collect(slices.Chunk(live, int(opts.MaxRows)))
	m.Len(added, len(chunks))
	for i, rows := range chunks {
		m.fragments = append(m.fragments, modelFragment{id: added[i].ID, rows: slices.Clone(rows)})
	}
}
