package lance

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/table"
)

// idRun is a run of consecutive ids of live rows, both ends included.
type idRun struct {
	first, last table.RowID
	fragment    table.FragmentID
}

// rowIDs checks the stable row ids: each fragment has one for each physical row, and
// versions; ids are below the mark of those that were given out; and no two live rows
// share one.
func (c *checker) rowIDs(ctx context.Context) error {
	if !c.snapshot.StableRowIDs {
		return nil
	}
	var live []idRun
	for i, m := range c.version.Contents.Manifest.GetFragments() {
		f := c.snapshot.Fragments[i]
		where := fmt.Sprintf("fragment %d", f.ID)
		c.checked["row_id_sequences"]++
		runs, err := c.fragmentRowIDs(ctx, m, f)
		if err := c.finding("fragment", where, err); err != nil {
			return err
		}
		live = append(live, runs...)
	}
	slices.SortFunc(live, func(a, b idRun) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(live); i++ {
		if a, b := live[i-1], live[i]; b.first <= a.last {
			c.corrupt("fragment", fmt.Sprintf("fragment %d", b.fragment), "the row id %d is that of a live row of fragment %d, too", b.first, a.fragment)
			return nil // one says it all
		}
	}
	return nil
}

// fragmentRowIDs checks a fragment's lists and returns the ids of its live rows.
func (c *checker) fragmentRowIDs(ctx context.Context, m *tablepb.DataFragment, f table.Fragment) ([]idRun, error) {
	manifest := c.version.Contents.Manifest
	seq, err := c.engine.ids.Sequence(ctx, c.version, m)
	if err != nil {
		return nil, err
	}
	for _, last := range seq.Runs() {
		if uint64(last) >= manifest.GetNextRowId() {
			return nil, table.Corruptf("it has the row id %d, and only those below %d were given out", last, manifest.GetNextRowId())
		}
	}
	created, err := c.engine.ids.CreatedAt(ctx, m)
	if err != nil {
		return nil, err
	}
	updated, err := c.engine.ids.LastUpdatedAt(ctx, m)
	if err != nil {
		return nil, err
	}
	if v := max(created.Max(), updated.Max()); v > manifest.GetVersion() {
		return nil, table.Corruptf("it has a row of version %d, which is after this one", v)
	}
	gone, err := c.engine.root.Deletions(ctx, f)
	if err != nil {
		return nil, nil // whoever checks the deletion vectors reports it
	}
	var live []idRun
	for first, last := range seq.Select(gone.Live(f.PhysicalRows)).Runs() {
		live = append(live, idRun{first, last, f.ID})
	}
	return live, nil
}
