package sqlexpr

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// conversion turns a value of one type into one of another.
type conversion func(cell) (cell, error)

// castVector casts to a type. A value that cannot be cast is an error, or null if try
// is set.
func castVector(f *frame, v vector, to arrow.DataType, try bool) (vector, error) {
	from := v.DataType()
	switch {
	case arrow.TypeEqual(from, to):
		return v, nil
	case familyOf(from) == famNull:
		return f.nullsOf(to), nil
	case widens(from, to):
		return widen(f, v, to), nil // cannot fail, and is wanted often
	}
	convert, err := conversionOf(from, to)
	if err != nil {
		return vector{}, err
	}
	n, one := f.length(v)
	valid, _ := f.validity(n, v)
	read, b := cellReader(v.Array), newCellBuilder(to)
	defer b.Release()
	b.Reserve(n)
	for i := range n {
		if valid != nil && !bitutil.BitIsSet(valid, i) {
			b.AppendNull()
			continue
		}
		c, err := convert(read(i))
		if err == nil {
			err = b.add(c)
		}
		switch {
		case err != nil && try:
			b.AppendNull()
		case err != nil:
			return vector{}, err
		}
	}
	return vector{f.own(b.NewArray()), one}, nil
}

// conversionOf finds how to cast from one type to another.
func conversionOf(from, to arrow.DataType) (conversion, error) {
	var c conversion
	switch familyOf(to) {
	case famBool:
		c = toBool(from)
	case famInt, famUint:
		c = toInteger(from, to)
	case famFloat:
		c = toFloat(from)
	case famDecimal:
		c = toDecimal(from, to)
	case famString:
		c = toString(from)
	case famBinary:
		c = toBinary(from, to)
	case famDate:
		c = toDate(from, to)
	case famTimestamp:
		c = toTimestamp(from, to.(*arrow.TimestampType))
	case famTime, famDuration:
		c = toUnits(from, to)
	}
	if c == nil {
		return nil, fmt.Errorf("no cast from %s to %s", from, to)
	}
	return c, nil
}

func toBool(from arrow.DataType) conversion {
	truth := func(b bool) (cell, error) { return cell{i: int64(ordinal(b))}, nil }
	switch familyOf(from) {
	case famInt:
		return func(c cell) (cell, error) { return truth(c.i != 0) }
	case famUint:
		return func(c cell) (cell, error) { return truth(c.u != 0) }
	case famFloat:
		return func(c cell) (cell, error) { return truth(c.f != 0) }
	case famString:
		return func(c cell) (cell, error) {
			switch strings.ToLower(strings.TrimSpace(c.s)) {
			case "t", "true", "y", "yes", "on", "1":
				return truth(true)
			case "f", "false", "n", "no", "off", "0":
				return truth(false)
			}
			return cell{}, fmt.Errorf("%q is neither true nor false", c.s)
		}
	}
	return nil
}

// toInteger cuts fractions off.
func toInteger(from, to arrow.DataType) conversion {
	check := rangeOf(to)
	switch familyOf(from) {
	case famBool, famInt:
		return func(c cell) (cell, error) { return check(big.NewInt(c.i)) }
	case famUint:
		return func(c cell) (cell, error) { return check(new(big.Int).SetUint64(c.u)) }
	case famFloat:
		return func(c cell) (cell, error) {
			if math.IsNaN(c.f) || math.IsInf(c.f, 0) {
				return cell{}, fmt.Errorf("%v is no %s", c.f, to)
			}
			v, _ := big.NewFloat(c.f).Int(nil)
			return check(v)
		}
	case famDecimal:
		_, scale, _ := decimalType(from)
		unit := pow10(scale)
		return func(c cell) (cell, error) { return check(c.d.Quo(c.d, unit)) }
	case famString:
		return func(c cell) (cell, error) {
			v, ok := new(big.Int).SetString(c.s, 10)
			if !ok || strings.Contains(c.s, "_") {
				return cell{}, fmt.Errorf("%q is no %s", c.s, to)
			}
			return check(v)
		}
	case famDate, famTimestamp, famTime, famDuration:
		if bits(to) < bits(from) {
			return nil
		}
		return func(c cell) (cell, error) { return check(big.NewInt(c.i)) }
	}
	return nil
}

// rangeOf checks that a number is one of an integer type.
func rangeOf(t arrow.DataType) func(*big.Int) (cell, error) {
	w := uint(bits(t))
	if familyOf(t) == famUint {
		return func(v *big.Int) (cell, error) {
			if v.Sign() < 0 || v.BitLen() > int(w) {
				return cell{}, fmt.Errorf("%s does not fit %s", v, t)
			}
			return cell{u: v.Uint64()}, nil
		}
	}
	return func(v *big.Int) (cell, error) {
		if !v.IsInt64() || v.Int64()>>(w-1) != 0 && v.Int64()>>(w-1) != -1 {
			return cell{}, fmt.Errorf("%s does not fit %s", v, t)
		}
		return cell{i: v.Int64()}, nil
	}
}

func toFloat(from arrow.DataType) conversion {
	switch familyOf(from) {
	case famBool:
		return func(c cell) (cell, error) { return cell{f: float64(c.i)}, nil }
	case famDecimal:
		_, scale, _ := decimalType(from)
		return func(c cell) (cell, error) { return cell{f: decimalFloat(c.d, scale)}, nil }
	case famString:
		return func(c cell) (cell, error) {
			v, err := strconv.ParseFloat(c.s, 64)
			if err != nil && !errors.Is(err, strconv.ErrRange) || strings.ContainsAny(c.s, "_xX") {
				return cell{}, fmt.Errorf("%q is not a number", c.s)
			}
			if math.IsNaN(v) {
				v = math.Float64frombits(0x7ff8 << 48) // as the engine has it; Go's has a bit more
			}
			return cell{f: v}, nil
		}
	}
	return nil
}

// toDecimal rounds half away from zero.
func toDecimal(from, to arrow.DataType) conversion {
	_, scale, _ := decimalType(to)
	up := pow10(scale)
	switch familyOf(from) {
	case famInt:
		return func(c cell) (cell, error) { return cell{d: times(big.NewInt(c.i), up)}, nil }
	case famUint:
		return func(c cell) (cell, error) { return cell{d: times(new(big.Int).SetUint64(c.u), up)}, nil }
	case famFloat:
		return func(c cell) (cell, error) {
			d, err := floatDecimal(c.f, scale)
			return cell{d: d}, err
		}
	case famDecimal:
		_, was, _ := decimalType(from)
		return func(c cell) (cell, error) { return cell{d: rescale(c.d, was, scale)}, nil }
	case famString:
		return func(c cell) (cell, error) {
			if c.s == "" {
				return cell{d: new(big.Int)}, nil // so says the engine
			}
			d, was, err := parseDecimal(c.s)
			if err != nil {
				return cell{}, err
			}
			return cell{d: rescale(d, was, scale)}, nil
		}
	}
	return nil
}

func times(v, unit *big.Int) *big.Int { return v.Mul(v, unit) }

func toString(from arrow.DataType) conversion {
	str := func(of func(c cell) string) conversion {
		return func(c cell) (cell, error) { return cell{s: of(c)}, nil }
	}
	switch t := from.(type) {
	case *arrow.BooleanType:
		return str(func(c cell) string { return strconv.FormatBool(c.i != 0) })
	case *arrow.Date32Type:
		return str(func(c cell) string { return time.Unix(c.i*secondsADay, 0).UTC().Format("2006-01-02") })
	case *arrow.Date64Type:
		return str(func(c cell) string { return formatTime(instant(c.i, arrow.Millisecond), nil) })
	case *arrow.TimestampType:
		loc, err := zoneOf(t)
		if err != nil {
			return func(cell) (cell, error) { return cell{}, err }
		}
		return str(func(c cell) string { return formatTime(instant(c.i, t.Unit), loc) })
	case arrow.TemporalWithUnit:
		if familyOf(from) == famTime {
			return str(func(c cell) string {
				at := instant(c.i, t.TimeUnit())
				return at.Format("15:04:05" + fractionLayout(at.Nanosecond()))
			})
		}
	}
	switch familyOf(from) {
	case famInt:
		return str(func(c cell) string { return strconv.FormatInt(c.i, 10) })
	case famUint:
		return str(func(c cell) string { return strconv.FormatUint(c.u, 10) })
	case famFloat:
		return str(func(c cell) string { return formatFloat(c.f, bits(from)) })
	case famDecimal:
		_, scale, _ := decimalType(from)
		return str(func(c cell) string { return formatDecimal(c.d, scale) })
	case famString:
		return func(c cell) (cell, error) { return c, nil }
	case famBinary:
		return func(c cell) (cell, error) {
			if !utf8.ValidString(c.s) {
				return cell{}, errors.New("bytes that are not UTF-8")
			}
			return c, nil
		}
	}
	return nil
}

// formatFloat writes the shortest digits that mean the number, always with a point or
// an exponent, as Arrow does.
func formatFloat(v float64, width int) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "inf"
	case math.IsInf(v, -1):
		return "-inf"
	}
	most := 1e16
	if width == 32 {
		most = 1e13
	}
	if a := math.Abs(v); v != 0 && (a >= most || a < 1e-5) {
		s := strconv.FormatFloat(v, 'e', -1, width)
		mantissa, exp, _ := strings.Cut(s, "e")
		n, _ := strconv.Atoi(exp)
		return mantissa + "e" + strconv.Itoa(n)
	}
	s := strconv.FormatFloat(v, 'f', -1, width)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func toBinary(from, to arrow.DataType) conversion {
	if f := familyOf(from); f != famString && f != famBinary {
		return nil
	}
	if t, ok := to.(*arrow.FixedSizeBinaryType); ok {
		return func(c cell) (cell, error) {
			if len(c.s) != t.ByteWidth {
				return cell{}, fmt.Errorf("%d bytes do not fit %s", len(c.s), t)
			}
			return c, nil
		}
	}
	return func(c cell) (cell, error) { return c, nil }
}

func toDate(from, to arrow.DataType) conversion {
	var days func(cell) (int64, error)
	switch t := from.(type) {
	case *arrow.Date32Type:
		days = func(c cell) (int64, error) { return c.i, nil }
	case *arrow.Date64Type:
		days = func(c cell) (int64, error) { return floorDiv(c.i, millisADay), nil }
	case *arrow.TimestampType:
		loc, err := zoneOf(t)
		if err != nil {
			return func(cell) (cell, error) { return cell{}, err }
		}
		days = func(c cell) (int64, error) {
			at := instant(c.i, t.Unit)
			if loc != nil {
				_, offset := at.In(loc).Zone()
				at = at.Add(time.Duration(offset) * time.Second)
			}
			return floorDiv(at.Unix(), secondsADay), nil
		}
	case *arrow.Int32Type:
		days = func(c cell) (int64, error) { return c.i, nil }
	default:
		if familyOf(from) != famString {
			return nil
		}
		days = func(c cell) (int64, error) { return parseDate(c.s) }
	}
	per := int64(1)
	if to.ID() == arrow.DATE64 {
		per = millisADay
	}
	return func(c cell) (cell, error) {
		d, err := days(c)
		if err == nil && (d > math.MaxInt32 || d < math.MinInt32) {
			err = fmt.Errorf("day %d does not fit %s", d, to)
		}
		return cell{i: d * per}, err
	}
}

func toTimestamp(from arrow.DataType, to *arrow.TimestampType) conversion {
	loc, err := zoneOf(to)
	if err != nil {
		return func(cell) (cell, error) { return cell{}, err }
	}
	// A time without a zone is one in the zone of the type.
	located := func(v int64, err error) (cell, error) {
		if err != nil || loc == nil || isUTC(to.TimeZone) {
			return cell{i: v}, err
		}
		at := instant(v, to.Unit)
		v, err = timestampValue(time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), loc), to.Unit)
		return cell{i: v}, err
	}
	switch t := from.(type) {
	case *arrow.Date32Type:
		return func(c cell) (cell, error) { return located(changeUnit(c.i*secondsADay, arrow.Second, to.Unit)) }
	case *arrow.Date64Type:
		return func(c cell) (cell, error) { return located(changeUnit(c.i, arrow.Millisecond, to.Unit)) }
	case *arrow.TimestampType:
		return func(c cell) (cell, error) {
			v, err := changeUnit(c.i, t.Unit, to.Unit)
			if t.TimeZone != "" {
				return cell{i: v}, err
			}
			return located(v, err)
		}
	}
	switch familyOf(from) {
	case famInt:
		return func(c cell) (cell, error) { return c, nil }
	case famString:
		return func(c cell) (cell, error) {
			v, err := parseTimestamp(c.s, to)
			return cell{i: v}, err
		}
	}
	return nil
}

// toUnits converts between times of day, and between durations, of several units.
func toUnits(from, to arrow.DataType) conversion {
	f, fromUnit := from.(arrow.TemporalWithUnit)
	t, toUnit := to.(arrow.TemporalWithUnit)
	switch {
	case fromUnit && toUnit && familyOf(from) == familyOf(to):
		return func(c cell) (cell, error) {
			v, err := changeUnit(c.i, f.TimeUnit(), t.TimeUnit())
			return cell{i: v}, err
		}
	case familyOf(to) == famDuration && from.ID() == arrow.INT64:
		return func(c cell) (cell, error) { return c, nil }
	case familyOf(to) == famTime && familyOf(from) == famString:
		return func(c cell) (cell, error) {
			at, err := time.Parse("15:04:05", c.s)
			if err != nil {
				return cell{}, fmt.Errorf("%q is not a time of day (write it 15:04:05)", c.s)
			}
			v, err := timestampValue(at.AddDate(1970, 0, 0), t.TimeUnit())
			return cell{i: v}, err
		}
	}
	return nil
}
