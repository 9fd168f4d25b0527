package sqlexpr_test

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/dml/sqlexpr"
)

func Example() {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "price", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	b.Field(0).(*array.StringBuilder).AppendValues([]string{"xylophone", "violin", "", "x"}, []bool{true, true, false, true})
	b.Field(1).(*array.Float64Builder).AppendValues([]float64{90, 800, 12, 0}, []bool{true, true, true, false})
	rec := b.NewRecordBatch()
	defer rec.Release()

	p, err := sqlexpr.ParsePredicate("price > 10 and (name like 'x%' or name is null)")
	if err != nil {
		fmt.Println(err)
		return
	}
	matching, err := p.Matches(context.Background(), rec)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer matching.Release()
	fmt.Println(matching)

	x, err := sqlexpr.ParseExpr("coalesce(name, 'unknown') || ': ' || (price * 2)")
	if err != nil {
		fmt.Println(err)
		return
	}
	values, err := x.Eval(context.Background(), rec)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer values.Release()
	fmt.Println(values)

	p, _ = sqlexpr.ParsePredicate("prise > 10")
	_, err = p.Columns(schemaOf(rec))
	fmt.Println(err)
	// Output:
	// [true false true (null)]
	// ["xylophone: 180.0" "violin: 1600.0" "unknown: 24.0" (null)]
	// sqlexpr: at character 1, "prise": no column "prise", similar are "price"
}
