package lance_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// copied20 is a schema with all that copying pages of format 2.0 has to put together.
var copied20 = func() *arrow.Schema {
	i32, str := arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String
	item := arrow.StructOf(
		arrow.Field{Name: "n", Type: i32, Nullable: true},
		arrow.Field{Name: "s", Type: str, Nullable: true},
		arrow.Field{Name: "l", Type: arrow.LargeListOf(arrow.PrimitiveTypes.Int8), Nullable: true},
		arrow.Field{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true})
	return arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: i32},
		{Name: "name", Type: str, Nullable: true},
		{Name: "v", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), Nullable: true},
		{Name: "items", Type: arrow.ListOf(item), Nullable: true},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "tags", Type: arrow.ListOf(str), Nullable: true}, arrow.Field{Name: "x", Type: i32, Nullable: true})},
		{Name: "d", Type: &arrow.DictionaryType{IndexType: i32, ValueType: str}, Nullable: true},
		{Name: "narrow", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: str}, Nullable: true},
		{Name: "raw", Type: arrow.BinaryTypes.LargeBinary, Nullable: true, Metadata: arrow.MetadataFrom(map[string]string{"lance-encoding:blob": "true"})},
		{Name: "none", Type: arrow.Null, Nullable: true},
	}, nil)
}()

// row20 makes a row of copied20 of some numbers.
func row20(id int, pick func(n int) int) string {
	or := func(s string) string {
		if pick(4) == 0 {
			return "null"
		}
		return s
	}
	list := func(most int, item func() string) string {
		out := make([]string, pick(most+1))
		for i := range out {
			out[i] = item()
		}
		return "[" + strings.Join(out, ",") + "]"
	}
	word := func() string { return or(fmt.Sprintf("%q", strings.Repeat("w", pick(5))+fmt.Sprint(pick(9)))) }
	item := func() string {
		return fmt.Sprintf(`{"n": %s, "s": %s, "l": %s, "b": %s}`, or(fmt.Sprint(pick(1000))), word(),
			or(list(3, func() string { return or(fmt.Sprint(pick(9))) })), or("true"))
	}
	return fmt.Sprintf(`{"id": %d, "name": %s, "v": %s, "items": %s, "s": {"tags": %s, "x": %d}, "d": %s, "narrow": %s, "raw": %s, "none": null}`,
		id, word(), or("[1.5, null]"), or(list(3, item)), or(list(2, word)), pick(9), or(`"dd"`), or(`"nn"`), or(`"YWJj"`))
}

func append20(t require.TestingT, e *lance.Engine, rows []string) {
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, copied20, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	require.NoError(t, err)
	defer rec.Release()
	_, err = e.Append(context.Background(), func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rec}, nil) }, table.WriteOptions{})
	require.NoError(t, err)
}

// remove deletes rows of the only fragment.
func remove(t require.TestingT, e *lance.Engine, base *table.Snapshot, dead ...uint32) *table.Snapshot {
	ctx := context.Background()
	require.Len(t, base.Fragments, 1)
	f := base.Fragments[0]
	ref, err := e.WriteDeletions(ctx, f.ID, base.Version, deletion.Of(dead...))
	require.NoError(t, err)
	f.Deletion = &ref
	after, err := e.Commit(ctx, table.Proposal{
		Base: base, Transaction: table.Transaction{ID: "delete", ReadVersion: base.Version, Operation: table.Delete{Updated: []table.Fragment{f}}},
		Change: table.Change{SetDeletion: map[table.FragmentID]*table.DeletionRef{f.ID: &ref}},
	})
	require.NoError(t, err)
	return after
}

// all20 reads all rows.
func all20(t require.TestingT, e *lance.Engine, s *table.Snapshot) (out []string) {
	for batch, err := range e.Rows(context.Background(), s, fragmentIDs(s), table.ReadOptions{}) {
		require.NoError(t, err)
		for i := range int(batch.Record.NumRows()) {
			out = append(out, rowText(batch.Record, i))
		}
	}
	return out
}

// Random rows, deletions and cuts: what copying makes is what encoding makes, also of
// lists, whose pages have to end together in all columns.
func TestFormat20CopyingIsLikeEncoding(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := store.NewMem()
		e, err := lance.CreateStore(t.Context(), s, copied20, lance.CreateOptions{DataFormat: "2.0"}, lance.Options{})
		require.NoError(t, err)
		defer e.Close()
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "pick") }
		next := 0
		for range rapid.IntRange(1, 5).Draw(t, "fragments") {
			var rows []string
			for range rapid.IntRange(1, 12).Draw(t, "rows") {
				rows = append(rows, row20(next, pick))
				next++
			}
			append20(t, e, rows)
		}
		base, err := e.Load(t.Context(), 0)
		require.NoError(t, err)
		want := all20(t, e, base)
		base = rewriteAll(t, e, base, table.WriteOptions{}, table.CopyAlways) // one file of many pages
		require.Equal(t, want, all20(t, e, base))
		var dead []uint32
		for id := range next - 1 {
			if rapid.IntRange(0, 9).Draw(t, "dead") == 0 {
				dead = append(dead, uint32(id))
			}
		}
		if len(dead) > 0 {
			base = remove(t, e, base, dead...)
		}
		want = all20(t, e, base)
		opts := table.WriteOptions{MaxRows: rapid.Uint64Range(1, uint64(next)).Draw(t, "rows a file")}
		for _, pages := range []table.PageCopy{table.CopyAlways, table.CopyAuto, table.CopyAlways} {
			base = rewriteAll(t, e, base, opts, pages)
			require.Equal(t, want, all20(t, e, base))
			for _, f := range base.Fragments {
				requirePagesInStep(t, s, f.Files[0].Path)
			}
		}
	})
}

// requirePagesInStep checks that no page of what is inside a list has items of two
// pages of lists, and that structs inside are as many as there are: stock engines go by
// that.
func requirePagesInStep(t require.TestingT, s store.Store, path string) {
	data, err := store.ReadAll(context.Background(), s, path, 1<<30)
	require.NoError(t, err)
	f, err := datafile.Open(context.Background(), readat.Bytes(data), int64(len(data)), path)
	require.NoError(t, err)
	whole := map[*schema.Field]bool{} // without columns inside
	for _, leaf := range f.Schema().Leaves() {
		whole[leaf.Field] = true
	}
	column := 0
	var walk func(field *schema.Field, ends map[uint64]bool, n uint64)
	walk = func(field *schema.Field, ends map[uint64]bool, n uint64) {
		c, err := f.Column(column)
		require.NoError(t, err)
		column++
		starts, rows := map[uint64]bool{}, uint64(0)
		items, itemEnds := uint64(0), map[uint64]bool{}
		for _, p := range c.Pages() {
			starts[p.FirstRow] = true
			rows += p.Rows
			items += p.Array.GetList().GetNumItems()
			itemEnds[items] = true
		}
		require.Equal(t, n, rows, field.Name)
		if field.LogicalType != "struct" {
			for end := range ends {
				require.True(t, starts[end] || end == n, "column %d (%s) has no page that begins at %d", column-1, field.Name, end)
			}
		}
		if strings.HasPrefix(strings.TrimPrefix(field.LogicalType, "large_"), "list") {
			ends, n = itemEnds, items
		}
		for _, child := range field.Children {
			if !whole[field] {
				walk(child, ends, n)
			}
		}
	}
	for _, field := range f.Schema().Fields {
		walk(field, nil, f.Rows())
	}
	require.Equal(t, f.NumColumns(), column)
}

// storedPages are the pages of each column of the table's files, as bytes, with what
// describes them.
func storedPages(t *testing.T, s store.Store, v *table.Snapshot) [][]string {
	var out [][]string
	for _, f := range v.Fragments {
		require.Len(t, f.Files, 1)
		raw, err := store.ReadAll(t.Context(), s, f.Files[0].Path, 1<<30)
		require.NoError(t, err)
		file := dataFile(t, s, f.Files[0].Path)
		for i := range file.NumColumns() {
			c, err := file.Column(i)
			require.NoError(t, err)
			if i == len(out) {
				out = append(out, nil)
			}
			for _, p := range c.Pages() {
				var b bytes.Buffer
				description, err := proto.Marshal(p.Array)
				require.NoError(t, err)
				fmt.Fprintf(&b, "%d %x", p.Rows, description)
				for _, part := range p.Buffers {
					fmt.Fprintf(&b, " %x", raw[part.Offset:part.Offset+part.Size])
				}
				out[i] = append(out[i], b.String())
			}
		}
	}
	return out
}

// Pages are copied byte for byte, in every column but those that cannot be copied, and
// only where no row is dropped.
func TestFormat20PagesAreCopied(t *testing.T) {
	s := store.NewMem()
	e, err := lance.CreateStore(t.Context(), s, copied20, lance.CreateOptions{DataFormat: "2.0"}, lance.Options{})
	require.NoError(t, err)
	defer e.Close()
	const fragments, rows = 5, 150
	for k := range fragments {
		var lines []string
		for i := range rows {
			id := k*rows + i
			lines = append(lines, row20(id, func(n int) int { return (id*7919 + id/3) % n }))
		}
		append20(t, e, lines)
	}
	base := load(t, e, 0)
	sources := storedPages(t, s, base)
	copied := rewriteAll(t, e, base, table.WriteOptions{}, table.CopyAlways)
	pages := storedPages(t, s, copied)
	again := map[string]bool{"s": true, "narrow": true, "raw": true, "none": true, "items.item": true} // encoded anew
	file := dataFile(t, s, copied.Fragments[0].Files[0].Path)
	paths := columnPaths(copied.Schema.Fields, "")
	require.Len(t, paths, file.NumColumns())
	for i, path := range paths {
		if again[path] {
			require.Len(t, pages[i], 1, path)
		} else {
			require.Equal(t, sources[i], pages[i], path)
		}
	}
	require.Equal(t, all20(t, e, base), all20(t, e, copied))

	// Of a page of which a row is dropped, everything that belongs to it is encoded
	// anew; its neighbours are not.
	base = remove(t, e, copied, rows+10, 3*rows)
	want := all20(t, e, base)
	copied = rewriteAll(t, e, base, table.WriteOptions{}, table.CopyAlways)
	require.Equal(t, want, all20(t, e, copied))
	for i, path := range paths {
		if again[path] {
			continue
		}
		now := storedPages(t, s, copied)[i]
		require.Len(t, now, fragments, path)
		for k := range now {
			if k != 1 && k != 3 {
				require.Equal(t, sources[i][k], now[k], path)
			} else if !strings.Contains(path, "item") || path == "items" {
				require.NotEqual(t, sources[i][k], now[k], path) // the items may be the same
			}
		}
	}

	// Nothing is copied of small pages unless that is asked for.
	for i, column := range storedPages(t, s, rewriteAll(t, e, copied, table.WriteOptions{}, table.CopyAuto)) {
		require.Len(t, column, 1, paths[i])
	}
}

// columnPaths names the columns of a file of format 2.0.
func columnPaths(fields []table.Field, in string) (out []string) {
	for _, f := range fields {
		out = append(out, in+f.Name)
		out = append(out, columnPaths(f.Children, in+f.Name+".")...)
	}
	return out
}

// Pages that stock engines wrote are copied, but not those that only old versions wrote,
// those of narrow dictionaries, whose values have to be counted, and those of blobs,
// which lie elsewhere in the file.
func TestFormat20PagesOfStockEnginesAreCopied(t *testing.T) {
	for name, c := range map[string]struct {
		version uint64 // the last one before rows were deleted
		again   string // columns that are not just the pages of the sources
	}{
		// A narrow dictionary, nulls, also in lists, structs, and no page of no items.
		"types_2_0_p14":       {3, "4 11 16 20 22 26 36 38 39"},
		"types_2_0_fsst_p14":  {2, ""},
		"types_2_0_blobs_p14": {3, "1 2 3"},
		"storage_2_0":         {2, ""},
		// Lists of structs, of which some fragments have fewer fields.
		"nested_field_added_2_0_p14":        {4, "1 5 6 7 8 9 10 11 12 13 14"},
		"types_2_0_bitpacked_p0_15":         {3, "1 2 3 4 10 11 12 13 14"},
		"pages_2_0_bitpacked_p0_16":         {2, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"},
		"pages_2_0_fixed_size_binary_p0_17": {2, "0 1 2 3 4 5 6 7"},
	} {
		t.Run(name, func(t *testing.T) {
			s := inMemory(t, name)
			e := openStore(t, s)
			base := load(t, e, c.version)
			require.Greater(t, len(base.Fragments), 1)
			sources := storedPages(t, s, base)
			out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: base, Sources: fragmentIDs(base), Copy: table.CopyAlways})
			require.NoError(t, err)
			require.Len(t, out.Fragments, 1)
			requirePagesInStep(t, s, out.Fragments[0].Files[0].Path)
			var again []string
			for i, column := range storedPages(t, s, &table.Snapshot{Fragments: []table.Fragment{{Files: out.Fragments[0].Files}}}) {
				if !slices.Equal(column, sources[i]) {
					again = append(again, fmt.Sprint(i))
				}
			}
			require.Equal(t, c.again, strings.Join(again, " "))
		})
	}
}

// Where a fragment lacks a field of the structs in a list, their other fields are not
// copied either: the field's rows, which are made up, would not end with their pages.
func TestFormat20ListsThatLackFieldsAreNotCopied(t *testing.T) {
	listOf := func(fields ...arrow.Field) *arrow.Schema {
		return arrow.NewSchema([]arrow.Field{{Name: "t", Type: arrow.ListOf(arrow.StructOf(fields...)), Nullable: true}}, nil)
	}
	x := arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8, Nullable: true}
	y := arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true}
	m := store.NewMem()
	e, err := lance.CreateStore(t.Context(), m, listOf(x), lance.CreateOptions{DataFormat: "2.0"}, lance.Options{})
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, appendJSON(t, e, listOf(x), []string{`{"t": [{"x": 1}, {"x": 2}]}`, `{"t": []}`, `{"t": [{"x": 3}]}`}))
	}
	require.NoError(t, e.Close())
	tamper(t, m, func(c *manifest.Contents) {
		all := c.Manifest.Fields
		added := proto.CloneOf(all[len(all)-1])
		added.Name, added.LogicalType, added.Id = "y", "string", added.Id+1
		c.Manifest.Fields = append(all, added)
	})
	e = openStore(t, m)
	// The largest column, and so the first to be written.
	require.NoError(t, appendJSON(t, e, listOf(x, y), []string{fmt.Sprintf(`{"t": [{"x": 4, "y": %q}]}`, strings.Repeat("long", 100)), `{"t": null}`}))
	base := load(t, e, 0)
	require.Len(t, base.Fragments, 3)
	want := text(t, e, base)
	out, err := e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: base, Sources: fragmentIDs(base), Threads: 1, Copy: table.CopyAlways})
	require.NoError(t, err)
	after := replace(t, e, base, out)
	require.Equal(t, want, text(t, e, after))
	requirePagesInStep(t, m, after.Fragments[0].Files[0].Path)
}
