package remap_test

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/fri/fritest"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// drawArray is the addresses as an array with nulls, cut out of a longer one.
func drawArray(t *rapid.T, mem memory.Allocator, addrs []table.RowAddr) (arr *array.Uint64, valid []bool) {
	before, after := rapid.IntRange(0, 70).Draw(t, "before"), rapid.IntRange(0, 3).Draw(t, "after")
	nulls := rapid.IntRange(0, 3).Draw(t, "nulls") // every n-th, 0 for none
	b := array.NewUint64Builder(mem)
	defer b.Release()
	for range before {
		b.Append(12345)
	}
	for i, a := range addrs {
		valid = append(valid, nulls == 0 || (i+1)%(nulls+1) != 0)
		b.AppendValues([]uint64{uint64(a)}, valid[i:]) // the value lies under the null
	}
	for range after {
		b.AppendNull()
	}
	whole := b.NewUint64Array()
	defer whole.Release()
	return array.NewSlice(whole, int64(before), int64(before+len(addrs))).(*array.Uint64), valid
}

// wantArray is what becomes of the entries: nil for null.
func wantArray(m *fritest.Model, addrs []table.RowAddr, valid []bool, drop bool) (out []*uint64, kept []bool, c remap.Counts) {
	for i, a := range addrs {
		keep := true
		if !valid[i] {
			out = append(out, nil)
		} else {
			switch tr := m.Translate(a); tr.State {
			case fri.Deleted:
				c.Deleted++
				keep = false
				if !drop {
					out = append(out, nil)
				}
			default:
				if tr.State == fri.Moved {
					c.Moved++
				} else {
					c.Unaffected++
				}
				to := uint64(tr.Addr)
				out = append(out, &to)
			}
		}
		kept = append(kept, keep)
	}
	return out, kept, c
}

func requireArray(t require.TestingT, want []*uint64, got *array.Uint64) {
	require.Equal(t, len(want), got.Len())
	nulls := 0
	for i, w := range want {
		if w == nil {
			nulls++
			require.True(t, got.IsNull(i), "entry %d", i)
		} else {
			require.False(t, got.IsNull(i), "entry %d", i)
			require.Equal(t, *w, got.Value(i), "entry %d", i)
		}
	}
	require.Equal(t, nulls, got.NullN())
}

// arrayCase is an array of addresses of a model. What is allocated with mem must be
// released by whoever did it.
type arrayCase struct {
	m     *fritest.Model
	addrs []table.RowAddr
	arr   *array.Uint64
	valid []bool
	mem   *memory.CheckedAllocator
}

// checkArrays checks arrays that are drawn, and that nothing of any is left.
func checkArrays(t *testing.T, check func(*rapid.T, arrayCase)) {
	rapid.Check(t, func(t *rapid.T) {
		c := arrayCase{m: drawModel(t), mem: memory.NewCheckedAllocator(memory.DefaultAllocator)}
		defer c.mem.AssertSize(t, 0)
		c.addrs = drawAddrs(t, c.m)
		c.arr, c.valid = drawArray(t, c.mem, c.addrs)
		defer c.arr.Release()
		check(t, c)
	})
}

func TestArrayAgainstModel(t *testing.T) {
	checkArrays(t, func(t *rapid.T, c arrayCase) {
		for _, drop := range []bool{false, true} {
			r := remap.New(c.m.History, remap.Options{Unchecked: true, DropDeleted: drop, Allocator: c.mem})
			got, counts, err := r.Array(c.arr)
			require.NoError(t, err)
			want, _, wantCounts := wantArray(c.m, c.addrs, c.valid, drop)
			require.Equal(t, wantCounts, counts)
			requireArray(t, want, got)
			got.Release()
		}
		for i, a := range c.addrs { // the input is as it was
			require.EqualValues(t, a, c.arr.Value(i))
			require.Equal(t, c.valid[i], c.arr.IsValid(i))
		}
	})
}

// TestRecordAgainstModel: a row goes from all columns or from none, and keeps what
// stood beside its address.
func TestRecordAgainstModel(t *testing.T) {
	checkArrays(t, func(t *rapid.T, c arrayCase) {
		md := arrow.NewMetadata([]string{"k"}, []string{"v"})
		schema := arrow.NewSchema([]arrow.Field{
			{Name: "value", Type: arrow.BinaryTypes.String},
			{Name: "_rowaddr", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
			{Name: "items", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)},
		}, &md)
		names, items := array.NewStringBuilder(c.mem), array.NewListBuilder(c.mem, arrow.PrimitiveTypes.Int32)
		defer names.Release()
		defer items.Release()
		for i := range c.addrs {
			names.Append(fmt.Sprint("row ", i))
			items.Append(true)
			for j := range i % 3 {
				items.ValueBuilder().(*array.Int32Builder).Append(int32(i + j))
			}
		}
		nameCol, itemCol := names.NewArray(), items.NewArray()
		defer nameCol.Release()
		defer itemCol.Release()
		rec := array.NewRecordBatch(schema, []arrow.Array{nameCol, c.arr, itemCol}, int64(len(c.addrs)))
		defer rec.Release()

		r := remap.New(c.m.History, remap.Options{Unchecked: true, Allocator: c.mem})
		got, counts, err := r.Record(rec, 1)
		require.NoError(t, err)
		defer got.Release()
		want, kept, wantCounts := wantArray(c.m, c.addrs, c.valid, true)
		require.Equal(t, wantCounts, counts)
		require.True(t, schema.Equal(got.Schema()))
		require.EqualValues(t, len(want), got.NumRows())
		requireArray(t, want, got.Column(1).(*array.Uint64))
		at := 0
		for i, keep := range kept {
			if !keep {
				continue
			}
			require.Equal(t, fmt.Sprint("row ", i), got.Column(0).(*array.String).Value(at))
			require.Equal(t, rec.Column(2).ValueStr(i), got.Column(2).ValueStr(at))
			at++
		}
	})
}

func TestArrayThatNothingTouchesIsItself(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	m := stacked(t, 2)
	b := array.NewUint64Builder(mem)
	defer b.Release()
	b.AppendValues([]uint64{1 << 60, 1<<60 + 5}, nil)
	b.AppendNull()
	arr := b.NewUint64Array()
	defer arr.Release()
	got, counts, err := remap.New(m.History, remap.Options{Unchecked: true, Allocator: mem}).Array(arr)
	require.NoError(t, err)
	defer got.Release()
	require.Same(t, arr, got)
	require.Equal(t, remap.Counts{Unaffected: 2}, counts)
}

func TestArraysAndRecordsAreRefusedWhole(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
	defer mem.AssertSize(t, 0)
	m := newModel(0)
	m.Add(10)
	m.Live[0].Dead = deletion.Of(4)
	m.Commit(t, m.Compact(t, []int{0}, nil, false))
	b := array.NewUint64Builder(mem)
	defer b.Release()
	b.AppendValues([]uint64{3, 4, 99 << 32}, nil)
	b.AppendNull()
	arr := b.NewUint64Array()
	defer arr.Release()

	strict := remap.New(m.History, remap.Options{Strict: true, Allocator: mem})
	var outside *remap.OutsideError
	_, _, err := strict.Array(arr)
	require.ErrorAs(t, err, &outside)
	require.EqualValues(t, uint64(99)<<32, outside.Addr)

	names := array.NewStringBuilder(mem)
	defer names.Release()
	names.AppendValues([]string{"a", "b", "c", "d"}, nil)
	nameCol := names.NewArray()
	defer nameCol.Release()
	ree := array.NewRunEndEncodedBuilder(mem, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int8)
	defer ree.Release()
	ree.Append(4)
	ree.ValueBuilder().(*array.Int8Builder).Append(7)
	reeCol := ree.NewArray()
	defer reeCol.Release()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "addr", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
		{Name: "name", Type: arrow.BinaryTypes.String},
		{Name: "runs", Type: reeCol.DataType()},
	}, nil)
	rec := array.NewRecordBatch(schema, []arrow.Array{arr, nameCol, reeCol}, 4)
	defer rec.Release()

	r := remap.New(m.History, remap.Options{Unchecked: true, Allocator: mem})
	_, _, err = r.Record(rec, 0)
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, `column "runs"`)
	_, _, err = r.Record(rec, 1)
	require.ErrorContains(t, err, `column "name" has type utf8, addresses are uint64`)
	_, _, err = r.Record(rec, 3)
	require.ErrorContains(t, err, "no column 3 among 3")

	two := array.NewRecordBatch(arrow.NewSchema(schema.Fields()[:2], nil), []arrow.Array{arr, nameCol}, 4)
	defer two.Release()
	_, _, err = strict.Record(two, 0)
	require.ErrorAs(t, err, &outside)
}
