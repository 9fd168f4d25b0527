package sqlexpr

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// holds says whether an operator holds for what a comparison of two values gave.
func holds(op string, order int) bool {
	switch op {
	case "=":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// compareVectors compares two vectors of one type, or two decimals, or a decimal and a
// float. Null if one is null.
//
// The order of floats is not IEEE's: a NaN is equal to itself and above everything
// else, as in the engine, and the zeros are equal.
func compareVectors(f *frame, op string, l, r vector) (vector, error) {
	t := l.DataType()
	lf, rf := familyOf(t), familyOf(r.DataType())
	switch {
	case lf == famNull:
		return f.nullsOf(arrow.FixedWidthTypes.Boolean), nil
	case lf == famDecimal && rf == famFloat:
		return compareDecimalFloats(f, l, r, func(order int) bool { return holds(op, order) })
	case lf == famFloat && rf == famDecimal:
		return compareDecimalFloats(f, r, l, func(order int) bool { return holds(op, -order) })
	case lf == famDecimal:
		return compareDecimals(f, op, l, r), nil
	case lf == famString, lf == famBinary:
		return compareStrings(f, op, l, r), nil
	case lf == famBool:
		lv, rv := l.Array.(*array.Boolean), r.Array.(*array.Boolean)
		ls, rs := l.step(), r.step()
		return f.rowBools(func(i int) bool { return holds(op, cmp.Compare(ordinal(lv.Value(i*ls)), ordinal(rv.Value(i*rs)))) }, l, r), nil
	}
	switch t.ID() {
	case arrow.FLOAT32:
		return compareFloats[float32](f, op, l, r), nil
	case arrow.FLOAT64:
		return compareFloats[float64](f, op, l, r), nil
	case arrow.UINT8:
		return compareNumbers[uint8](f, op, l, r), nil
	case arrow.UINT16:
		return compareNumbers[uint16](f, op, l, r), nil
	case arrow.UINT32:
		return compareNumbers[uint32](f, op, l, r), nil
	case arrow.UINT64:
		return compareNumbers[uint64](f, op, l, r), nil
	}
	switch bits(t) { // signed numbers, and what is stored as such
	case 8:
		return compareNumbers[int8](f, op, l, r), nil
	case 16:
		return compareNumbers[int16](f, op, l, r), nil
	case 32:
		return compareNumbers[int32](f, op, l, r), nil
	case 64:
		return compareNumbers[int64](f, op, l, r), nil
	}
	return vector{}, fmt.Errorf("values of type %s cannot be compared", t)
}

func ordinal(b bool) int {
	if b {
		return 1
	}
	return 0
}

// order is the total order of floats.
func order[T float32 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case a == b:
		return 0
	case a == a:
		return -1
	case b == b:
		return 1
	}
	return 0
}

func compareFloats[T interface {
	float32 | float64
	arrow.FixedWidthType
}](f *frame, op string, l, r vector) vector {
	lv, rv := values[T](l.Array), values[T](r.Array)
	ls, rs := l.step(), r.step()
	return f.rowBools(func(i int) bool { return holds(op, order(lv[i*ls], rv[i*rs])) }, l, r)
}

// compareNumbers compares whole numbers, and dates and times, which are stored as
// such.
func compareNumbers[T integer](f *frame, op string, l, r vector) vector {
	lv, rv := values[T](l.Array), values[T](r.Array)
	ls, rs := l.step(), r.step()
	switch op {
	case "=":
		return f.rowBools(func(i int) bool { return lv[i*ls] == rv[i*rs] }, l, r)
	case "!=":
		return f.rowBools(func(i int) bool { return lv[i*ls] != rv[i*rs] }, l, r)
	case "<":
		return f.rowBools(func(i int) bool { return lv[i*ls] < rv[i*rs] }, l, r)
	case "<=":
		return f.rowBools(func(i int) bool { return lv[i*ls] <= rv[i*rs] }, l, r)
	case ">":
		return f.rowBools(func(i int) bool { return lv[i*ls] > rv[i*rs] }, l, r)
	}
	return f.rowBools(func(i int) bool { return lv[i*ls] >= rv[i*rs] }, l, r)
}

func compareStrings(f *frame, op string, l, r vector) vector {
	lv, rv := stringsOf(l.Array), stringsOf(r.Array)
	ls, rs := l.step(), r.step()
	switch op {
	case "=":
		return f.rowBools(func(i int) bool { return lv.Value(i*ls) == rv.Value(i*rs) }, l, r)
	case "!=":
		return f.rowBools(func(i int) bool { return lv.Value(i*ls) != rv.Value(i*rs) }, l, r)
	}
	return f.rowBools(func(i int) bool { return holds(op, strings.Compare(lv.Value(i*ls), rv.Value(i*rs))) }, l, r)
}

// compareDecimals compares by value whatever the scales, which cannot overflow.
func compareDecimals(f *frame, op string, l, r vector) vector {
	lv, rv := decimalsOf(l.Array), decimalsOf(r.Array)
	ls, rs := l.step(), r.step()
	up := pow10(lv.scale - rv.scale)
	var a, b big.Int
	return f.rowBools(func(i int) bool {
		x, y := lv.value(&a, i*ls), rv.value(&b, i*rs)
		if lv.scale > rv.scale {
			y.Mul(y, up)
		} else if lv.scale < rv.scale {
			x.Mul(x, up)
		}
		return holds(op, x.Cmp(y))
	}, l, r)
}

// compareDecimalFloats compares a decimal with a float to 15 digits of a fraction, as
// the engine does, which makes 0.1 equal to 0.10. Unlike the engine, which fails on
// them, infinities and NaN are beyond all decimals.
func compareDecimalFloats(f *frame, d, x vector, is func(order int) bool) (vector, error) {
	const digits = 15
	x, err := castVector(f, x, arrow.PrimitiveTypes.Float64, false)
	if err != nil {
		return vector{}, err
	}
	dv, xv := decimalsOf(d.Array), values[float64](x.Array)
	ds, xs := d.step(), x.step()
	var a big.Int
	return f.rowBools(func(i int) bool {
		v := xv[i*xs]
		switch {
		case math.IsNaN(v), math.IsInf(v, 1):
			return is(-1)
		case math.IsInf(v, -1):
			return is(1)
		}
		scaled, _ := new(big.Float).SetFloat64(math.Round(v * 1e15)).Int(nil)
		scale := max(dv.scale, digits)
		return is(rescale(dv.value(&a, i*ds), dv.scale, scale).Cmp(rescale(scaled, digits, scale)))
	}, d, x), nil
}

// nullSafe makes IS NOT DISTINCT FROM out of an equality: null where a value is
// missing, so equal only if both are.
func nullSafe(f *frame, equal, l, r vector, not bool) vector {
	n, one := f.length(l, r)
	eq := equal.Array.(*array.Boolean)
	es, ls, rs := equal.step(), l.step(), r.step()
	out := make([]byte, bitutil.BytesForBits(int64(n)))
	for i := range n {
		same := l.IsNull(i*ls) && r.IsNull(i*rs)
		if eq.IsValid(i * es) {
			same = eq.Value(i * es)
		}
		bitutil.SetBitTo(out, i, same != not)
	}
	return f.bools(n, one, out, nil)
}
