package fri_test

import (
	"fmt"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// A compaction of two fragments, from the builder to an answer.
func Example() {
	var b fri.Builder
	// Errors are left out here; each says which fragment breaks which rule.
	_ = b.AddSource(fri.Digest{ID: 10, PhysicalRows: 8, DeletedRows: 2}, deletion.Of(2, 5))
	_ = b.AddSource(fri.Digest{ID: 11, PhysicalRows: 4}, nil)
	rewrite, err := b.Build([]fri.Digest{{ID: 200, PhysicalRows: 10}})
	if err != nil {
		fmt.Println(err)
		return
	}

	found, err := fri.Decode(nil, 0) // the table had none so far
	if err != nil {
		fmt.Println(err)
		return
	}
	history, err := found.Append(7, rewrite)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, addr := range []table.RowAddr{table.NewRowAddr(11, 2), table.NewRowAddr(10, 5), table.NewRowAddr(99, 0)} {
		t := history.Translate(addr)
		fmt.Println(addr, t.State, t.Addr)
	}
	fmt.Println(len(history.Encode()), "bytes stored")
	// Output:
	// 11:2 moved 200:8
	// 10:5 deleted 0:0
	// 99:0 unaffected 99:0
	// 88 bytes stored
}
