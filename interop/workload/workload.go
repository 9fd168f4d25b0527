// Package workload makes the tables that the benchmarks and tests compare engines on. A
// stock engine writes them, so that what is compacted is what users have.
//
// A [Table] is a number of fragments of equal size, then one delete that touches all
// of them. A [History] is a table and what else happens to it: indexes, updates, columns
// that come, go and change, deletions in runs. Everything is drawn from a seed: the same
// table is the same rows on every machine.
//
//	t := workload.Vectors(1_000_000, 100)
//	err := t.Build(ctx, engine, dir+"/t.lance")
//
// Making a history returns what every version of the table must hold ([Made]), computed
// from what was drawn and not from what was read: digests of the columns, which [Digests]
// of what anybody reads are compared with.
package workload

import (
	"context"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/interop"
)

// Table describes a table. The first column is always "id", an int64 that counts
// rows from 0.
type Table struct {
	// Name is what results call the table.
	Name string
	// Rows and Fragments are how many; the fragments share the rows equally.
	Rows, Fragments int
	// PerCommit is how many fragments are written in one commit; more than one only
	// pylance does. The default is one.
	PerCommit int
	// DeletePercent of the rows, spread over all fragments, are deleted. The
	// default is none.
	DeletePercent int
	// DataFormat is the version of the data files. The default is the engine's.
	DataFormat string
	// Seed of the values. The default is 0.
	Seed uint64
	// Columns beside the id.
	Columns []Column
	// Unfiltered says that stock engines cannot read the columns through a filter, as
	// updates do. The default is that they can.
	Unfiltered bool
}

// Column is a column and what fills it.
type Column struct {
	Name     string
	Type     arrow.DataType
	Nullable bool
	// Metadata of the field. The default is none.
	Metadata arrow.Metadata
	// Append adds the value of the given row.
	Append func(b array.Builder, rng *rand.Rand, row int)
	// Blob says that queries have to ask for the column's bytes.
	Blob bool
	// Shown is what queries make of an array of the column. The default is the same.
	Shown func(arrow.Array) arrow.Array
}

func (c Column) field() arrow.Field {
	return arrow.Field{Name: c.Name, Type: c.Type, Nullable: c.Nullable, Metadata: c.Metadata}
}

// Build writes the table at path, which ends in "/t.lance".
func (t Table) Build(ctx context.Context, e *interop.Engine, path string) error {
	return History{Table: t}.Write(ctx, e, path)
}

// perFragment is how many rows a fragment has.
func (t Table) perFragment() int { return t.Rows / max(t.Fragments, 1) }

// record is n rows of whole fragments, from the given one on.
func (t Table) record(first, n int) arrow.RecordBatch { return newState(t).record(first, n) }

// ids are the values of the column id.
func ids(first, n int) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.Reserve(n)
	for i := range n {
		b.UnsafeAppend(int64(first + i))
	}
	return b.NewArray()
}

// values draws column c of n rows of whole fragments.
func (t Table) values(c, first, n int) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t.Columns[c].Type)
	defer b.Release()
	b.Reserve(n)
	per := t.perFragment()
	for start := first; start < first+n; start += per {
		// A generator of its own for each column and fragment: a column's values do
		// not depend on what stands beside it.
		rng := rand.New(rand.NewPCG(t.Seed+uint64(c)<<32, uint64(start)))
		for i := range min(per, first+n-start) {
			t.Columns[c].Append(b, rng, start+i)
		}
	}
	return b.NewArray()
}
