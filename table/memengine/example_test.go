package memengine_test

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// A table of two fragments, a row deleted in the first, and what a compaction
// does with it: the live rows written anew, and one commit that swaps fragments.
func Example() {
	ctx := context.Background()
	schema := table.Schema{Fields: []table.Field{{Name: "city", Type: arrow.BinaryTypes.String}}}
	e := memengine.New("cities", schema)
	for _, fragment := range [][]string{{"Oslo", "Bergen"}, {"Tromsø"}} {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema.Arrow())
		b.Field(0).(*array.StringBuilder).AppendValues(fragment, nil)
		if err := e.Append(ctx, b.NewRecordBatch()); err != nil {
			fmt.Println(err)
		}
	}
	if err := e.DeleteRows(ctx, table.NewRowAddr(0, 0)); err != nil {
		fmt.Println(err)
	}
	show(ctx, e)

	base, _ := e.Load(ctx, 0)
	sources := []table.FragmentID{0, 1}
	out, err := e.WriteFragments(ctx, schema, e.Rows(ctx, base, sources, table.ReadOptions{}), table.WriteOptions{})
	if err != nil {
		fmt.Println(err)
	}
	merged := table.Fragment{ID: base.NextFragmentID, PhysicalRows: out.Fragments[0].PhysicalRows, Files: out.Fragments[0].Files}
	_, err = e.Commit(ctx, table.Proposal{
		Base:        base,
		Transaction: table.Transaction{ID: "example", ReadVersion: base.Version, Operation: table.Rewrite{}},
		Change:      table.Change{Remove: sources, Add: []table.Fragment{merged}},
	})
	if err != nil {
		fmt.Println(err)
	}
	show(ctx, e)

	// Output:
	// version 4: Bergen at 0:1, Tromsø at 1:0
	// version 5: Bergen at 2:0, Tromsø at 2:1
}

func show(ctx context.Context, e *memengine.Engine) {
	s, err := e.Load(ctx, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("version %d:", s.Version)
	var ids []table.FragmentID
	for _, f := range s.Fragments {
		ids = append(ids, f.ID)
	}
	sep := " "
	for batch, err := range e.Rows(ctx, s, ids, table.ReadOptions{WithAddrs: true}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for i, addr := range batch.Addrs {
			fmt.Printf("%s%s at %s", sep, batch.Record.Column(0).ValueStr(i), addr)
			sep = ", "
		}
	}
	fmt.Println()
}
