package sqlexpr

import "github.com/apache/arrow-go/v18/arrow"

// widens says whether every value of a number type is one of another, if perhaps
// rounded.
func widens(from, to arrow.DataType) bool {
	switch familyOf(from) {
	case famInt:
		return familyOf(to) == famFloat || familyOf(to) == famInt && bits(to) > bits(from)
	case famUint:
		return familyOf(to) == famFloat || isInteger(to) && bits(to) > bits(from)
	case famFloat:
		return familyOf(to) == famFloat
	}
	return false
}

type numeric interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
	arrow.FixedWidthType
}

// widen casts numbers to a type that holds them.
func widen(f *frame, v vector, to arrow.DataType) vector {
	switch v.DataType().ID() {
	case arrow.INT8:
		return widenFrom[int8](f, v, to)
	case arrow.INT16:
		return widenFrom[int16](f, v, to)
	case arrow.INT32:
		return widenFrom[int32](f, v, to)
	case arrow.INT64:
		return widenFrom[int64](f, v, to)
	case arrow.UINT8:
		return widenFrom[uint8](f, v, to)
	case arrow.UINT16:
		return widenFrom[uint16](f, v, to)
	case arrow.UINT32:
		return widenFrom[uint32](f, v, to)
	case arrow.UINT64:
		return widenFrom[uint64](f, v, to)
	case arrow.FLOAT32:
		return widenFrom[float32](f, v, to)
	}
	return widenFrom[float64](f, v, to)
}

func widenFrom[S numeric](f *frame, v vector, to arrow.DataType) vector {
	switch to.ID() {
	case arrow.INT16:
		return widenTo[S, int16](f, v, to)
	case arrow.INT32:
		return widenTo[S, int32](f, v, to)
	case arrow.INT64:
		return widenTo[S, int64](f, v, to)
	case arrow.UINT16:
		return widenTo[S, uint16](f, v, to)
	case arrow.UINT32:
		return widenTo[S, uint32](f, v, to)
	case arrow.UINT64:
		return widenTo[S, uint64](f, v, to)
	case arrow.FLOAT32:
		return widenTo[S, float32](f, v, to)
	}
	return widenTo[S, float64](f, v, to)
}

func widenTo[S, T numeric](f *frame, v vector, to arrow.DataType) vector {
	n, one := f.length(v)
	valid, nulls := f.validity(n, v)
	in, out := values[S](v.Array), make([]T, n)
	for i, x := range in {
		out[i] = T(x)
	}
	return numbers(f, to, one, out, valid, nulls)
}
