package interop_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// busy is a table of many rows, a stock client that changes them all the time, and
// what the table must hold: the column s by id, and a vector that follows from the
// id.
type busy struct {
	writer *interop.Engine
	path   string
	rows   map[int64]string
	next   int64
}

const busyDim = 64

var busySchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "vec", Type: arrow.FixedSizeListOf(busyDim, arrow.PrimitiveTypes.Float32), Nullable: true},
}, nil)

// busyValue is element i of the vector of a row.
func busyValue(id int64, i int) float32 {
	return float32((id*busyDim+int64(i))*2654435761%1000003) / 1000003
}

func busyRecord(ids []int64, s func(id int64) string) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, busySchema)
	defer b.Release()
	vec := b.Field(2).(*array.FixedSizeListBuilder)
	for _, id := range ids {
		b.Field(0).(*array.Int64Builder).Append(id)
		b.Field(1).(*array.StringBuilder).Append(s(id))
		vec.Append(true)
		for i := range busyDim {
			vec.ValueBuilder().(*array.Float32Builder).Append(busyValue(id, i))
		}
	}
	return b.NewRecordBatch()
}

// grow makes the table, or appends a fragment.
func (b *busy) grow(ctx context.Context, t *testing.T, rows int64) {
	t.Helper()
	ids := make([]int64, rows)
	for i := range ids {
		ids[i] = b.next
		b.rows[b.next] = fmt.Sprintf("row%d", b.next)
		b.next++
	}
	rec := busyRecord(ids, func(id int64) string { return b.rows[id] })
	defer rec.Release()
	var err error
	if ids[0] == 0 {
		_, err = b.writer.Create(ctx, b.path, rec, interop.CreateOptions{})
	} else {
		_, err = b.writer.Append(ctx, b.path, rec)
	}
	require.NoError(t, err)
}

// The ways of a busy client: it deletes only, or every other change is an update or
// an upsert, of a row that is there or of a new one.
const (
	modeDelete = "delete"
	modeUpdate = "update"
	modeUpsert = "upsert"
)

// change is change i of a round, applied to the model. Rows are hit in all
// fragments alike, and some twice.
func (b *busy) change(mode string, round, i int64) interop.Write {
	id := (round*7919 + i*293 + 7) % b.next
	value := fmt.Sprintf("changed %d %d", round, i)
	where := fmt.Sprintf("id = %d", id)
	switch {
	case mode == modeUpdate && i%2 == 1:
		if _, live := b.rows[id]; live {
			b.rows[id] = value
		}
		return interop.Write{Where: where, Set: map[string]string{"s": "'" + value + "'"}}
	case mode == modeUpsert && i%2 == 1:
		ids := []int64{id, 1_000_000 + round*1000 + i}
		for _, id := range ids {
			b.rows[id] = value
		}
		return interop.Write{On: "id", Rows: busyRecord(ids, func(int64) string { return value })}
	default:
		delete(b.rows, id)
		return interop.Write{Where: where}
	}
}

// check compares the table with the model in every engine and in rehome. Vectors
// are compared in the writer's.
func (b *busy) check(ctx context.Context, t *testing.T) {
	t.Helper()
	want := slices.Sorted(maps.Keys(b.rows))
	for _, e := range engines {
		q := interop.Query{Columns: []string{"id", "s"}}
		if e == b.writer {
			q.Columns = nil
		}
		a, err := e.Query(ctx, b.path, q)
		require.NoError(t, err)
		got := map[int64]bool{}
		for _, rec := range a.Batches {
			ids, ok := rec.Column(0).(*array.Int64)
			require.True(t, ok)
			s, ok := rec.Column(1).(*array.String)
			require.True(t, ok)
			for i, id := range ids.Int64Values() {
				if got[id] || s.Value(i) != b.rows[id] {
					require.Fail(t, "wrong row", "%s: row %d is %q, want %q; seen before: %t", e.Name, id, s.Value(i), b.rows[id], got[id])
				}
				got[id] = true
				if q.Columns == nil {
					vec := rec.Column(2).(*array.FixedSizeList)
					values := vec.ListValues().(*array.Float32).Float32Values()
					at := (i + vec.Offset()) * busyDim
					require.Equal(t, busyValue(id, 0), values[at], "%s: vector of row %d", e.Name, id)
					require.Equal(t, busyValue(id, busyDim-1), values[at+busyDim-1], "%s: vector of row %d", e.Name, id)
				}
			}
		}
		a.Release()
		require.Equal(t, want, slices.Sorted(maps.Keys(got)), "ids in %s", e.Name)
		n, err := e.Count(ctx, b.path, "")
		require.NoError(t, err)
		require.Equal(t, len(want), n, "rows counted by %s", e.Name)
	}
	require.NoError(t, rehomeVerify(ctx, b.path))
	n, err := rehomeCount(ctx, b.path)
	require.NoError(t, err)
	require.Equal(t, len(want), n, "rows scanned by rehome")
}

// checkRow looks for one row in the writer's engine.
func (b *busy) checkRow(ctx context.Context, t *testing.T, id int64) {
	t.Helper()
	where := fmt.Sprintf("id = %d", id)
	want := 0
	if value, live := b.rows[id]; live {
		want, where = 1, where+" AND s = '"+value+"'"
	}
	for _, q := range []string{where, fmt.Sprintf("id = %d", id)} {
		n, err := b.writer.Count(ctx, b.path, q)
		require.NoError(t, err)
		require.Equal(t, want, n, "%s: rows where %s", b.writer.Name, q)
	}
}

// TestNobodyLosesToABusyClient has a stock client change rows of a table of 30
// fragments, commit after commit, for as long as `rehome compact` runs, six times.
// Every compaction is committed, the rows are right in every engine, and rehome
// leaves no file behind that no version refers to.
//
// The stock client does: what it wrote for a commit that came after the compaction's
// and had to be made again stays where it is. It does so in any race, see
// [TestStockClientsLeaveLostAttemptsBehind]; whose a file is can be seen by its mode,
// as rehome runs with an umask of its own here.
func TestNobodyLosesToABusyClient(t *testing.T) {
	ctx := needEngines(t)
	const fragments, perFragment, rounds = 30, 4000, 6
	for _, writer := range engines {
		for _, mode := range []string{modeDelete, modeUpdate, modeUpsert} {
			t.Run(writer.Name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				b := &busy{writer: writer, path: filepath.Join(t.TempDir(), "t.lance"), rows: map[int64]string{}}
				defer forget(ctx, b.path)
				for range fragments {
					b.grow(ctx, t, perFragment)
				}
				var over, carried int
				for round := range int64(rounds) {
					c := b.during(ctx, t, mode, round)
					over, carried = over+len(c.RebasedOver), carried+c.RowsCarried
					b.grow(ctx, t, perFragment)
				}
				b.check(ctx, t)
				ours, theirs := b.orphans(ctx, t)
				require.Empty(t, ours)
				t.Logf("%d of %d compactions committed, over %d commits, %d rows carried; files that no version refers to: 0 of rehome's, %d of the client's, %d bytes",
					rounds, rounds, over, carried, len(theirs), bytesOf(theirs))
			})
		}
	}
}

// during compacts the table while the client changes it, at least a dozen times.
func (b *busy) during(ctx context.Context, t *testing.T, mode string, round int64) compactReport {
	t.Helper()
	const least, most, together = 12, 400, 4
	type ending struct {
		compactReport
		err error
	}
	done := make(chan ending, 1)
	go func() {
		c, err := rehomeCompactMarked(ctx, b.path)
		done <- ending{c, err}
	}()
	var end *ending
	for i := int64(0); i < least || end == nil && i < most; {
		var writes []interop.Write
		for range together {
			writes = append(writes, b.change(mode, round, i))
			i++
		}
		require.NoError(t, b.writer.Churn(ctx, b.path, writes))
		select {
		case e := <-done:
			end = &e
		default:
		}
	}
	if end == nil {
		e := <-done
		end = &e
	}
	require.NoError(t, end.err)
	require.True(t, end.Committed)
	return end.compactReport
}

// orphans are the files that no version refers to, rehome's and the client's.
func (b *busy) orphans(ctx context.Context, t *testing.T) (ours, theirs []orphan) {
	t.Helper()
	all, err := orphans(ctx, b.path)
	require.NoError(t, err)
	for _, o := range all {
		info, err := os.Stat(filepath.Join(b.path, o.path))
		require.NoError(t, err)
		if marked(info) {
			ours = append(ours, o)
		} else {
			theirs = append(theirs, o)
		}
	}
	// Or nothing is told by the mark.
	data, err := os.ReadDir(filepath.Join(b.path, "data"))
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(data, func(d os.DirEntry) bool {
		info, err := d.Info()
		return err == nil && marked(info)
	}), "rehome's files do not have their mark")
	return ours, theirs
}

// TestStockClientsLeaveLostAttemptsBehind shows with two clients of the same engine,
// and nothing of rehome, that a change which had to be made again because of another
// leaves what its first attempt wrote. It is why such files are not held against
// rehome where they are not its own.
func TestStockClientsLeaveLostAttemptsBehind(t *testing.T) {
	ctx := needEngines(t)
	for _, spec := range []interop.Spec{interop.LanceDB31, interop.LanceDB39, interop.PyLance14} {
		t.Run(spec.Name, func(t *testing.T) {
			first, err := interop.Start(ctx, spec)
			require.NoError(t, err)
			defer first.Close()
			second, err := interop.Start(ctx, spec)
			require.NoError(t, err)
			defer second.Close()
			b := &busy{writer: first, path: filepath.Join(t.TempDir(), "t.lance"), rows: map[int64]string{}}
			b.grow(ctx, t, 100)
			for i, e := range []*interop.Engine{second, first} {
				require.NoError(t, e.Churn(ctx, b.path, []interop.Write{{Where: fmt.Sprintf("id = %d", i)}}))
			}
			n, err := first.Count(ctx, b.path, "")
			require.NoError(t, err)
			require.Equal(t, 98, n)
			left, err := orphans(ctx, b.path)
			require.NoError(t, err)
			require.NotEmpty(t, left)
			t.Log(left)
		})
	}
}

func bytesOf(list []orphan) (n int64) {
	for _, o := range list {
		n += o.bytes
	}
	return n
}
