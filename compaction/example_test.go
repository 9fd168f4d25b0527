package compaction_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// newTable makes a table of three fragments of four rows, three rows deleted.
func newTable(ctx context.Context) *memengine.Engine {
	schema := table.Schema{Fields: []table.Field{{ID: 0, Name: "n", Type: arrow.PrimitiveTypes.Int64}}}
	e := memengine.New("example", schema)
	for range 3 {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		b.AppendValues([]int64{1, 2, 3, 4}, nil)
		if err := e.Append(ctx, array.NewRecordBatch(schema.Arrow(), []arrow.Array{b.NewArray()}, 4)); err != nil {
			log.Fatal(err)
		}
	}
	if err := e.DeleteRows(ctx, table.NewRowAddr(0, 1), table.NewRowAddr(2, 0), table.NewRowAddr(2, 3)); err != nil {
		log.Fatal(err)
	}
	return e
}

func ExampleCompact() {
	ctx := context.Background()
	engine := newTable(ctx)

	report, err := compaction.Compact(ctx, engine, compaction.Options{Events: compaction.Events{
		TaskEnd:   func(i compaction.TaskInfo) { fmt.Println(i) },
		CommitEnd: func(i compaction.CommitInfo) { fmt.Println(i) },
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.FragmentsRemoved, "fragments became", report.FragmentsAdded, "with", report.RowsWritten, "rows")
	// Output:
	// task over fragments 0-2: 9 rows, 96 bytes, wrote 1 fragment of 72 bytes
	// commit attempt 1 over version 5: 1 group, with a fragment reuse index, became version 6
	// 3 fragments became 1 with 9 rows
}

// A coordinator plans and publishes; workers execute. What passes between them is
// JSON.
func Example_distributed() {
	ctx := context.Background()
	engine := newTable(ctx)

	plan, err := compaction.PlanLatest(ctx, engine, compaction.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var results []compaction.Result
	for _, task := range plan.Tasks {
		fmt.Println("task:", task.Reason)
		answer := worker(ctx, engine, encode(task))
		var r compaction.Result
		decode(answer, &r)
		results = append(results, r)
	}
	out, err := compaction.Publish(ctx, engine, results, compaction.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("published as version", out.Version, "from", out.Published[0].Sources, "to", out.Published[0].Destinations)
	// Output:
	// task: 1 fragment of fewer than 1048576 rows and 2 fragments with more than 10% of the rows deleted: 1 instead
	// published as version 6 from [0 1 2] to [3]
}

func worker(ctx context.Context, engine table.Engine, message []byte) []byte {
	var task compaction.Task
	decode(message, &task)
	result, err := compaction.Execute(ctx, engine, task, compaction.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return encode(result)
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		log.Fatal(err)
	}
	return data
}

func decode(data []byte, v any) {
	if err := json.Unmarshal(data, v); err != nil {
		log.Fatal(err)
	}
}
