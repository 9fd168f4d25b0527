package dml_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// golden is a golden table that is being changed, beside a model of it: its rows as
// JSON, by id.
type golden struct {
	*lance.Engine
	rows map[int64]map[string]any
	// names are the stable row ids of the rows, by id; nil if the table has none.
	names map[int64]table.RowID
}

func openGolden(t *testing.T, g testtable.Golden, opts lance.Options) *golden {
	m := store.NewMem()
	dir := os.DirFS(g.Dir)
	require.NoError(t, fs.WalkDir(dir, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(dir, p)
		require.NoError(t, err)
		return m.PutIfAbsent(t.Context(), p, data)
	}))
	e, err := lance.OpenStore(t.Context(), m, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	out := &golden{Engine: e}
	out.rows, out.names = out.scan(t)
	return out
}

// scan reads the latest version.
func (g *golden) scan(t *testing.T) (rows map[int64]map[string]any, names map[int64]table.RowID) {
	s := snapshot(t, g, 0)
	rows = map[int64]map[string]any{}
	var addrs []table.RowAddr
	var order []int64
	for b, err := range g.Rows(t.Context(), s, allFragments(s), table.ReadOptions{WithAddrs: true}) {
		require.NoError(t, err)
		enc, err := rowjson.New(b.Record.Schema(), rowjson.Raw)
		require.NoError(t, err)
		ids := idsOf(b.Record)
		for i := range int(b.Record.NumRows()) {
			text, err := enc.AppendRow(nil, b.Record, i, nil)
			require.NoError(t, err)
			d := json.NewDecoder(strings.NewReader(string(text)))
			d.UseNumber()
			var row map[string]any
			require.NoError(t, d.Decode(&row))
			require.NotContains(t, rows, ids(i))
			rows[ids(i)] = row
			order = append(order, ids(i))
		}
		addrs = append(addrs, b.Addrs...)
	}
	if s.StableRowIDs {
		names = map[int64]table.RowID{}
		got, err := g.RowIdentities(t.Context(), s, addrs)
		require.NoError(t, err)
		for i, n := range got {
			names[order[i]] = n.ID
		}
	}
	return rows, names
}

func allFragments(s *table.Snapshot) (ids []table.FragmentID) {
	for _, f := range s.Fragments {
		ids = append(ids, f.ID)
	}
	return ids
}

// idsOf reads the id column, of whole numbers.
func idsOf(rec arrow.RecordBatch) func(i int) int64 {
	c := rec.Column(rec.Schema().FieldIndices("id")[0])
	return func(i int) int64 {
		v, err := strconv.ParseInt(c.ValueStr(i), 10, 64)
		if err != nil {
			panic(err) // a test table without such ids
		}
		return v
	}
}

// check compares the table with the model. With stable row ids, rows that have one
// in the model have the same in the table, and the others a new one.
func (g *golden) check(t *testing.T) {
	t.Helper()
	rows, names := g.scan(t)
	require.Len(t, rows, len(g.rows))
	for id, row := range g.rows {
		require.Equal(t, row, rows[id], "row %d", id)
	}
	seen := map[table.RowID]bool{}
	for id, name := range names {
		require.False(t, seen[name], "two rows have the row id %d", name)
		seen[name] = true
		if was, ok := g.names[id]; ok {
			require.Equal(t, was, name, "row id of row %d", id)
		}
	}
	g.names = names
}

// some are the ids that leave a rest.
func (g *golden) some(of, rest int64) (ids []int64) {
	for id := range g.rows {
		if id%of == rest {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func idRest(of, rest int64) dml.Predicate {
	return dml.PredicateFunc([]string{"id"}, func(_ context.Context, rec arrow.RecordBatch) (*array.Boolean, error) {
		b, ids := array.NewBooleanBuilder(memory.DefaultAllocator), idsOf(rec)
		for i := range int(rec.NumRows()) {
			b.Append(ids(i)%of == rest)
		}
		return b.NewBooleanArray(), nil
	})
}

// idPlus is the id of a row and a number, as 64-bit integers.
func idPlus(n int64) dml.Expr {
	return dml.ExprFunc([]string{"id"}, func(_ context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
		return shifted(rec, n), nil
	})
}

func shifted(rec arrow.RecordBatch, n int64) arrow.Array {
	b, ids := array.NewInt64Builder(memory.DefaultAllocator), idsOf(rec)
	for i := range int(rec.NumRows()) {
		b.Append(ids(i) + n)
	}
	return b.NewArray()
}

// idJSON is an id as the model has it.
func (g *golden) idJSON(like any, id int64) any {
	if _, ok := like.(json.Number); ok {
		return json.Number(strconv.FormatInt(id, 10))
	}
	return strconv.FormatInt(id, 10)
}

// copies are the table's rows with one rest, with the ids moved by shift and, if
// columns are given, these columns only.
func (g *golden) copies(t *testing.T, of, rest, shift int64, columns ...string) iter.Seq2[arrow.RecordBatch, error] {
	s := snapshot(t, g, 0)
	field, ok := s.Schema.Field("id")
	require.True(t, ok)
	var out []arrow.RecordBatch
	for b, err := range g.Rows(t.Context(), s, allFragments(s), table.ReadOptions{Columns: columns, BatchRows: 97}) {
		require.NoError(t, err)
		var keep []int
		ids := idsOf(b.Record)
		for i := range int(b.Record.NumRows()) {
			if ids(i)%of == rest {
				keep = append(keep, i)
			}
		}
		rec, err := gather.Record(memory.DefaultAllocator, b.Record, gather.Runs(keep))
		require.NoError(t, err)
		cols := slices.Clone(rec.Columns())
		at := rec.Schema().FieldIndices("id")[0]
		if field.Type.ID() == arrow.INT64 {
			cols[at] = shifted(rec, shift)
		} else {
			cols[at] = narrowed(shifted(rec, shift).(*array.Int64))
		}
		out = append(out, array.NewRecordBatch(rec.Schema(), cols, rec.NumRows()))
	}
	return dml.Records(out...)
}

func narrowed(v *array.Int64) arrow.Array {
	b := array.NewInt32Builder(memory.DefaultAllocator)
	for i := range v.Len() {
		b.Append(int32(v.Value(i)))
	}
	return b.NewArray()
}

// mustExecute makes a change in the table.
func (g *golden) mustExecute(t *testing.T, c change) dml.Result {
	t.Helper()
	out, err := dml.Execute(t.Context(), g, c, dml.Options{})
	require.NoError(t, err)
	require.NotNil(t, out.Snapshot)
	require.Equal(t, out.Version, out.Snapshot.Version)
	return out
}

// TestLanceTables changes golden tables of all sorts (several fragments, deletions,
// indexes, several files a fragment, stable row ids, all types) by every change, and
// reads them back; without a session and with one that another engine shares.
func TestLanceTables(t *testing.T) {
	tried, changed := 0, 0
	for _, g := range testtable.All(t) {
		if g.DataFormat.Version != "2.0" && g.DataFormat.Version != "2.1" && g.DataFormat.Version != "2.2" {
			continue // others cannot be written
		}
		if g.Versions[uint64(len(g.Versions))].RowCount > 5000 {
			continue // too slow for a model of Go values
		}
		if strings.HasSuffix(g.Name, "_v39") || !slices.ContainsFunc(g.Schema, func(c testtable.Column) bool {
			return c.Name == "id" && (c.Type == "Int64" || c.Type == "Int32")
		}) {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			tried++
			var opts lance.Options
			if tried%2 == 0 {
				session, err := lance.NewSession(lance.SessionOptions{})
				require.NoError(t, err)
				t.Cleanup(func() { session.Close() })
				opts.Session = session
			}
			tab := openGolden(t, g, opts)
			if changeGolden(t, tab) {
				changed++
			}
		})
	}
	require.Greater(t, changed, 30)
}

// changeGolden says whether the table can be written to.
func changeGolden(t *testing.T, tab *golden) bool {
	gone := tab.some(5, 0)
	out := tab.mustExecute(t, dml.Delete{Where: idRest(5, 0)})
	require.EqualValues(t, len(gone), out.Deleted)
	for _, id := range gone {
		delete(tab.rows, id)
	}
	tab.check(t)

	// A row whose id changes keeps its row id.
	moved := tab.some(7, 1)
	update := dml.Update{Where: idRest(7, 1), Set: map[string]dml.Expr{"id": idPlus(1_000_000)}, Write: table.WriteOptions{MaxRows: 150}}
	if _, err := dml.Execute(t.Context(), tab, update, dml.Options{}); errors.Is(err, table.ErrUnsupported) {
		tab.check(t)
		return false
	} else {
		require.NoError(t, err)
	}
	for _, id := range moved {
		row := tab.rows[id]
		row["id"] = tab.idJSON(row["id"], id+1_000_000)
		tab.rows[id+1_000_000] = row
		delete(tab.rows, id)
		if tab.names != nil {
			tab.names[id+1_000_000] = tab.names[id]
			delete(tab.names, id)
		}
	}
	tab.check(t)

	// Some rows get what others hold, and some are new.
	want := dml.Stats{}
	for _, id := range tab.some(6, 2) {
		if _, ok := tab.rows[id+1]; ok {
			want.Updated++
		} else {
			want.Inserted++
		}
		row := copyOf(tab.rows[id])
		row["id"] = tab.idJSON(row["id"], id+1)
		tab.rows[id+1] = row
	}
	want.Matched = want.Updated
	source := tab.copies(t, 6, 2, 1)
	out = tab.mustExecute(t, dml.MergeInsert{On: []string{"id"}, Source: source, WhenMatched: dml.MatchedUpdate, Write: table.WriteOptions{MaxRows: 150}})
	require.Equal(t, want, out.Stats)
	tab.check(t)

	// Compacted, changed in one column, and merged without some rows.
	_, err := compaction.Compact(t.Context(), tab, compaction.Options{})
	require.NoError(t, err)
	tab.check(t)
	s := snapshot(t, tab, 0)
	last := s.Schema.Fields[len(s.Schema.Fields)-1].Name
	for _, id := range tab.some(9, 4) {
		if row, ok := tab.rows[id-1]; ok && last != "id" {
			row[last] = tab.rows[id][last]
		}
	}
	for id := range tab.rows {
		if id%9 == 0 {
			delete(tab.rows, id)
		}
	}
	columns := []string{last, "id"}
	if last == "id" {
		columns = columns[1:]
	}
	tab.mustExecute(t, dml.MergeInsert{
		On: []string{"id"}, Source: tab.copies(t, 9, 4, -1, columns...), WhenMatched: dml.MatchedUpdate, WhenNotMatched: dml.NotMatchedSkip,
		WhenNotMatchedBySource: dml.BySourceDelete, DeleteIf: idRest(9, 0),
	})
	tab.check(t)

	out = tab.mustExecute(t, dml.Delete{Where: dml.All()})
	require.EqualValues(t, len(tab.rows), out.Deleted)
	require.Empty(t, out.Snapshot.Fragments)
	return true
}

func copyOf(row map[string]any) map[string]any {
	out := map[string]any{}
	for k, v := range row {
		out[k] = v
	}
	return out
}

// TestPrimaryKeyOfALanceTable: that keys are asserted unique does not reach the file,
// and others' inserts are seen all the same.
func TestPrimaryKeyOfALanceTable(t *testing.T) {
	field := arrow.Field{Name: "k", Type: arrow.PrimitiveTypes.Int64, Metadata: arrow.MetadataFrom(map[string]string{"lance-schema:unenforced-primary-key": "true"})}
	e, err := lance.Create(t.Context(), t.TempDir(), arrow.NewSchema([]arrow.Field{field, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil),
		lance.CreateOptions{}, lance.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	require.Equal(t, []string{"k"}, dml.PrimaryKey(snapshot(t, e, 0).Schema))
	one := func(by string) dml.MergeInsert {
		m := upsert(by, 1, 7)
		m.On = nil
		m.Source = in(10, []row{{K: ptr(int64(7)), S: ptr(by)}}, "k", "s")
		return m
	}
	late, _, err := dml.Compute(t.Context(), e, snapshot(t, e, 0), one("late"), dml.Options{})
	require.NoError(t, err)
	require.Equal(t, table.Update{UniqueKeys: []int32{0}}, late.Transaction.Operation)
	mustDo(t, e, one("first"))
	_, err = rebase.Commit(t.Context(), e, late, rebase.Options{})
	require.ErrorIs(t, err, table.ErrConflict)
	out := mustDo(t, e, one("third"))
	require.EqualValues(t, 1, out.Updated)
	txs, err := e.TransactionsSince(t.Context(), 1, 0)
	require.NoError(t, err)
	require.Empty(t, txs[0].Operation.(table.Update).UniqueKeys)
	got := ""
	for b, err := range e.Rows(t.Context(), out.Snapshot, allFragments(out.Snapshot), table.ReadOptions{}) {
		require.NoError(t, err)
		got += fmt.Sprint(b.Record.Column(1))
	}
	require.Equal(t, `["third"]`, got)
}
