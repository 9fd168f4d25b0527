package sqlexpr

import (
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// decimals are the values of an array of decimals as whole numbers of its last digit.
type decimals struct {
	narrow *array.Decimal128
	wide   *array.Decimal256
	scale  int32
}

func decimalsOf(a arrow.Array) decimals {
	switch a := a.(type) {
	case *array.Decimal128:
		return decimals{narrow: a, scale: a.DataType().(*arrow.Decimal128Type).Scale}
	case *array.Decimal256:
		return decimals{wide: a, scale: a.DataType().(*arrow.Decimal256Type).Scale}
	}
	return decimals{}
}

// value is the i-th value; it may be written to into.
func (d decimals) value(into *big.Int, i int) *big.Int {
	if d.narrow != nil {
		v := d.narrow.Value(i)
		into.SetInt64(v.HighBits())
		into.Lsh(into, 64)
		return into.Add(into, new(big.Int).SetUint64(v.LowBits()))
	}
	return d.wide.Value(i).BigInt()
}

// decimalType is precision, scale and width of a decimal type.
func decimalType(t arrow.DataType) (precision, scale int32, wide bool) {
	switch t := t.(type) {
	case *arrow.Decimal128Type:
		return t.Precision, t.Scale, false
	case *arrow.Decimal256Type:
		return t.Precision, t.Scale, true
	}
	return 0, 0, false
}

func newDecimalType(precision, scale int32, wide bool) arrow.DataType {
	if wide {
		return &arrow.Decimal256Type{Precision: min(precision, maxPrecision256), Scale: min(scale, maxPrecision256)}
	}
	return &arrow.Decimal128Type{Precision: min(precision, maxPrecision128), Scale: min(scale, maxPrecision128)}
}

// pow10 is ten to the power of |n|.
func pow10(n int32) *big.Int {
	if n < 0 {
		n = -n
	}
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// rescale changes the scale of a value, and rounds half away from zero.
func rescale(v *big.Int, from, to int32) *big.Int {
	switch {
	case to > from:
		return v.Mul(v, pow10(to-from))
	case to < from:
		unit := pow10(from - to)
		half := new(big.Int).Rsh(unit, 1)
		if v.Sign() < 0 {
			half.Neg(half)
		}
		return v.Quo(v.Add(v, half), unit)
	}
	return v
}

// fitsDecimal checks that a value has no more digits than a decimal type.
func fitsDecimal(v *big.Int, t arrow.DataType) error {
	precision, scale, _ := decimalType(t)
	if v.CmpAbs(pow10(precision)) >= 0 {
		return fmt.Errorf("%s is too large for %s", formatDecimal(v, scale), t)
	}
	return nil
}

// decimalBuilder builds decimals of either width.
type decimalBuilder struct {
	narrow *array.Decimal128Builder
	wide   *array.Decimal256Builder
	typ    arrow.DataType
}

func newDecimalBuilder(t arrow.DataType) decimalBuilder {
	if wide, ok := t.(*arrow.Decimal256Type); ok {
		return decimalBuilder{wide: array.NewDecimal256Builder(allocator, wide), typ: t}
	}
	return decimalBuilder{narrow: array.NewDecimal128Builder(allocator, t.(*arrow.Decimal128Type)), typ: t}
}

// append adds a value, which is an error if it has more than the digits that the
// type holds.
func (b decimalBuilder) append(v *big.Int) error {
	if err := fitsDecimal(v, b.typ); err != nil {
		return err
	}
	if b.wide != nil {
		b.wide.Append(decimal256.FromBigInt(v))
	} else {
		b.narrow.Append(decimal128.FromBigInt(v))
	}
	return nil
}

func (b decimalBuilder) appendNull() {
	if b.wide != nil {
		b.wide.AppendNull()
	} else {
		b.narrow.AppendNull()
	}
}

func (b decimalBuilder) finish() arrow.Array {
	if b.wide != nil {
		defer b.wide.Release()
		return b.wide.NewArray()
	}
	defer b.narrow.Release()
	return b.narrow.NewArray()
}

// formatDecimal writes a value with its fraction in full.
func formatDecimal(v *big.Int, scale int32) string {
	s := new(big.Int).Abs(v).String()
	if scale > 0 {
		if pad := int(scale) + 1 - len(s); pad > 0 {
			s = strings.Repeat("0", pad) + s
		}
		s = s[:len(s)-int(scale)] + "." + s[len(s)-int(scale):]
	} else if scale < 0 && s != "0" {
		s += strings.Repeat("0", int(-scale))
	}
	if v.Sign() < 0 {
		s = "-" + s
	}
	return s
}

// parseDecimal reads a number with or without fraction and exponent, as a value of
// the least scale that holds it.
func parseDecimal(s string) (v *big.Int, scale int32, err error) {
	mantissa, exp := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if _, err := fmt.Sscanf(s[i+1:], "%d", &exp); err != nil || exp > 100 || exp < -100 {
			return nil, 0, fmt.Errorf("%q is not a decimal number", s)
		}
		mantissa = s[:i]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole, "+-") + fraction
	if len(digits) == 0 || len(digits) > 200 || strings.Trim(digits, "0123456789") != "" || len(whole)-len(strings.TrimLeft(whole, "+-")) > 1 {
		return nil, 0, fmt.Errorf("%q is not a decimal number", s)
	}
	v, _ = new(big.Int).SetString(digits, 10)
	if strings.HasPrefix(whole, "-") {
		v.Neg(v)
	}
	scale = int32(len(fraction) - exp)
	if scale < 0 {
		v.Mul(v, pow10(scale))
		scale = 0
	}
	return v, scale, nil
}

// decimalFloat is the float nearest to a decimal.
func decimalFloat(v *big.Int, scale int32) float64 {
	f, _ := new(big.Float).SetInt(v).Float64()
	return f / math.Pow10(int(scale))
}

// floatDecimal is a float as a decimal of a scale, rounded.
func floatDecimal(x float64, scale int32) (*big.Int, error) {
	scaled := math.Round(x * math.Pow10(int(scale)))
	if math.IsNaN(scaled) || math.IsInf(scaled, 0) {
		return nil, fmt.Errorf("%v is not a decimal number", x)
	}
	v, _ := new(big.Float).SetFloat64(scaled).Int(nil)
	return v, nil
}
