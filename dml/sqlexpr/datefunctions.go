package sqlexpr

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

func dateFunctions() []*Function {
	part := func(samples ...string) Param { return param("part", KindText).constant().like(samples...) }
	moment := param("x", KindDate|KindTimestamp)
	whole := param("n", KindWhole)
	instants := param("x", KindText|KindWhole|KindTimestamp).like("'2020-01-01'", "'2020-01-01 12:00:00.5'", "'x'", "i32", "n", "i8", "ts", "ts_s", "ts_ns")
	fns := []*Function{
		{Name: "now", Aliases: []string{"current_timestamp"}, Result: "timestamp(9)", Doc: "when the statement was read, in UTC: one value for all its expressions, rows and attempts", Changing: true, bind: (*binder).now},
		{Name: "current_date", Aliases: []string{"today"}, Result: "date", Doc: "the day of `now()`, in UTC", Changing: true, bind: (*binder).today},
		{Name: "current_time", Result: "time", Doc: "the time of day of `now()`, in UTC", Changing: true, bind: (*binder).timeNow},
		{Name: "to_date", Params: []Param{param("x", KindText|KindWhole|KindDate|KindTimestamp).like("'2020-01-01'", "'20200229'", "'x'", "i8", "n", "d32", "ts", "ts_s")}, Result: "date", Doc: "the day of a text, a timestamp or a number of days since 1970", bind: casting(arrow.FixedWidthTypes.Date32)},
		{Name: "to_timestamp", Params: []Param{param("x", KindText|KindWhole|KindFloat|KindTimestamp).like("'2020-01-01'", "'2020-01-01T12:00:00Z'", "'x'", "i32", "n", "f64", "ts", "ts_s")}, Result: "timestamp(9)",
			Doc: "of a text, or a number of seconds since 1970", bind: (*binder).toTimestamp},
	}
	for _, u := range []struct {
		name string
		unit arrow.TimeUnit
	}{{"seconds", arrow.Second}, {"millis", arrow.Millisecond}, {"micros", arrow.Microsecond}, {"nanos", arrow.Nanosecond}} {
		fns = append(fns, &Function{Name: "to_timestamp_" + u.name, Params: []Param{instants}, Result: fmt.Sprintf("timestamp(%d)", 3*int(u.unit)), Doc: "of a text, or a number of " + u.name + " since 1970", bind: casting(timestampOf(u.unit))})
	}
	parts := []string{"'year'", "'isoyear'", "'quarter'", "'month'", "'week'", "'day'", "'hour'", "'minute'", "'second'", "'millisecond'", "'microsecond'", "'nanosecond'", "'dow'", "'isodow'", "'doy'", "'epoch'"}
	return append(fns, []*Function{
		{Name: "from_unixtime", Params: []Param{whole}, Result: "timestamp(0)", Doc: "of a number of seconds since 1970", bind: casting(timestampOf(arrow.Second))},
		{Name: "date_format", Aliases: []string{"to_char"}, Params: []Param{moment, param("format", KindText).constant().like("'%Y-%m-%d'", "'%H:%M:%S'", "'%d.%m.%y %j %a %A %b %B %%'", "'%e|%k|%I|%l|%p|%P'", "'%F %T %D %R'", "'%u %w %C %h %n%t'", "'%G %V %g %U %W'", "'%s'", "'%f'", "'%.f'", "'%.3f %3f'", "'%-d %_d %0d'", "'x'")}, Result: "text",
			Doc: "written by a pattern of strftime, as %Y-%m-%d %H:%M:%S", bind: (*binder).dateFormat},
		{Name: "date_part", Aliases: []string{"datepart"}, Params: []Param{part(parts...), param("x", KindDate|KindTimestamp|KindTime)}, Result: "int; double of epoch, bigint of nanoseconds",
			Doc: "a part: " + strings.ReplaceAll(strings.Join(parts, " "), "'", "`") + " (seconds since 1970, or midnight); milliseconds and less have the seconds in them", bind: (*binder).datePart},
		{Name: "date_trunc", Aliases: []string{"datetrunc"}, Params: []Param{part("'year'", "'quarter'", "'month'", "'week'", "'day'", "'hour'", "'minute'", "'second'", "'millisecond'", "'microsecond'"), moment}, Result: "timestamp",
			Doc: "with what is smaller than the part set to its beginning", bind: (*binder).dateTrunc},
	}...)
}

func (b *binder) now(e *call, _ []*node) (*node, error) {
	return b.moment(e, timestampOf(arrow.Nanosecond), b.src.now.UnixNano())
}

func (b *binder) today(e *call, _ []*node) (*node, error) {
	return b.moment(e, arrow.FixedWidthTypes.Date32, floorDiv(b.src.now.Unix(), secondsADay))
}

func (b *binder) timeNow(e *call, _ []*node) (*node, error) {
	ns := b.src.now.UnixNano()
	return b.moment(e, arrow.FixedWidthTypes.Time64ns, ns-floorDiv(ns, secondsADay*1e9)*secondsADay*1e9)
}

func (b *binder) moment(e *call, t arrow.DataType, v int64) (*node, error) {
	a, err := constantOf(t, cell{i: v})
	if err != nil {
		return nil, err
	}
	return b.value(e.span, a), nil
}

// casting is a function that means a cast; whole numbers are widened before.
func casting(t arrow.DataType) func(b *binder, e *call, args []*node) (*node, error) {
	return func(b *binder, e *call, args []*node) (*node, error) {
		x := args[0]
		if isInteger(x.typ) {
			var wide arrow.DataType = arrow.PrimitiveTypes.Int64
			if familyOf(t) == famDate {
				wide = arrow.PrimitiveTypes.Int32
			}
			var err error
			if x, err = b.castTo(x, wide); err != nil {
				return nil, err
			}
		}
		return b.cast(e.span, x, t, false)
	}
}

// toTimestamp reads numbers as seconds. Floats keep the fraction, and what is beyond
// the range is its end, as in the engine.
func (b *binder) toTimestamp(e *call, args []*node) (*node, error) {
	to := timestampOf(arrow.Nanosecond)
	switch x := args[0]; familyOf(x.typ) {
	case famInt, famUint:
		seconds, err := casting(timestampOf(arrow.Second))(b, e, args)
		if err != nil {
			return nil, err
		}
		return b.cast(e.span, seconds, to, false)
	case famFloat:
		if err := b.castEach(args, arrow.PrimitiveTypes.Float64); err != nil {
			return nil, err
		}
		return numbersOf(b, e, to, false, func(r *row) (int64, error) { return saturated(r.f(0) * 1e9), nil }, args...)
	default:
		return b.cast(e.span, x, to, false)
	}
}

// saturated is the nearest whole number towards zero that there is, zero of NaN.
func saturated(x float64) int64 {
	switch {
	case math.IsNaN(x):
		return 0
	case x >= math.MaxInt64:
		return math.MaxInt64
	case x <= math.MinInt64:
		return math.MinInt64
	}
	return int64(x)
}

// datePart is a part of a date, a timestamp or a time of day as a number.
func (b *binder) datePart(e *call, args []*node) (*node, error) {
	part, err := b.timePart(e, args[0])
	if err != nil {
		return nil, err
	}
	x := args[1]
	at, err := b.dated(e, x)
	if err != nil {
		return nil, err
	}
	if familyOf(x.typ) == famTime && !map[string]bool{"hour": true, "minute": true, "second": true, "millisecond": true, "microsecond": true, "nanosecond": true, "epoch": true}[part] {
		return nil, b.src.unsupportedf(args[0].at, "this part of a time of day")
	}
	switch part {
	case "epoch":
		// From the value itself, which a time.Time would round.
		unit := int64(0)
		switch t := x.typ.(type) {
		case arrow.TemporalWithUnit:
			unit = unitsASecond(t.TimeUnit())
		case *arrow.Date64Type:
			unit = 1000
		}
		return partOf(b, e, x, arrow.PrimitiveTypes.Float64, func(v int64) float64 {
			if unit == 0 {
				return float64(v) * secondsADay
			}
			return float64(v) / float64(unit)
		})
	case "nanosecond":
		return partOf(b, e, x, arrow.PrimitiveTypes.Int64, func(v int64) int64 { t := at(v); return int64(t.Second())*1e9 + int64(t.Nanosecond()) })
	}
	of, ok := dateParts[part]
	if !ok {
		return nil, b.src.unsupportedf(args[0].at, "this part of a date")
	}
	return partOf(b, e, x, arrow.PrimitiveTypes.Int32, func(v int64) int32 { return int32(of(at(v))) })
}

// dateParts are the parts that are a small number.
var dateParts = map[string]func(t time.Time) int{
	"year": time.Time.Year, "month": func(t time.Time) int { return int(t.Month()) }, "day": time.Time.Day,
	"hour": time.Time.Hour, "minute": time.Time.Minute, "second": time.Time.Second,
	"millisecond": func(t time.Time) int { return t.Second()*1e3 + t.Nanosecond()/1e6 },
	"microsecond": func(t time.Time) int { return t.Second()*1e6 + t.Nanosecond()/1e3 },
	"dow":         func(t time.Time) int { return int(t.Weekday()) }, "doy": time.Time.YearDay,
	"quarter": func(t time.Time) int { return (int(t.Month()) + 2) / 3 },
	"week":    func(t time.Time) int { _, w := t.ISOWeek(); return w },
	"isoyear": func(t time.Time) int { y, _ := t.ISOWeek(); return y },
	"isodow":  func(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 },
}

// partOf makes a number of each value of a date, timestamp or time.
func partOf[T arrow.FixedWidthType](b *binder, e *call, x *node, t arrow.DataType, of func(v int64) T) (*node, error) {
	return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
		n, one := f.length(vs...)
		valid, nulls := f.validity(n, vs...)
		read, out := cellReader(vs[0].Array), make([]T, n)
		for i := range out {
			if vs[0].IsValid(i) {
				out[i] = of(read(i).i)
			}
		}
		return numbers(f, t, one, out, valid, nulls), nil
	}, x), nil
}
