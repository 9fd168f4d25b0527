package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// indexView is a version's indexes as its readers see them.
type indexView struct {
	indexes []table.IndexMeta
	// obstacle says in words why the table's fragment reuse index cannot be
	// extended; empty if it can, or if there is none yet.
	obstacle string
}

// EffectiveIndexes returns the snapshot's indexes with the coverage that readers see:
// the stored coverage, translated by the table's fragment reuse index. It does not
// translate by a fragment reuse index of an unknown kind.
func EffectiveIndexes(ctx context.Context, e table.Engine, s *table.Snapshot) ([]table.IndexMeta, error) {
	v, err := viewIndexes(ctx, e, s)
	return v.indexes, err
}

// viewIndexes reads the snapshot's fragment reuse index, if it has one, and
// applies it to the coverage of the indexes, as readers do. In a table that others
// compacted, an index's stored coverage may name fragments that were rewritten long
// ago, where readers see their destinations. A plan by stored coverage would form
// groups that an index covers in part.
func viewIndexes(ctx context.Context, e table.Engine, s *table.Snapshot) (indexView, error) {
	v := indexView{indexes: s.Indexes}
	if s.Reuse == nil {
		return v, nil
	}
	h, err := readHistory(ctx, e, s)
	if errors.Is(err, table.ErrUnsupported) {
		v.obstacle = "the table has a fragment reuse index that cannot be extended: " + err.Error()
		return v, nil
	}
	if err != nil {
		return v, err
	}
	if bad := h.Damaged(); len(bad) > 0 {
		v.obstacle = fmt.Sprintf("the table has a fragment reuse index that cannot be extended before what is damaged in it is dropped (trim does that when asked to): %v", h.Damage(bad[0]))
	} else if err := h.CheckComplete(); err != nil {
		v.obstacle = "the table has a fragment reuse index that cannot be extended: " + err.Error()
	}
	v.indexes = slices.Clone(s.Indexes)
	for i, m := range v.indexes {
		if !m.System && m.CoverageKnown {
			v.indexes[i].Coverage, _ = h.Follow(m.Coverage)
		}
	}
	return v, nil
}

// readHistory returns the snapshot's history, an empty one if it has none, in the
// engine's cache if that is fri.Cacher and has one.
func readHistory(ctx context.Context, e table.Engine, s *table.Snapshot) (*fri.History, error) {
	if s.Reuse == nil {
		return &fri.History{}, nil
	}
	content, err := e.ReuseIndex(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("compaction: table %s version %d: fragment reuse index: %w", s.Table, s.Version, err)
	}
	h, err := fri.Recover(content, s.Reuse.IndexVersion)
	if err == nil {
		h, err = h.SetAsideDamage() // what is committed upon is to be known
	}
	if err != nil {
		return nil, fmt.Errorf("compaction: table %s version %d: fragment reuse index: %w", s.Table, s.Version, err)
	}
	if r, ok := table.As[fri.Cacher](e); ok {
		if cache := r.ReuseCache(); cache != nil {
			h = cache.Attach(h)
		}
	}
	return h, nil
}

// transition is the change of address of a group that is about to be committed.
func transition(g rebase.Placed) (*fri.Transition, error) {
	var b fri.Builder
	for _, f := range g.Old {
		if err := b.AddSource(fri.DigestOf(f), g.Deleted[f.ID]); err != nil {
			return nil, err
		}
	}
	digests := make([]fri.Digest, len(g.Now))
	for i, f := range g.Now {
		// As written: what was deleted since is the business of the fragment's
		// deletion vector.
		digests[i] = fri.Digest{ID: f.ID, PhysicalRows: f.PhysicalRows}
	}
	return b.Build(digests)
}

// extend adds the groups' changes of address to the history in the version that is
// being replaced, dated with the version that the commit becomes: an index built
// before that one predates the move, whatever its builder read. It returns the
// number of transitions added, and no update if that is zero.
func extend(ctx context.Context, e table.Engine, base *table.Snapshot, groups []rebase.Placed) (*table.ReuseIndexUpdate, int, error) {
	h, err := readHistory(ctx, e, base)
	if err != nil {
		return nil, 0, err
	}
	var ts []*fri.Transition
	var added []table.FragmentID
	for _, g := range groups {
		if len(g.Now) == 0 {
			// No live row moved, so no address has to be followed, and readers are
			// known that stumble over a change of address without survivors.
			continue
		}
		t, err := transition(g)
		if err != nil {
			return nil, 0, fmt.Errorf("compaction: table %s: change of address of fragments %s: %w", base.Table, table.FragmentList(g.SourceIDs()), err)
		}
		ts = append(ts, t)
		added = append(added, fragmentIDs(g.Now)...)
	}
	if len(ts) == 0 {
		return nil, 0, nil
	}
	if h, err = h.Append(base.Version+1, ts...); err != nil {
		return nil, 0, fmt.Errorf("compaction: table %s version %d: %w", base.Table, base.Version, err)
	}
	return &table.ReuseIndexUpdate{Content: h.Encode(), IndexVersion: h.IndexVersion(), Coverage: added}, len(ts), nil
}
