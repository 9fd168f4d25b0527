package sqlexpr

import (
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

var (
	errDivideByZero = errors.New("division by zero")
	errOverflow     = errors.New("the result does not fit the type")
)

// arithmeticVectors computes l op r of two vectors of one type, or of two decimals.
// Whole numbers wrap around, as in DataFusion; only division says that its result
// does not fit. Division of floats by zero is infinite or NaN.
func arithmeticVectors(f *frame, op string, l, r vector, typ arrow.DataType) (vector, error) {
	switch typ.ID() {
	case arrow.INT8:
		return integers[int8](f, op, l, r, typ)
	case arrow.INT16:
		return integers[int16](f, op, l, r, typ)
	case arrow.INT32:
		return integers[int32](f, op, l, r, typ)
	case arrow.INT64:
		return integers[int64](f, op, l, r, typ)
	case arrow.UINT8:
		return integers[uint8](f, op, l, r, typ)
	case arrow.UINT16:
		return integers[uint16](f, op, l, r, typ)
	case arrow.UINT32:
		return integers[uint32](f, op, l, r, typ)
	case arrow.UINT64:
		return integers[uint64](f, op, l, r, typ)
	case arrow.FLOAT32:
		return floats[float32](f, op, l, r, typ)
	case arrow.FLOAT64:
		return floats[float64](f, op, l, r, typ)
	case arrow.DECIMAL128, arrow.DECIMAL256:
		return decimalArithmetic(f, op, l, r, typ)
	}
	return f.nullsOf(typ), nil
}

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
	arrow.FixedWidthType
}

func integers[T integer](f *frame, op string, l, r vector, typ arrow.DataType) (vector, error) {
	var zero T
	lowest := T(1) << (bits(typ) - 1) // the lowest signed value, which has no opposite
	minusOne := zero - 1
	signed := minusOne < zero
	switch op {
	case "+":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) { return a + b, nil })
	case "-":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) { return a - b, nil })
	case "*":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) { return a * b, nil })
	case "<<":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) { return a << (uint64(b) % uint64(bits(typ))), nil })
	case ">>":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) { return a >> (uint64(b) % uint64(bits(typ))), nil })
	case "/":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) {
			switch {
			case b == 0:
				return 0, errDivideByZero
			case signed && b == minusOne && a == lowest:
				return 0, errOverflow
			}
			return a / b, nil
		})
	case "%":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) {
			switch {
			case b == 0:
				return 0, errDivideByZero
			case signed && b == minusOne:
				return 0, nil
			}
			return a % b, nil
		})
	}
	return vector{}, noOperator(op, typ)
}

// noOperator says that an operator is not one of the type. Statements are bound by
// what operators there are, so that only a mistake here leads to it.
func noOperator(op string, typ arrow.DataType) error {
	return fmt.Errorf("values of type %s have no operator %s", typ, op)
}

func floats[T interface {
	float32 | float64
	arrow.FixedWidthType
}](f *frame, op string, l, r vector, typ arrow.DataType) (vector, error) {
	switch op {
	case "+":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) { return a + b, nil })
	case "-":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) { return a - b, nil })
	case "*":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) { return a * b, nil })
	case "/":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) { return a / b, nil })
	case "%":
		return eachNumber(f, l, r, typ, func(a, b T) (T, error) { return T(math.Mod(float64(a), float64(b))), nil })
	}
	return vector{}, noOperator(op, typ)
}

// eachNumber applies a function to the rows where both vectors have a value.
func eachNumber[T arrow.FixedWidthType](f *frame, l, r vector, typ arrow.DataType, of func(a, b T) (T, error)) (vector, error) {
	n, one := f.length(l, r)
	valid, nulls := f.validity(n, l, r)
	lv, rv := values[T](l.Array), values[T](r.Array)
	ls, rs := l.step(), r.step()
	out := make([]T, n)
	for i := range n {
		if valid != nil && !bitutil.BitIsSet(valid, i) {
			continue
		}
		v, err := of(lv[i*ls], rv[i*rs])
		if err != nil {
			return vector{}, err
		}
		out[i] = v
	}
	return numbers(f, typ, one, out, valid, nulls), nil
}

// negate is the opposite of a number, which wraps around.
func negate(f *frame, v vector) (vector, error) {
	switch t := v.DataType(); t.ID() {
	case arrow.INT8:
		return eachNumber(f, v, v, t, func(a, _ int8) (int8, error) { return -a, nil })
	case arrow.INT16:
		return eachNumber(f, v, v, t, func(a, _ int16) (int16, error) { return -a, nil })
	case arrow.INT32:
		return eachNumber(f, v, v, t, func(a, _ int32) (int32, error) { return -a, nil })
	case arrow.INT64:
		return eachNumber(f, v, v, t, func(a, _ int64) (int64, error) { return -a, nil })
	case arrow.FLOAT32:
		return eachNumber(f, v, v, t, func(a, _ float32) (float32, error) { return -a, nil })
	case arrow.FLOAT64:
		return eachNumber(f, v, v, t, func(a, _ float64) (float64, error) { return -a, nil })
	case arrow.DECIMAL128, arrow.DECIMAL256:
		return eachDecimal(f, v, t, func(x *big.Int) (*big.Int, error) { return x.Neg(x), nil })
	}
	return f.nullsOf(v.DataType()), nil
}

// absolute is the magnitude of a number. Unlike the other operations it says when
// the result does not fit.
func absolute(f *frame, v vector) (vector, error) {
	switch t := v.DataType(); t.ID() {
	case arrow.INT8:
		return eachNumber(f, v, v, t, func(a, _ int8) (int8, error) { return magnitude(a) })
	case arrow.INT16:
		return eachNumber(f, v, v, t, func(a, _ int16) (int16, error) { return magnitude(a) })
	case arrow.INT32:
		return eachNumber(f, v, v, t, func(a, _ int32) (int32, error) { return magnitude(a) })
	case arrow.INT64:
		return eachNumber(f, v, v, t, func(a, _ int64) (int64, error) { return magnitude(a) })
	case arrow.FLOAT32:
		return eachNumber(f, v, v, t, func(a, _ float32) (float32, error) { return float32(math.Abs(float64(a))), nil })
	case arrow.FLOAT64:
		return eachNumber(f, v, v, t, func(a, _ float64) (float64, error) { return math.Abs(a), nil })
	case arrow.DECIMAL128, arrow.DECIMAL256:
		return eachDecimal(f, v, t, func(x *big.Int) (*big.Int, error) { return x.Abs(x), nil })
	}
	return v, nil // unsigned, or null
}

func magnitude[T int8 | int16 | int32 | int64](a T) (T, error) {
	if a < 0 {
		if a = -a; a < 0 {
			return 0, errOverflow
		}
	}
	return a, nil
}

// eachDecimal makes decimals of a type by a function of those of a vector.
func eachDecimal(f *frame, v vector, typ arrow.DataType, of func(*big.Int) (*big.Int, error)) (vector, error) {
	n, one := f.length(v)
	in, b := decimalsOf(v.Array), newDecimalBuilder(typ)
	var x big.Int
	for i := range n {
		if v.IsNull(i) {
			b.appendNull()
			continue
		}
		out, err := of(in.value(&x, i))
		if err == nil {
			err = b.append(out)
		}
		if err != nil {
			b.finish().Release()
			return vector{}, err
		}
	}
	return vector{f.own(b.finish()), one}, nil
}

// decimalResult is the type of l op r, by the rules of Arrow's kernels.
func decimalResult(op string, l, r arrow.DataType) arrow.DataType {
	p1, s1, w1 := decimalType(l)
	p2, s2, w2 := decimalType(r)
	wide := w1 || w2
	switch op {
	case "+", "-":
		s := max(s1, s2)
		return newDecimalType(s+max(p1-s1, p2-s2)+1, s, wide)
	case "*":
		return newDecimalType(p1+p2+1, s1+s2, wide)
	case "/":
		limit := int32(maxPrecision128)
		if wide {
			limit = maxPrecision256
		}
		s := min(s1+4, limit)
		return newDecimalType(s-s1+s2+p1, s, wide)
	}
	s := max(s1, s2)
	return newDecimalType(s+min(p1-s1, p2-s2), s, wide)
}

func decimalArithmetic(f *frame, op string, l, r vector, typ arrow.DataType) (vector, error) {
	n, one := f.length(l, r)
	valid, _ := f.validity(n, l, r)
	lv, rv, b := decimalsOf(l.Array), decimalsOf(r.Array), newDecimalBuilder(typ)
	_, scale, _ := decimalType(typ)
	ls, rs := l.step(), r.step()
	up, upL, upR := pow10(scale-lv.scale+rv.scale), pow10(scale-lv.scale), pow10(scale-rv.scale)
	var x, y big.Int
	of := func(i int) error {
		a, c := lv.value(&x, i*ls), rv.value(&y, i*rs)
		switch op {
		case "*":
			return b.append(a.Mul(a, c))
		case "+":
			return b.append(a.Add(a.Mul(a, upL), c.Mul(c, upR)))
		case "-":
			return b.append(a.Sub(a.Mul(a, upL), c.Mul(c, upR)))
		case "/", "%":
			if c.Sign() == 0 {
				return errDivideByZero
			}
			if op == "/" {
				return b.append(a.Quo(a.Mul(a, up), c))
			}
			return b.append(a.Rem(a.Mul(a, upL), c.Mul(c, upR)))
		}
		return noOperator(op, typ)
	}
	for i := range n {
		if valid != nil && !bitutil.BitIsSet(valid, i) {
			b.appendNull()
			continue
		}
		if err := of(i); err != nil {
			b.finish().Release()
			return vector{}, err
		}
	}
	return vector{f.own(b.finish()), one}, nil
}
