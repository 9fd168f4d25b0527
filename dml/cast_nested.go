package dml

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/scalar"

	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/table"
)

// castList casts lists item by item: a list of numbers to a vector, for example.
func castList(list array.ListLike, to arrow.DataType) (arrow.Array, error) {
	item, ok := to.(arrow.ListLikeType)
	if !ok || to.ID() == arrow.MAP || list.DataType().ID() == arrow.MAP {
		return nil, refused(list.DataType(), to)
	}
	items, err := castTo(list.ListValues(), item.Elem())
	if err != nil {
		return nil, fmt.Errorf("items: %w", err)
	}
	defer items.Release()
	b := array.NewBuilder(memory.DefaultAllocator, to)
	defer b.Release()
	for i := range list.Len() {
		if list.IsNull(i) {
			b.AppendNull()
			continue
		}
		from, end := list.ValueOffsets(i)
		switch b := b.(type) {
		case *array.FixedSizeListBuilder:
			if size := int64(to.(*arrow.FixedSizeListType).Len()); end-from != size {
				return nil, fmt.Errorf("%s %s as %s: it has %d items", list.DataType(), list.ValueStr(i), to, end-from)
			}
			b.Append(true)
		case *array.ListBuilder:
			b.Append(true)
		case *array.LargeListBuilder:
			b.Append(true)
		default:
			return nil, refused(list.DataType(), to)
		}
		if err := appendRows(b.(array.ListLikeBuilder).ValueBuilder(), items, int(from), int(end)); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

// castDictionary casts to the dictionary's values and makes a dictionary of them.
func castDictionary(values arrow.Array, to *arrow.DictionaryType) (arrow.Array, error) {
	plain, err := castTo(values, to.ValueType)
	if err != nil {
		return nil, err
	}
	defer plain.Release()
	out, err := gather.Dictionary(memory.DefaultAllocator, plain, to)
	if err != nil {
		return nil, fmt.Errorf("values of type %s as %s: %w", values.DataType(), to, err)
	}
	return out, nil
}

// appendRows appends the rows [from, end) of values, which have the builder's type.
func appendRows(b array.Builder, values arrow.Array, from, end int) error {
	for i := from; i < end; i++ {
		v, err := scalar.GetScalar(values, i)
		if err == nil {
			err = scalar.Append(b, v)
		}
		if err != nil {
			return table.Unsupportedf("items of type %s cannot be taken over: %w", values.DataType(), err)
		}
	}
	return nil
}

// castTime is castFunc between times, days and durations, and whole numbers of their
// unit.
func castTime(values arrow.Array, b array.Builder) func(i int) error {
	get, from := timeOf(values), unitOf(values.DataType())
	put, to := putTime(b), unitOf(b.Type())
	counts := from.class == count || to.class == count // one is a number of the other's unit
	if get == nil || put == nil || from.class == to.class && counts || from.class != to.class && !counts {
		return nil
	}
	up, down := int64(1), int64(1)
	switch {
	case counts:
	case from.unit >= to.unit:
		up = from.unit / to.unit
	default:
		down = to.unit / from.unit
	}
	return func(i int) error {
		v := get(i)
		if high, low := bits.Mul64(uint64(max(v, -(v+1))), uint64(up)); high != 0 || low > math.MaxInt64-uint64(up) {
			return errRange
		}
		v *= up
		if v%down < 0 {
			v -= down // times before the epoch round down, too
		}
		return put(v / down)
	}
}

// The classes of what numbers count; those of one class differ in their unit only.
const (
	instant = iota
	timeOfDay
	duration
	count
)

// timeUnit is what a number of some type counts: units of so many nanoseconds.
type timeUnit struct {
	class int
	unit  int64
}

const day = 24 * 3600 * 1_000_000_000

func unitOf(t arrow.DataType) timeUnit {
	switch t := t.(type) {
	case *arrow.TimestampType:
		return timeUnit{instant, int64(t.Unit.Multiplier())}
	case *arrow.Date32Type:
		return timeUnit{instant, day}
	case *arrow.Date64Type:
		return timeUnit{instant, 1_000_000}
	case *arrow.Time32Type:
		return timeUnit{timeOfDay, int64(t.Unit.Multiplier())}
	case *arrow.Time64Type:
		return timeUnit{timeOfDay, int64(t.Unit.Multiplier())}
	case *arrow.DurationType:
		return timeUnit{duration, int64(t.Unit.Multiplier())}
	}
	return timeUnit{count, 1}
}

// timeOf reads times and the numbers that can be meant as such; nil for others.
func timeOf(values arrow.Array) func(i int) int64 {
	switch v := values.(type) {
	case *array.Timestamp:
		return func(i int) int64 { return int64(v.Value(i)) }
	case *array.Date32:
		return func(i int) int64 { return int64(v.Value(i)) }
	case *array.Date64:
		return func(i int) int64 { return int64(v.Value(i)) }
	case *array.Time32:
		return func(i int) int64 { return int64(v.Value(i)) }
	case *array.Time64:
		return func(i int) int64 { return int64(v.Value(i)) }
	case *array.Duration:
		return func(i int) int64 { return int64(v.Value(i)) }
	case *array.Int32:
		return func(i int) int64 { return int64(v.Value(i)) }
	case *array.Int64:
		return func(i int) int64 { return v.Value(i) }
	}
	return nil
}

// putTime is timeOf for writing.
func putTime(b array.Builder) func(int64) error {
	narrow := func(put func(int32)) func(int64) error {
		return func(v int64) error {
			if v != int64(int32(v)) {
				return errRange
			}
			put(int32(v))
			return nil
		}
	}
	switch b := b.(type) {
	case *array.TimestampBuilder:
		return func(v int64) error { b.Append(arrow.Timestamp(v)); return nil }
	case *array.Date32Builder:
		return narrow(func(v int32) { b.Append(arrow.Date32(v)) })
	case *array.Date64Builder:
		return func(v int64) error { b.Append(arrow.Date64(v)); return nil }
	case *array.Time32Builder:
		return narrow(func(v int32) { b.Append(arrow.Time32(v)) })
	case *array.Time64Builder:
		return func(v int64) error { b.Append(arrow.Time64(v)); return nil }
	case *array.DurationBuilder:
		return func(v int64) error { b.Append(arrow.Duration(v)); return nil }
	case *array.Int32Builder:
		return narrow(b.Append)
	case *array.Int64Builder:
		return func(v int64) error { b.Append(v); return nil }
	}
	return nil
}
