package remap_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// vectors are the deletion vectors of fragments.
type vectors map[table.FragmentID]*deletion.Vector

func (v vectors) ReadDeletions(_ context.Context, _ *table.Snapshot, f table.Fragment) (table.OffsetSet, error) {
	if f.ID == 404 {
		return nil, errors.New("the store is away")
	}
	return v[f.ID], nil
}

func (v vectors) WriteDeletions(context.Context, table.FragmentID, uint64, table.OffsetSet) (table.DeletionRef, error) {
	panic("nothing is written")
}

// exampleHistory moved fragments 10 (8 rows, 2 and 5 deleted) and 11 (4 rows) to 200.
func TestReport23TheAddressesOfTheRowsThatAreMissing(t *testing.T) {
	now := version(202, table.Fragment{ID: 99, PhysicalRows: 3}, table.Fragment{ID: 200, PhysicalRows: 10}, table.Fragment{ID: 201, PhysicalRows: 5})
	dead := vectors{200: deletion.Of(7), 201: deletion.Of(0, 3)}
	addrs := func(id table.FragmentID, offsets ...uint32) (out []table.RowAddr) {
		for _, o := range offsets {
			out = append(out, table.NewRowAddr(id, o))
		}
		return out
	}
	fragment99, fragment201 := addrs(99, 0, 1, 2), addrs(201, 1, 2, 4)
	for name, c := range map[string]struct {
		covered []table.FragmentID
		missing []table.RowAddr
	}{
		"nothing covered":       {nil, slices.Concat(fragment99, addrs(200, 0, 1, 2, 3, 4, 5, 6, 8, 9), fragment201)},
		"all of a rewrite":      {[]table.FragmentID{10, 11}, slices.Concat(fragment99, fragment201)},
		"already up to date":    {[]table.FragmentID{99, 200, 201}, nil},
		"a rewrite that mixed":  {[]table.FragmentID{10, 99}, slices.Concat(addrs(200, 6, 8, 9), fragment201)},
		"the other part of it":  {[]table.FragmentID{11}, slices.Concat(fragment99, addrs(200, 0, 1, 2, 3, 4, 5), fragment201)},
		"gone without a record": {[]table.FragmentID{5, 99}, slices.Concat(addrs(200, 0, 1, 2, 3, 4, 5, 6, 8, 9), fragment201)},
	} {
		t.Run(name, func(t *testing.T) {
			r := remap.New(exampleHistory(), remap.Options{Current: now})
			var got []table.RowAddr
			for a, err := range r.Missing(t.Context(), dead, c.covered) {
				require.NoError(t, err)
				require.Positive(t, a.Len)
				for i := range a.Len {
					got = append(got, a.From+table.RowAddr(i))
				}
			}
			require.Equal(t, c.missing, got)
		})
	}

	last := func(r *remap.Remapper, ctx context.Context, covered ...table.FragmentID) (last error) {
		for _, err := range r.Missing(ctx, dead, covered) {
			last = err
		}
		return last
	}
	require.ErrorContains(t, last(remap.New(exampleHistory(), remap.Options{}), t.Context()), "Options.Current")
	away := remap.New(&fri.History{}, remap.Options{Current: version(500, table.Fragment{ID: 404, PhysicalRows: 1})})
	require.ErrorContains(t, last(away, t.Context()), "the store is away")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, last(away, canceled), context.Canceled)
	for range remap.New(exampleHistory(), remap.Options{Current: now}).Missing(t.Context(), dead, nil) {
		break // whoever has enough stops
	}
}
