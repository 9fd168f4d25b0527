package sqlexpr

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// interval is INTERVAL '1 month 2 days': months and days by the calendar, and a length
// of time.
type interval struct {
	at
	arrow.MonthDayNanoInterval
}

// intervalUnits are the units of intervals, as months, days or nanoseconds.
var intervalUnits = func() map[string]arrow.MonthDayNanoInterval {
	units := map[string]arrow.MonthDayNanoInterval{}
	for names, v := range map[string]arrow.MonthDayNanoInterval{
		"century centuries": {Months: 1200}, "decade": {Months: 120}, "year yr": {Months: 12}, "quarter": {Months: 3}, "month mon": {Months: 1},
		"week": {Days: 7}, "day": {Days: 1},
		"hour hr": {Nanoseconds: int64(time.Hour)}, "minute min": {Nanoseconds: int64(time.Minute)}, "second sec": {Nanoseconds: int64(time.Second)},
		"millisecond": {Nanoseconds: int64(time.Millisecond)}, "microsecond": {Nanoseconds: int64(time.Microsecond)}, "nanosecond": {Nanoseconds: 1},
	} {
		for _, name := range strings.Fields(names) {
			units[name], units[name+"s"] = v, v
		}
	}
	return units
}()

// isIntervalUnit says whether a word is a unit of an interval.
func isIntervalUnit(word string) bool {
	_, ok := intervalUnits[strings.ToLower(word)]
	return ok
}

// parseInterval reads numbers with their units, and hh:mm:ss. Months cannot be divided;
// a part of a day or a week is a length of time.
func parseInterval(text string) (v arrow.MonthDayNanoInterval, err error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return v, errors.New("an interval is expected, such as '1 day'")
	}
	months, days, nanos := new(big.Rat), new(big.Rat), new(big.Rat)
	for len(words) > 0 {
		if strings.Contains(words[0], ":") {
			n, err := clock(words[0])
			if err != nil {
				return v, err
			}
			nanos.Add(nanos, n)
			words = words[1:]
			continue
		}
		n, ok := intervalNumber(words[0])
		if !ok {
			return v, fmt.Errorf("%q is no number (an interval is written '1 day 12 hours')", words[0])
		}
		if len(words) < 2 {
			return v, fmt.Errorf("%s of what unit (write '%[1]s days', say)", words[0])
		}
		unit, ok := intervalUnits[strings.ToLower(words[1])]
		if !ok {
			return v, fmt.Errorf("%q is no unit of an interval; there are years, quarters, months, weeks, days, hours, minutes, seconds, milliseconds, microseconds, nanoseconds", words[1])
		}
		for _, part := range []struct {
			sum *big.Rat
			of  int64
		}{{months, int64(unit.Months)}, {days, int64(unit.Days)}, {nanos, unit.Nanoseconds}} {
			part.sum.Add(part.sum, new(big.Rat).Mul(n, new(big.Rat).SetInt64(part.of)))
		}
		words = words[2:]
	}
	whole := new(big.Rat).SetInt(new(big.Int).Quo(days.Num(), days.Denom()))
	nanos.Add(nanos, new(big.Rat).Mul(new(big.Rat).Sub(days, whole), new(big.Rat).SetInt64(int64(24*time.Hour))))
	switch {
	case !months.IsInt():
		return v, errors.New("a part of a month")
	case !nanos.IsInt():
		return v, errors.New("a part of a nanosecond")
	case !months.Num().IsInt64() || !whole.Num().IsInt64() || !nanos.Num().IsInt64(),
		outside(months.Num().Int64()), outside(whole.Num().Int64()), nanos.Num().Int64() == math.MinInt64:
		return v, errOverflow
	}
	return arrow.MonthDayNanoInterval{Months: int32(months.Num().Int64()), Days: int32(whole.Num().Int64()), Nanoseconds: nanos.Num().Int64()}, nil
}

func outside(n int64) bool { return n > math.MaxInt32 || n < -math.MaxInt32 }

// intervalNumber reads a decimal number. Exponents are left out: they could be of any size.
func intervalNumber(s string) (*big.Rat, bool) {
	if len(s) > 30 || strings.Trim(s, "+-.0123456789") != "" {
		return nil, false
	}
	return new(big.Rat).SetString(s)
}

// clock reads hh:mm or hh:mm:ss.
func clock(s string) (*big.Rat, error) {
	digits := strings.TrimLeft(s, "+-")
	sum := new(big.Rat)
	parts := strings.Split(digits, ":")
	for i, part := range parts {
		n, ok := intervalNumber(part)
		if !ok || i > 2 || n.Sign() < 0 || i > 0 && n.Cmp(new(big.Rat).SetInt64(60)) >= 0 || i < 2 && !n.IsInt() {
			return nil, fmt.Errorf("%q is no time (hh:mm:ss)", s)
		}
		unit := []time.Duration{time.Hour, time.Minute, time.Second}[i]
		sum.Add(sum, n.Mul(n, new(big.Rat).SetInt64(int64(unit))))
	}
	if strings.HasPrefix(s, "-") {
		sum.Neg(sum)
	}
	return sum, nil
}

// isInterval says whether a node is an interval.
func isInterval(n *node) bool { return n.typ.ID() == arrow.INTERVAL_MONTH_DAY_NANO }

// interval makes a constant of an interval: beside a duration one of its type.
func (b *binder) interval(e *interval, beside arrow.DataType) (*node, error) {
	if d, ok := beside.(*arrow.DurationType); ok {
		length := int64(e.Days)*int64(24*time.Hour) + e.Nanoseconds
		if e.Months != 0 || int64(e.Days) > math.MaxInt64/int64(48*time.Hour) || -int64(e.Days) > math.MaxInt64/int64(48*time.Hour) {
			return nil, b.src.errorf(e.span, "an interval with months, or of centuries, beside a length of time")
		}
		if unit := int64(d.Unit.Multiplier()); length%unit == 0 {
			return b.constant(e.span, d, length/unit)
		}
		return b.constant(e.span, arrow.FixedWidthTypes.Duration_ns, length)
	}
	builder := array.NewMonthDayNanoIntervalBuilder(allocator)
	defer builder.Release()
	builder.Append(e.MonthDayNanoInterval)
	return b.value(e.span, builder.NewArray()), nil
}

func (b *binder) constant(at span, t arrow.DataType, v int64) (*node, error) {
	a, err := constantOf(t, cell{i: v})
	if err != nil {
		return nil, b.src.errorf(at, "%w", err)
	}
	return b.value(at, a), nil
}

// addInterval binds x + i and x - i of a day or a time and an interval. Months and days
// go by the calendar of the time's zone; a day that a month does not have is its last
// one. The result has the type of x.
func (b *binder) addInterval(e *binary, x, i *node) (*node, error) {
	v, err := i.eval(constantFrame())
	if err != nil {
		return nil, err
	}
	by := v.Array.(*array.MonthDayNanoInterval).Value(0)
	if e.op == "-" {
		by = arrow.MonthDayNanoInterval{Months: -by.Months, Days: -by.Days, Nanoseconds: -by.Nanoseconds}
	}
	var add func(int64) (int64, error)
	switch t := x.typ.(type) {
	case *arrow.Date32Type, *arrow.Date64Type:
		if by.Nanoseconds != 0 {
			return nil, b.src.errorf(e.span, "an interval with hours beside a date: cast the date to a timestamp, or write days")
		}
		add = addToDate(x.typ.ID() == arrow.DATE64, by)
	case *arrow.TimestampType:
		if by.Nanoseconds%int64(t.Unit.Multiplier()) != 0 {
			return nil, b.src.errorf(e.span, "an interval that %s cannot tell: cast to timestamp(9), say", typeText(t))
		}
		zone, err := zoneOf(t)
		if err != nil {
			return nil, b.src.errorf(e.span, "%w", err)
		}
		if zone == nil {
			zone = time.UTC
		}
		add = addToTimestamp(t.Unit, zone, by)
	}
	return b.make(e.span, x.typ, true, func(f *frame, vs []vector) (vector, error) {
		n, one := f.length(vs...)
		read, out := cellReader(vs[0].Array), newCellBuilder(x.typ)
		defer out.Release()
		for i := range n {
			if vs[0].IsNull(i) {
				out.AppendNull()
				continue
			}
			v, err := add(read(i).i)
			if err == nil {
				err = out.add(cell{i: v})
			}
			if err != nil {
				return vector{}, err
			}
		}
		return vector{f.own(out.NewArray()), one}, nil
	}, x), nil
}

func addToDate(millis bool, by arrow.MonthDayNanoInterval) func(int64) (int64, error) {
	unit := int64(1)
	if millis {
		unit = millisADay
	}
	return func(v int64) (int64, error) {
		day := time.Unix(floorDiv(v, unit)*secondsADay, 0).UTC()
		sum := addCalendar(day, by).Unix() / secondsADay
		if outside(sum) {
			return 0, errOverflow
		}
		return sum * unit, nil
	}
}

func addToTimestamp(unit arrow.TimeUnit, zone *time.Location, by arrow.MonthDayNanoInterval) func(int64) (int64, error) {
	nanos := by.Nanoseconds / int64(unit.Multiplier())
	return func(v int64) (int64, error) {
		if by.Months != 0 || by.Days != 0 {
			at := instant(v, unit).In(zone)
			var err error
			if v, err = timestampValue(addCalendar(at, by), unit); err != nil {
				return 0, err
			}
		}
		sum := v + nanos
		if (sum > v) != (nanos > 0) && nanos != 0 {
			return 0, errOverflow
		}
		return sum, nil
	}
}

// addCalendar adds months, and then days.
func addCalendar(t time.Time, by arrow.MonthDayNanoInterval) time.Time {
	y, m, d := t.Date()
	months := int64(y)*12 + int64(m) - 1 + int64(by.Months)
	year, month := floorDiv(months, 12), time.Month(months-floorDiv(months, 12)*12+1)
	last := time.Date(int(year), month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return time.Date(int(year), month, min(d, last)+int(by.Days), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), t.Location())
}
