package remap_test

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// exampleHistory is the worked example of the package: fragments 10 (8 rows, 2 and
// 5 deleted) and 11 (4 rows) became fragment 200. A table's own history is read with
// the engine's ReuseIndex and fri.Decode.
func exampleHistory() *fri.History {
	var b fri.Builder
	_ = b.AddSource(fri.Digest{ID: 10, PhysicalRows: 8, DeletedRows: 2}, deletion.Of(2, 5))
	_ = b.AddSource(fri.Digest{ID: 11, PhysicalRows: 4}, nil)
	rewrite, err := b.Build([]fri.Digest{{ID: 200, PhysicalRows: 10}})
	if err != nil {
		fmt.Println(err)
	}
	h, err := (&fri.History{}).Append(7, rewrite)
	if err != nil {
		fmt.Println(err)
	}
	return h
}

func ExampleSlice() {
	r := remap.New(exampleHistory(), remap.Options{Unchecked: true})
	postings := []table.RowAddr{
		table.NewRowAddr(11, 2), table.NewRowAddr(10, 5), table.NewRowAddr(10, 0),
		table.NewRowAddr(11, 2), table.NewRowAddr(99, 7),
	}
	postings, counts, err := remap.Slice(r, postings)
	fmt.Println(postings, counts, err)
	// Output: [200:8 200:0 200:8 99:7] {3 1 1} <nil>
}

// Values that stand beside their addresses are thinned out by the mask.
func ExampleSliceMask() {
	r := remap.New(exampleHistory(), remap.Options{Unchecked: true})
	addrs := []table.RowAddr{table.NewRowAddr(10, 1), table.NewRowAddr(10, 2), table.NewRowAddr(10, 3)}
	scores := []float32{0.9, 0.8, 0.7}
	deleted, _, err := remap.SliceMask(r, addrs)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, a := range addrs {
		if !deleted.Get(i) {
			fmt.Println(a, scores[i])
		}
	}
	// Output:
	// 200:1 0.9
	// 200:2 0.7
}

func ExampleRemapper_Record() {
	names := array.NewStringBuilder(memory.DefaultAllocator)
	names.AppendValues([]string{"ann", "bob", "cy"}, nil)
	addrs := array.NewUint64Builder(memory.DefaultAllocator)
	for _, a := range []table.RowAddr{table.NewRowAddr(11, 3), table.NewRowAddr(10, 2), table.NewRowAddr(10, 7)} {
		addrs.Append(uint64(a))
	}
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "name", Type: arrow.BinaryTypes.String},
		{Name: "_rowaddr", Type: arrow.PrimitiveTypes.Uint64},
	}, nil)
	rec := array.NewRecordBatch(schema, []arrow.Array{names.NewArray(), addrs.NewArray()}, 3)

	out, _, err := remap.New(exampleHistory(), remap.Options{Unchecked: true}).Record(rec, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer out.Release()
	for i := range int(out.NumRows()) {
		fmt.Println(out.Column(0).ValueStr(i), table.RowAddr(out.Column(1).(*array.Uint64).Value(i)))
	}
	// Output:
	// ann 200:9
	// cy 200:5
}

func ExampleRemapper_Bitmap() {
	bm := roaring64.New()
	bm.AddRange(uint64(table.NewRowAddr(10, 0)), uint64(table.NewRowAddr(10, 8)))
	out, counts, err := remap.New(exampleHistory(), remap.Options{Unchecked: true}).Bitmap(bm)
	fmt.Println(table.RowAddr(out.Minimum()), table.RowAddr(out.Maximum()), counts, err)
	// Output: 200:0 200:5 {6 2 0} <nil>
}

func ExampleRemapper_Coverage() {
	r := remap.New(exampleHistory(), remap.Options{Unchecked: true})
	whole, _ := r.Coverage([]table.FragmentID{10, 11, 99})
	fmt.Println(whole.Fragments)
	partly, _ := r.Coverage([]table.FragmentID{10, 99})
	fmt.Println(partly.Fragments, partly.Straddles)
	// Output:
	// [99 200]
	// [99] [transition 0 wrote covered [10] and uncovered [11] into [200]]
}
