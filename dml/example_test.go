package dml_test

import (
	"context"
	"fmt"
	"log"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// Rows with a key that is there are updated, the others inserted. The change is
// computed first and committed later; a delete in between does not disturb it.
func Example() {
	ctx := context.Background()
	people := memengine.New("people", table.Schema{Fields: []table.Field{
		{ID: 0, Name: "k", Type: arrow.PrimitiveTypes.Int64},
		{ID: 1, Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	}})
	rows := func(keys ...int64) []row {
		var out []row
		for _, k := range keys {
			out = append(out, row{K: &k})
		}
		return out
	}
	if _, err := dml.Execute(ctx, people, (dml.Append{Rows: in(10, rows(1, 2, 3, 4), "k")}), dml.Options{}); err != nil {
		log.Fatal(err)
	}

	s, err := people.Load(ctx, 0)
	if err != nil {
		log.Fatal(err)
	}
	upsert := dml.MergeInsert{On: []string{"k"}, Source: in(10, rows(2, 9), "k"), WhenMatched: dml.MatchedUpdate}
	change, stats, err := dml.Compute(ctx, people, s, upsert, dml.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("to be updated %d, inserted %d: %v\n", stats.Updated, stats.Inserted, change.Affected)

	four := dml.RowFunc([]string{"k"}, func(rec arrow.RecordBatch, i int) bool { return rec.Column(0).ValueStr(i) == "4" })
	if _, err := dml.Execute(ctx, people, (dml.Delete{Where: four}), dml.Options{}); err != nil {
		log.Fatal(err)
	}

	done, err := rebase.Commit(ctx, people, change, rebase.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("committed as version", done.Version, "over", done.RebasedOver)

	named := dml.Update{Set: map[string]dml.Expr{"s": dml.Constant(scalar.MakeScalar("somebody"))}}
	out, err := dml.Execute(ctx, people, named, dml.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("then updated", out.Updated)
	// Output:
	// to be updated 1, inserted 1: row 0:1
	// committed as version 4 over [3]
	// then updated 4
}
