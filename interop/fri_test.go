package interop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// friReport is what `rehome fri --json` prints, as far as it matters here.
type friReport struct {
	Transitions []struct {
		NeededBy []string `json:"needed_by"`
		Bytes    uint64   `json:"bytes"`
	} `json:"transitions"`
}

func rehomeFRI(ctx context.Context, t *testing.T, path string) (r friReport) {
	t.Helper()
	code, stdout, stderr, err := run(ctx, "fri", path, "--json")
	require.NoError(t, err)
	require.Equal(t, exitDone, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	return r
}

// throughAgain builds a table, compacts it through a fragment reuse index, and lets
// the writer go on: the table has a transition whose destination lost rows, and
// fragments that no index covers.
func throughAgain(ctx context.Context, t *testing.T, writer *interop.Engine) (scenario, string, *model) {
	t.Helper()
	s := scenario{
		writer: writer, uniform: true,
		kinds: kinds(interop.BTree, interop.FTS, interop.Bitmap, interop.IVFPQ, interop.LabelList),
	}
	path, m := s.template(ctx, t)
	require.True(t, compactTable(ctx, t, path, "--index-policy", "through").FRI.Published)
	for _, from := range []int64{2000, 2100} {
		rows := newRows(from, from+100)
		m.put(rows...)
		rec := record(m.schema, rows)
		defer rec.Release()
		_, err := writer.Append(ctx, path, rec)
		require.NoError(t, err)
	}
	m.delete(func(r row) bool { return r.id%6 == 1 })
	_, err := writer.Delete(ctx, path, "id % 6 = 1")
	require.NoError(t, err)
	forget(ctx, path)
	return s, path, m
}

// TestStackedTransitions compacts a second time so that the new transition starts
// where the first ended. Indexes built before either must answer through both.
func TestStackedTransitions(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		t.Run(writer.Name, func(t *testing.T) {
			t.Parallel()
			s, path, m := throughAgain(ctx, t, writer)
			s.through = true
			second := s.withRehome("--index-policy", "through")
			s.judge(ctx, t, path, m, func(ctx context.Context, stage string, by *interop.Engine, path string, m *model) []finding {
				found := second(ctx, stage, by, path, m)
				if stage != firstCompaction {
					return found
				}
				// Two commits, each at least a transition.
				if r := rehomeFRI(ctx, t, path); len(r.Transitions) < 2 {
					found = append(found, finding{stage, "rehome", "verify", fmt.Sprintf("%d transitions after two compactions", len(r.Transitions))})
				}
				return found
			})
		})
	}
}

// TestLeaveOverTransition compacts the destination of a transition without
// recording where its rows went: indexes that read through the transition then
// find a fragment that is gone, and the rows are scanned.
func TestLeaveOverTransition(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		t.Run(writer.Name, func(t *testing.T) {
			t.Parallel()
			s, path, m := throughAgain(ctx, t, writer)
			s.judge(ctx, t, path, m, s.withRehome("--index-policy", "leave"))
		})
	}
}

// addressTable is a table of many fragments and two columns whose compaction moves
// so many rows that the fragment reuse index does not fit into the manifest.
type addressTable struct {
	fragments, rows int64
	schema          *arrow.Schema
	gone            func(id int64) bool // deleted since; nil for none
}

func newAddressTable(fragments, rows int64) addressTable {
	return addressTable{fragments, rows, arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "cat", Type: arrow.BinaryTypes.String, Nullable: true},
	}, nil), nil}
}

func (a addressTable) cat(id int64) string { return fmt.Sprintf("c%d", id*7919%211) }

// live says which rows survive: every third is deleted, so that no run of
// survivors is longer than two.
func (a addressTable) live(id int64) bool { return id%3 != 0 && (a.gone == nil || !a.gone(id)) }

// address is a row's address before the compaction.
func (a addressTable) address(id int64) uint64 { return uint64(id/a.rows)<<32 | uint64(id%a.rows) }

func (a addressTable) record(fragment int64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, a.schema)
	defer b.Release()
	for i := range a.rows {
		id := fragment*a.rows + i
		b.Field(0).(*array.Int64Builder).Append(id)
		b.Field(1).(*array.StringBuilder).Append(a.cat(id))
	}
	return b.NewRecordBatch()
}

func (a addressTable) build(ctx context.Context, t *testing.T, writer *interop.Engine, path string) {
	t.Helper()
	for k := range a.fragments {
		rec := a.record(k)
		var err error
		if k == 0 {
			_, err = writer.Create(ctx, path, rec, interop.CreateOptions{})
		} else {
			_, err = writer.Append(ctx, path, rec)
		}
		rec.Release()
		require.NoError(t, err)
	}
	_, err := writer.CreateIndex(ctx, path, "cat", interop.Bitmap)
	require.NoError(t, err)
	_, err = writer.Delete(ctx, path, "id % 3 = 0")
	require.NoError(t, err)
}

// TestInlineAndExternal publishes a fragment reuse index inside the manifest and
// one beside it, and has the engines query an index through them and translate
// addresses.
func TestInlineAndExternal(t *testing.T) {
	ctx := needEngines(t)
	for _, c := range []struct {
		name     string
		table    addressTable
		external bool
	}{
		{"inline", newAddressTable(10, 500), false},
		{"external", newAddressTable(42, 4096), true},
	} {
		for _, writer := range engines {
			t.Run(c.name+"/"+writer.Name, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "t.lance")
				defer forget(ctx, path)
				c.table.build(ctx, t, writer, path)
				done := compactTable(ctx, t, path)
				require.True(t, done.FRI.Published)

				files, err := filepath.Glob(filepath.Join(path, "_indices", "*", "details.binpb"))
				require.NoError(t, err)
				require.Equal(t, c.external, len(files) == 1, "external files: %v", files)
				for _, e := range engines {
					askThroughFRI(ctx, t, e, path, c.table)
				}
				translate(ctx, t, path, c.table)
			})
		}
	}
}

// askThroughFRI queries the bitmap index and fetches what it finds.
func askThroughFRI(ctx context.Context, t *testing.T, e *interop.Engine, path string, a addressTable) {
	t.Helper()
	for _, cat := range []string{"c5", "c100", "c210"} {
		got, err := e.Query(ctx, path, interop.Query{Where: fmt.Sprintf("cat = '%s'", cat)})
		require.NoError(t, err, e.Name)
		require.True(t, planUsesIndex(got.Plan), "%s does not use the index:\n%s", e.Name, got.Plan)
		rows, err := rowsOf(got.Batches, []string{"id", "cat"})
		got.Release()
		require.NoError(t, err)
		var ids, want []int64
		for _, r := range rows {
			require.Equal(t, fmt.Sprintf(`{"id":"%d","cat":"%s"}`, r.id, cat), r.json, e.Name)
			ids = append(ids, r.id)
		}
		for id := range a.fragments * a.rows {
			if a.live(id) && a.cat(id) == cat {
				want = append(want, id)
			}
		}
		slices.Sort(ids)
		require.Equal(t, want, ids, "%s: cat = %s", e.Name, cat)
	}
}

// translate compares three answers to where old addresses went: what pylance says
// from the fragment reuse index, what rehome says, and where the rows are.
func translate(ctx context.Context, t *testing.T, path string, a addressTable) {
	t.Helper()
	now, err := addresses(ctx, path)
	require.NoError(t, err)
	var old []uint64
	args := []string{"translate", path, "--json"}
	var ids []int64
	for id := int64(0); id < a.fragments*a.rows; id += a.fragments*a.rows/97 - 1 {
		ids, old = append(ids, id), append(old, a.address(id))
		args = append(args, fmt.Sprint(a.address(id)))
	}
	stock, ok, err := pylance.RemapAddrs(ctx, path, old)
	require.NoError(t, err)
	require.True(t, ok)
	code, stdout, stderr, err := run(ctx, args...)
	require.NoError(t, err)
	require.Equal(t, exitDone, code, stderr)
	var doc struct {
		Addresses []struct {
			State string
			To    json.RawMessage
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	ours := doc.Addresses
	require.Len(t, ours, len(ids))
	for i, id := range ids {
		addr, live := now[id]
		require.Equal(t, a.live(id), live, "row %d", id)
		if !live {
			require.Nil(t, stock[i], "row %d", id)
			require.Equal(t, "deleted", ours[i].State, "row %d", id)
			continue
		}
		require.Equal(t, addr, *stock[i], "row %d: what pylance translates", id)
		require.Equal(t, "moved", ours[i].State, "row %d", id)
		to := strings.Trim(string(ours[i].To), `"`)
		require.Contains(t, []string{fmt.Sprint(addr), fmt.Sprintf("%d:%d", addr>>32, uint32(addr))}, to, "row %d: what rehome translates", id)
	}
}
