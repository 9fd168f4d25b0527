package sqlexpr

import (
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// timePart reads the constant that names a part of a date.
func (b *binder) timePart(e *call, n *node) (string, error) {
	if !n.constant || familyOf(n.typ) != famString {
		return "", b.src.unsupportedf(n.at, "%s with a part that is not a constant", e.name)
	}
	v, err := n.eval(constantFrame())
	if err != nil || v.IsNull(0) {
		return "", b.src.errorf(n.at, "a part of a date is expected")
	}
	return strings.ToLower(stringsOf(v.Array).Value(0)), nil
}

// dated checks that a node is a date or a timestamp, and says what its values are as
// times in their zone.
func (b *binder) dated(e *call, n *node) (func(v int64) time.Time, error) {
	switch t := n.typ.(type) {
	case *arrow.Date32Type:
		return func(v int64) time.Time { return time.Unix(v*secondsADay, 0).UTC() }, nil
	case *arrow.Date64Type:
		return func(v int64) time.Time { return instant(v, arrow.Millisecond) }, nil
	case *arrow.TimestampType:
		loc, err := zoneOf(t)
		if err != nil {
			return nil, b.src.errorf(n.at, "%w", err)
		}
		if loc == nil {
			loc = time.UTC
		}
		return func(v int64) time.Time { return instant(v, t.Unit).In(loc) }, nil
	}
	if t, ok := n.typ.(arrow.TemporalWithUnit); ok && familyOf(n.typ) == famTime {
		return func(v int64) time.Time { return instant(v, t.TimeUnit()) }, nil
	}
	return nil, b.src.errorf(n.at, "%s is for dates and timestamps, and this is of type %s", e.name, typeText(n.typ))
}

// dateTrunc is a timestamp with what is smaller than a part set to its beginning.
func (b *binder) dateTrunc(e *call, args []*node) (*node, error) {
	part, err := b.timePart(e, args[0])
	if err != nil {
		return nil, err
	}
	x := args[1]
	if familyOf(x.typ) == famDate {
		if x, err = b.castTo(x, timestampOf(arrow.Nanosecond)); err != nil {
			return nil, err
		}
	}
	at, err := b.dated(e, x)
	if err != nil {
		return nil, err
	}
	var of func(t time.Time) time.Time
	date := func(t time.Time, m time.Month, d int) time.Time {
		return time.Date(t.Year(), m, d, 0, 0, 0, 0, t.Location())
	}
	switch part {
	case "year":
		of = func(t time.Time) time.Time { return date(t, 1, 1) }
	case "quarter":
		of = func(t time.Time) time.Time { return date(t, (t.Month()-1)/3*3+1, 1) }
	case "month":
		of = func(t time.Time) time.Time { return date(t, t.Month(), 1) }
	case "week":
		of = func(t time.Time) time.Time { return date(t, t.Month(), t.Day()-(int(t.Weekday())+6)%7) }
	case "day":
		of = func(t time.Time) time.Time { return date(t, t.Month(), t.Day()) }
	case "hour":
		of = func(t time.Time) time.Time {
			return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, t.Location())
		}
	case "minute":
		of = func(t time.Time) time.Time { return t.Truncate(time.Minute) }
	case "second":
		of = func(t time.Time) time.Time { return t.Truncate(time.Second) }
	case "millisecond":
		of = func(t time.Time) time.Time { return t.Truncate(time.Millisecond) }
	case "microsecond":
		of = func(t time.Time) time.Time { return t.Truncate(time.Microsecond) }
	default:
		return nil, b.src.unsupportedf(args[0].at, "this part of a date")
	}
	t := x.typ.(*arrow.TimestampType)
	return b.make(e.span, t, true, func(f *frame, vs []vector) (vector, error) {
		n, one := f.length(vs...)
		valid, nulls := f.validity(n, vs...)
		in, out := values[int64](vs[0].Array), make([]int64, n)
		for i := range out {
			if vs[0].IsNull(i) {
				continue
			}
			v, err := timestampValue(of(at(in[i])), t.Unit)
			if err != nil {
				return vector{}, err
			}
			out[i] = v
		}
		return numbers(f, t, one, out, valid, nulls), nil
	}, x), nil
}
