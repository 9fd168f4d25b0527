package lance_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/internal/verify"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// invalid is a copy of a table that pylance 14 wrote with values that it cannot read.
func invalid(t *testing.T, name string) (*lance.Engine, *store.Mem) {
	t.Helper()
	m := store.NewMem()
	dir := filepath.Join("..", "testdata", "invalid", name+".lance")
	require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, p)
		require.NoError(t, err)
		return m.PutIfAbsent(context.Background(), filepath.ToSlash(rel), data)
	}))
	return openStore(t, m), m
}

func deleteIDs(t *testing.T, e *lance.Engine, ids ...int64) *table.Snapshot {
	t.Helper()
	where := dml.RowFunc([]string{"id"}, func(rec arrow.RecordBatch, i int) bool {
		return slices.Contains(ids, rec.Column(0).(*array.Int64).Value(i))
	})
	r, err := dml.Execute(t.Context(), e, dml.Delete{Where: where}, dml.Options{})
	require.NoError(t, err)
	require.Equal(t, uint64(len(ids)), r.Deleted)
	return r.Snapshot
}

// A rewrite does not put text that is not UTF-8 into a file with the rows of other
// fragments, whether pages are copied or not, and says where it is. What is deleted is
// not carried, and does not count; nor does a fragment that becomes a file of its own.
func TestReport02ARewriteDoesNotSpreadInvalidText(t *testing.T) {
	for _, name := range []string{"text_2_0", "text_2_1", "text_2_2"} {
		for _, pages := range []table.PageCopy{table.CopyAlways, table.CopyNever, table.CopyAuto} {
			t.Run(fmt.Sprint(name, " ", int(pages)), func(t *testing.T) {
				e, m := invalid(t, name)
				s := load(t, e, 0)
				before := m.Names()
				rewrite := func(s *table.Snapshot, ids ...table.FragmentID) (table.Written, error) {
					return e.RewriteGroup(t.Context(), table.RewriteRequest{Snapshot: s, Sources: ids, Threads: 2, Copy: pages})
				}
				out, err := rewrite(s, 0, 1)
				require.ErrorIs(t, err, table.ErrCorrupt)
				require.Regexp(t, `fragment 1: row (1: column "s": "caf\\xe9"|3: column "l.item": "\\xff") is not UTF-8`, err.Error())
				for _, o := range out.Objects {
					require.NoError(t, e.Delete(t.Context(), o))
				}
				require.Equal(t, before, m.Names())

				if pages == table.CopyAlways {
					out, err = rewrite(s, 1)
					require.NoError(t, err, "by itself it makes nobody worse off")
					for _, o := range out.Objects {
						require.NoError(t, e.Delete(t.Context(), o))
					}
				}
				s = deleteIDs(t, e, 5, 7)
				out, err = rewrite(s, 0, 1)
				require.NoError(t, err)
				s = replace(t, e, s, out)
				r, err := verify.Table(t.Context(), e, verify.Options{Version: s.Version, Deep: true})
				require.NoError(t, err)
				require.Empty(t, r.Problems)
				require.Equal(t, uint64(6), r.Checked[verify.RowsRead])
			})
		}
	}
}

// A deep check finds what stock engines cannot read, and where.
func TestReport02VerifyFindsInvalidValues(t *testing.T) {
	for name, want := range map[string][]string{
		"text_2_0": {"fragment 1 row 1 column s", "fragment 1 row 3 column l.item"},
		"text_2_1": {"fragment 1 row 1 column s", "fragment 1 row 3 column l.item"},
		"text_2_2": {"fragment 1 row 1 column s", "fragment 1 row 3 column l.item"},
		"values":   {"fragment 0 row 1 column dec", "fragment 0 row 1 column day", "fragment 0 row 1 column clock", "fragment 0 row 1 column at"},
	} {
		e, _ := invalid(t, name)
		r, err := verify.Table(t.Context(), e, verify.Options{})
		require.NoError(t, err)
		require.True(t, r.OK, "it takes reading the rows")
		r, err = verify.Table(t.Context(), e, verify.Options{Deep: true})
		require.NoError(t, err)
		var got []string
		for _, p := range r.Problems {
			require.Equal(t, "data", p.Kind)
			got = append(got, p.Where)
		}
		require.Equal(t, want, got, name)
	}
}

// Rows that other engines could not read are not written, and a source of rows that
// panics leaves no file.
func TestReport02And08RowsThatAreNotWritten(t *testing.T) {
	m := store.NewMem()
	schema := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	e, err := lance.CreateStore(t.Context(), m, schema, lance.CreateOptions{}, lance.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	before := m.Names()
	batch := func(values ...string) table.Batch {
		b := array.NewStringBuilder(memory.DefaultAllocator)
		b.AppendValues(values, nil)
		return table.Batch{Record: array.NewRecordBatch(schema, []arrow.Array{b.NewArray()}, int64(len(values)))}
	}
	for says, last := range map[string]func(yield func(table.Batch, error) bool){
		`column "s" row 1: "caf\xe9" is not UTF-8`: func(yield func(table.Batch, error) bool) { yield(batch("a", "caf\xe9"), nil) },
		"a library gave up":                        func(func(table.Batch, error) bool) { panic("a library gave up") },
	} {
		rows := func(yield func(table.Batch, error) bool) {
			if yield(batch("good"), nil) {
				last(yield)
			}
		}
		out, err := e.WriteFragments(t.Context(), load(t, e, 0).Schema, rows, table.WriteOptions{MaxRows: 1})
		require.ErrorContains(t, err, says)
		require.NotErrorIs(t, err, table.ErrCorrupt)
		for _, o := range out.Objects {
			require.NoError(t, e.Delete(t.Context(), o))
		}
		require.Equal(t, before, m.Names(), "everything that was written was named")
	}
}
