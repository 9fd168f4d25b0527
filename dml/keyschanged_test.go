package dml_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// reshaped is an engine whose columns are others from some version on.
type reshaped struct {
	*memengine.Engine
	after  uint64
	change func(fields []table.Field)
	before func()
}

func (r *reshaped) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	s, err := r.Engine.Load(ctx, version)
	if err != nil || s.Version <= r.after {
		return s, err
	}
	out := *s
	out.Schema.Fields = slices.Clone(s.Schema.Fields)
	r.change(out.Schema.Fields)
	return &out, nil
}

// TestKeyColumnsChange: between the computation of an upsert and its commit somebody
// inserts rows and gives the key column another name, or its name to another one. The
// keys cannot be compared then, which is a conflict and no failure: computed again, the
// upsert finds what there is.
func TestKeyColumnsChange(t *testing.T) {
	keyed := columns()
	keyed.Fields[0].Metadata = map[string]string{"lance-schema:unenforced-primary-key": "true"}
	// What the second computation says.
	for name, c := range map[string]struct {
		change func(f []table.Field)
		says   string
	}{
		"renamed":           {func(f []table.Field) { f[0].Name = "other" }, `no column "k"`},
		"names are swapped": {func(f []table.Field) { f[0].Name, f[3].Name = f[3].Name, f[0].Name }, "the columns are not those that the source was read for"},
	} {
		t.Run(name, func(t *testing.T) {
			mem := memengine.New("t", keyed)
			mustDo(t, mem, dml.Append{Rows: in(10, numbered(5))})
			e := &reshaped{Engine: mem, after: math.MaxUint64, change: c.change}
			e.before = func() {
				e.before = func() {}
				mustDo(t, mem, dml.Append{Rows: in(10, []row{{K: ptr(int64(1000))}})})
				e.after = snapshot(t, mem, 0).Version - 1
			}
			_, err := dml.Execute(t.Context(), e, upsert("me", 50, 77), dml.Options{})
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "keys that were inserted")
			require.Len(t, contents(t, mem, 0), 6)
		})
	}
}

// Commit lets somebody else do something first.
func (r *reshaped) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	r.before()
	return r.Engine.Commit(ctx, p)
}
