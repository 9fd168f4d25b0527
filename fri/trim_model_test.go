package fri_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/fri/fritest"
	"github.com/rehome-db/rehome/table"
)

// trimModel is a table whose history is trimmed while it is compacted and its
// indexes are built, re-targeted and remapped by writers of different habits.
type trimModel struct {
	*fritest.Model
	indexes []modelIndex
	// building are indexes whose builder has read the table and not committed.
	building []modelIndex
	// stored are the indexes of each version, from 1; oldest is the first version
	// that was not cleaned up.
	stored    [][]table.IndexMeta
	oldest    uint64
	committed map[table.FragmentID]uint64 // of the transition, by its first source
	holders   []holder
	made      byte
}

// modelIndex is an index with the addresses that its files hold.
type modelIndex struct {
	table.IndexMeta
	entries []table.RowAddr
}

// holder is somebody outside the table with addresses of a version.
type holder struct {
	version uint64
	addrs   []table.RowAddr
}

func (m *trimModel) commit() {
	m.Version++
	var now []table.IndexMeta
	for _, x := range m.indexes {
		x.Coverage = slices.Clone(x.Coverage)
		now = append(now, x.IndexMeta)
	}
	m.stored = append(m.stored, now)
}

// liveAddrs are the addresses of the rows of some fragments that are not deleted.
func (m *trimModel) liveAddrs(over func(table.FragmentID) bool) (out []table.RowAddr) {
	for _, f := range m.Live {
		for o := range f.Rows {
			if over(f.ID) && !f.Dead.Contains(uint32(o)) {
				out = append(out, table.NewRowAddr(f.ID, uint32(o)))
			}
		}
	}
	return out
}

// begin reads the table for an index over some of its fragments.
func (m *trimModel) begin(t *rapid.T) {
	m.made++
	x := modelIndex{IndexMeta: table.IndexMeta{
		UUID: table.UUID{m.made}, Name: string(rune('a' + m.made%26)), DatasetVersion: m.Version,
		CoverageKnown: rapid.IntRange(0, 9).Draw(t, "unknown") > 0,
		Reuse:         rapid.SampledFrom([]table.ReuseSupport{table.ReuseThrough, table.ReuseThrough, table.ReuseMasked, table.ReuseRefuses}).Draw(t, "kind"),
	}}
	covers := map[table.FragmentID]bool{}
	for _, f := range m.Live {
		if rapid.IntRange(0, 3).Draw(t, "covered") > 0 {
			covers[f.ID] = true
			x.Coverage = append(x.Coverage, f.ID)
		}
	}
	x.entries = m.liveAddrs(func(id table.FragmentID) bool { return covers[id] })
	if !x.CoverageKnown {
		x.Coverage = nil
	}
	m.building = append(m.building, x)
}

// finish commits an index, unless a fragment that its builder read was rewritten:
// engines refuse that.
func (m *trimModel) finish() {
	x := m.building[0]
	m.building = m.building[1:]
	for _, a := range x.entries {
		if !slices.ContainsFunc(m.Live, func(f fritest.Fragment) bool { return f.ID == a.Fragment() }) {
			return
		}
	}
	m.indexes = append(m.indexes, x)
	m.commit()
}

// rewrite compacts, and does to coverage what a writer might: re-target it, leave
// it to whoever commits next, or mask it.
func (m *trimModel) rewrite(t *rapid.T) {
	var ts []*fri.Transition
	limit := m.Next
	for range rapid.IntRange(1, 2).Draw(t, "groups") {
		var at []int
		for i, f := range m.Live {
			if f.ID < limit && rapid.IntRange(0, 2).Draw(t, "take") > 0 {
				at = append(at, i)
			}
		}
		if len(at) > 0 {
			first := m.Live[at[0]].ID
			ts = append(ts, m.Compact(t, at, rapid.SliceOfN(rapid.Uint64Range(0, 9), 0, 2).Draw(t, "sizes"), false))
			m.committed[first] = m.Version + 1
		}
	}
	if len(ts) == 0 {
		return
	}
	recorded := m.Version + 1
	if n := m.History.Len(); rapid.Bool().Draw(t, "stock") {
		recorded -= rapid.Uint64Range(0, 3).Draw(t, "held")
		if n > 0 {
			recorded = max(recorded, m.History.At(n-1).DatasetVersion())
		}
		recorded = max(recorded, 1)
		recorded = min(recorded, m.Version+1)
	}
	h, err := m.History.Append(recorded, ts...)
	require.NoError(t, err)
	m.History = h
	if rapid.Bool().Draw(t, "retarget") {
		m.retarget()
	}
	for i, x := range m.indexes {
		if x.Reuse == table.ReuseMasked && rapid.Bool().Draw(t, "mask") {
			m.indexes[i].Coverage, m.indexes[i].CoverageKnown = []table.FragmentID{}, true
		}
	}
	m.commit()
}

func (m *trimModel) retarget() {
	for i, x := range m.indexes {
		if x.CoverageKnown {
			m.indexes[i].Coverage, _ = m.History.Follow(x.Coverage)
		}
	}
}

// remap rewrites an index's files by the history. Entries that the index does not
// claim, because a rewrite took a part of its fragments only, are left out.
func (m *trimModel) remap(i int) {
	x := m.indexes[i]
	m.made++
	out := modelIndex{IndexMeta: x.IndexMeta}
	out.UUID, out.DatasetVersion = table.UUID{m.made}, m.Version
	if x.CoverageKnown {
		out.Coverage, _ = m.History.Follow(x.Coverage)
	}
	for _, a := range x.entries {
		to := m.History.Translate(a)
		if to.State != fri.Deleted && (!x.CoverageKnown || slices.Contains(out.Coverage, to.Addr.Fragment())) {
			out.entries = append(out.entries, to.Addr)
		}
	}
	m.indexes[i] = out
	m.commit()
}

// trim trims, knowing of each commit what the versions that are left tell.
func (m *trimModel) trim(t *rapid.T) {
	var trimming fri.Trimming
	for _, x := range m.indexes {
		trimming.Indexes = append(trimming.Indexes, x.IndexMeta)
	}
	for _, tr := range m.History.All() {
		v := m.committed[tr.Sources()[0].ID]
		c := fri.Commit{Version: max(v, m.oldest)}
		if v > m.oldest {
			c.Before, c.BeforeKnown = m.stored[v-2], true
		}
		trimming.Commits = append(trimming.Commits, c)
	}
	trimming.OldestReader = rapid.SampledFrom([]uint64{0, 0, m.Version, max(m.Version, 4) - 3}).Draw(t, "readers")
	since := trimming.OldestReader
	if since == 0 {
		since = m.Version
	}
	m.holders = slices.DeleteFunc(m.holders, func(h holder) bool { return h.version < since })
	kept, dropped, err := m.History.Trim(trimming)
	require.NoError(t, err)
	if len(dropped) == 0 {
		return
	}
	stored, err := fri.Decode(kept.Encode(), 0)
	require.NoError(t, err)
	m.History = stored
	m.commit()
}

// check: every index entry, and every address that somebody may hold, leads to where
// its row is now.
func (m *trimModel) check(t *rapid.T) {
	for _, x := range m.indexes {
		claims, _ := m.History.Follow(x.Coverage)
		for _, a := range x.entries {
			want := m.Translate(a)
			if x.Reuse == table.ReuseMasked && x.CoverageKnown && !slices.Contains(claims, want.Addr.Fragment()) {
				continue // nobody looks there
			}
			require.Equal(t, want, withoutUnaffected(m.History.Translate(a), want), "index %s of version %d, row at %v", x.Name, x.DatasetVersion, a)
		}
	}
	for _, h := range m.holders {
		for _, a := range h.addrs {
			want := m.Translate(a)
			require.Equal(t, want, withoutUnaffected(m.History.Translate(a), want), "row at %v of version %d", a, h.version)
		}
	}
}

// withoutUnaffected: that a row moved to where it is does not matter.
func withoutUnaffected(got, want fri.Translation) fri.Translation {
	if got.State != fri.Deleted && want.State != fri.Deleted {
		got.State = want.State
	}
	return got
}

// TestTrimAgainstModel: after any sequence of compactions, index builds, remaps and
// trims, every index entry still resolves to where its row is now, whichever writers
// took part and whatever was cleaned up in between.
func TestTrimAgainstModel(t *testing.T) {
	trims := 0
	rapid.Check(t, func(t *rapid.T) {
		m := &trimModel{
			Model:     fritest.New(0),
			committed: map[table.FragmentID]uint64{}, oldest: 1,
		}
		m.Version = 0 // the first commit makes version 1
		m.commit()
		for range rapid.IntRange(2, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{
				"insert", "insert", "delete", "begin", "begin", "finish", "rewrite", "rewrite", "rewrite", "persist", "remap", "drop", "clean up", "hold", "trim", "trim",
			}).Draw(t, "step") {
			case "insert":
				m.Add(rapid.Uint64Range(1, 8).Draw(t, "rows"))
				m.commit()
			case "delete":
				for i := range m.Live {
					m.Live[i].DrawDeletions(t)
				}
				m.commit()
			case "begin":
				m.begin(t)
			case "finish":
				if len(m.building) > 0 {
					m.finish()
				}
			case "rewrite":
				m.rewrite(t)
			case "persist":
				m.retarget()
				m.commit()
			case "remap", "drop":
				if n := len(m.indexes); n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "index")
					if rapid.Bool().Draw(t, "remap") {
						m.remap(i)
					} else {
						m.indexes = slices.Delete(m.indexes, i, i+1)
						m.commit()
					}
				}
			case "clean up":
				m.oldest = rapid.Uint64Range(m.oldest, m.Version).Draw(t, "oldest")
			case "hold":
				m.holders = append(m.holders, holder{m.Version, m.liveAddrs(func(table.FragmentID) bool { return true })})
			case "trim":
				n := m.History.Len()
				m.trim(t)
				trims += n - m.History.Len()
			}
			m.check(t)
		}
	})
	require.Positive(t, trims, "nothing was ever dropped")
}
