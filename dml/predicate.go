package dml

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/rehome-db/rehome/table"
)

// Predicate selects the rows of a change. Implementations are safe for concurrent use.
// Package sqlexpr makes them from SQL text, [PredicateFunc] from a Go function.
type Predicate interface {
	// Columns returns the top-level columns that Matches looks at, every one once.
	// It is where a predicate is checked against a schema: a column that s does not
	// have, or that has a type the predicate cannot work on, is an error.
	Columns(s table.Schema) ([]string, error)
	// Matches returns one slot a row of rec, which has at least the columns that
	// Columns named, in any order. A row matches if its slot is true: null is no
	// match, as in SQL. The caller releases the result.
	Matches(ctx context.Context, rec arrow.RecordBatch) (*array.Boolean, error)
}

// Decider is implemented by a Predicate that may have the same result for every row,
// whatever the rows hold. Then no row is read to evaluate it. It is optional.
type Decider interface {
	// Decide says whether every row matches or none does, and whether that is so for
	// all rows of s. It is asked after Columns.
	Decide(s table.Schema) (matches, decided bool)
}

// Expr makes values out of rows. Implementations are safe for concurrent use.
type Expr interface {
	// Columns is [Predicate.Columns].
	Columns(s table.Schema) ([]string, error)
	// Eval returns one value a row of rec, of any type that can be cast to that of
	// the column which the values are for; an array of Arrow's null type is as many
	// nulls. The caller releases the result.
	Eval(ctx context.Context, rec arrow.RecordBatch) (arrow.Array, error)
}

// PredicateFunc makes a Predicate of a function over record batches that looks at
// the given columns. The function must be safe for concurrent use.
func PredicateFunc(columns []string, matches func(ctx context.Context, rec arrow.RecordBatch) (*array.Boolean, error)) Predicate {
	return predicateFunc{columnList(slices.Clone(columns)), matches}
}

type predicateFunc struct {
	columnList
	matches func(context.Context, arrow.RecordBatch) (*array.Boolean, error)
}

func (p predicateFunc) Matches(ctx context.Context, rec arrow.RecordBatch) (*array.Boolean, error) {
	return p.matches(ctx, rec)
}

// RowFunc makes a Predicate of a function that looks at one row: rec at row i. It is
// the shortest way to say in Go which rows are meant, and the slowest.
func RowFunc(columns []string, matches func(rec arrow.RecordBatch, i int) bool) Predicate {
	return PredicateFunc(columns, func(_ context.Context, rec arrow.RecordBatch) (*array.Boolean, error) {
		b := array.NewBooleanBuilder(memory.DefaultAllocator)
		defer b.Release()
		b.Reserve(int(rec.NumRows()))
		for i := range int(rec.NumRows()) {
			b.UnsafeAppend(matches(rec, i))
		}
		return b.NewBooleanArray(), nil
	})
}

// All is the Predicate that every row matches.
func All() Predicate {
	return all{RowFunc(nil, func(arrow.RecordBatch, int) bool { return true })}
}

type all struct{ Predicate }

// Decide implements Decider.
func (all) Decide(table.Schema) (matches, decided bool) { return true, true }

// ExprFunc makes an Expr of a function over record batches that looks at the given
// columns. The function must be safe for concurrent use.
func ExprFunc(columns []string, eval func(ctx context.Context, rec arrow.RecordBatch) (arrow.Array, error)) Expr {
	return exprFunc{columnList(slices.Clone(columns)), eval}
}

type exprFunc struct {
	columnList
	eval func(context.Context, arrow.RecordBatch) (arrow.Array, error)
}

func (x exprFunc) Eval(ctx context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
	return x.eval(ctx, rec)
}

// Constant is the Expr that has the same value for every row. A scalar of Arrow's
// null type is a null of any column.
func Constant(value scalar.Scalar) Expr {
	return ExprFunc(nil, func(_ context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
		if value.DataType().ID() == arrow.NULL {
			return array.NewNull(int(rec.NumRows())), nil
		}
		return scalar.MakeArrayFromScalar(value, int(rec.NumRows()), memory.DefaultAllocator)
	})
}

// columnList is a fixed list of columns to look at.
type columnList []string

// Columns implements Predicate and Expr.
func (l columnList) Columns(s table.Schema) ([]string, error) {
	var out []string
	for _, name := range l {
		if _, ok := s.Field(name); !ok {
			return nil, fmt.Errorf("dml: no column %q: %w", name, table.ErrNotFound)
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}
