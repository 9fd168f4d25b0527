package sqlexpr

import (
	"cmp"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// allocator makes everything that is made here. Its memory is the garbage
// collector's, so that what an error leaves behind is no leak.
var allocator = memory.DefaultAllocator

// cell is one value of any scalar type, in the field of its family: i for booleans
// (0 or 1), signed numbers, dates, times, timestamps and durations, u for unsigned
// numbers, f for floats, d for decimals, s for strings and bytes.
type cell struct {
	i int64
	u uint64
	f float64
	d *big.Int
	s string
}

// cellReader gives access to the values of an array as cells. They are valid until
// the next one is read.
func cellReader(a arrow.Array) func(i int) cell {
	ints := func(of func(i int) int64) func(int) cell { return func(i int) cell { return cell{i: of(i)} } }
	switch a := a.(type) {
	case *array.Boolean:
		return ints(func(i int) int64 { return int64(ordinal(a.Value(i))) })
	case *array.Int8:
		return ints(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Int16:
		return ints(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Int32:
		return ints(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Int64:
		return ints(a.Value)
	case *array.Uint8:
		return func(i int) cell { return cell{u: uint64(a.Value(i))} }
	case *array.Uint16:
		return func(i int) cell { return cell{u: uint64(a.Value(i))} }
	case *array.Uint32:
		return func(i int) cell { return cell{u: uint64(a.Value(i))} }
	case *array.Uint64:
		return func(i int) cell { return cell{u: a.Value(i)} }
	case *array.Float32:
		return func(i int) cell { return cell{f: float64(a.Value(i))} }
	case *array.Float64:
		return func(i int) cell { return cell{f: a.Value(i)} }
	case *array.Decimal128, *array.Decimal256:
		d := decimalsOf(a)
		return func(i int) cell { return cell{d: d.value(new(big.Int), i)} }
	case *array.Date32:
		return ints(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Date64:
		return ints(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Timestamp:
		return ints(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Time32:
		return ints(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Time64:
		return ints(func(i int) int64 { return int64(a.Value(i)) })
	case *array.Duration:
		return ints(func(i int) int64 { return int64(a.Value(i)) })
	}
	s := stringsOf(a)
	return func(i int) cell { return cell{s: s.Value(i)} }
}

// cellBuilder builds an array of a scalar type out of cells that fit it.
type cellBuilder struct {
	array.Builder
	add func(cell) error
}

func newCellBuilder(t arrow.DataType) cellBuilder {
	if familyOf(t) == famDecimal {
		d := newDecimalBuilder(t)
		var b array.Builder = d.narrow
		if d.wide != nil {
			b = d.wide
		}
		return cellBuilder{b, func(c cell) error { return d.append(c.d) }}
	}
	out := cellBuilder{Builder: array.NewBuilder(allocator, t)}
	// None of the others can fail.
	var add func(c cell)
	switch b := out.Builder.(type) {
	case *array.BooleanBuilder:
		add = func(c cell) { b.Append(c.i != 0) }
	case *array.Int8Builder:
		add = func(c cell) { b.Append(int8(c.i)) }
	case *array.Int16Builder:
		add = func(c cell) { b.Append(int16(c.i)) }
	case *array.Int32Builder:
		add = func(c cell) { b.Append(int32(c.i)) }
	case *array.Int64Builder:
		add = func(c cell) { b.Append(c.i) }
	case *array.Uint8Builder:
		add = func(c cell) { b.Append(uint8(c.u)) }
	case *array.Uint16Builder:
		add = func(c cell) { b.Append(uint16(c.u)) }
	case *array.Uint32Builder:
		add = func(c cell) { b.Append(uint32(c.u)) }
	case *array.Uint64Builder:
		add = func(c cell) { b.Append(c.u) }
	case *array.Float32Builder:
		add = func(c cell) { b.Append(float32(c.f)) }
	case *array.Float64Builder:
		add = func(c cell) { b.Append(c.f) }
	case *array.Date32Builder:
		add = func(c cell) { b.Append(arrow.Date32(c.i)) }
	case *array.Date64Builder:
		add = func(c cell) { b.Append(arrow.Date64(c.i)) }
	case *array.TimestampBuilder:
		add = func(c cell) { b.Append(arrow.Timestamp(c.i)) }
	case *array.Time32Builder:
		add = func(c cell) { b.Append(arrow.Time32(c.i)) }
	case *array.Time64Builder:
		add = func(c cell) { b.Append(arrow.Time64(c.i)) }
	case *array.DurationBuilder:
		add = func(c cell) { b.Append(arrow.Duration(c.i)) }
	case *array.FixedSizeBinaryBuilder:
		add = func(c cell) { b.Append([]byte(c.s)) }
	case interface{ Append([]byte) }:
		add = func(c cell) { b.Append([]byte(c.s)) }
	case interface{ Append(string) }:
		add = func(c cell) { b.Append(c.s) }
	default:
		add = func(cell) { b.AppendNull() }
	}
	out.add = func(c cell) error { add(c); return nil }
	return out
}

// constantOf is an array of one value.
func constantOf(t arrow.DataType, c cell) (arrow.Array, error) {
	b := newCellBuilder(t)
	defer b.Release()
	if err := b.add(c); err != nil {
		return nil, err
	}
	return b.NewArray(), nil
}

// orderOf compares two values of one type of a family: below zero if the first comes
// first.
func orderOf(fam family) func(a, b cell) int {
	switch fam {
	case famFloat:
		return func(a, b cell) int { return order(a.f, b.f) }
	case famDecimal:
		return func(a, b cell) int { return a.d.Cmp(b.d) }
	case famUint:
		return func(a, b cell) int { return cmp.Compare(a.u, b.u) }
	case famString, famBinary:
		return func(a, b cell) int { return cmp.Compare(a.s, b.s) }
	}
	return func(a, b cell) int { return cmp.Compare(a.i, b.i) }
}
