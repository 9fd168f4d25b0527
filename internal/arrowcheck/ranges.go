package arrowcheck

import (
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
)

// The days that stock engines have a calendar for: the years -262143 to 262142.
var (
	firstDay = time.Date(-262143, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
	lastDay  = time.Date(262142, 12, 31, 0, 0, 0, 0, time.UTC).Unix() / secondsPerDay
)

const secondsPerDay = 24 * 60 * 60

// ranges returns what says why the value of a slot is none of the type, "" if it is
// one; nil if all bits make values of the type.
func ranges(t arrow.DataType) func(d arrow.ArrayData, i int) string {
	switch t := t.(type) {
	case arrow.DecimalType:
		return decimals(t)
	case *arrow.Date32Type:
		return inRange(t, arrow.Int32SizeBytes, firstDay, lastDay)
	case *arrow.Date64Type:
		return calendar(t, time.Millisecond, 0)
	case *arrow.TimestampType:
		if t.TimeZone != "" {
			return calendar(t, t.Unit.Multiplier(), 1) // the local day may be the next
		}
		return calendar(t, t.Unit.Multiplier(), 0)
	case *arrow.Time32Type:
		return inRange(t, arrow.Int32SizeBytes, 0, int64(24*time.Hour/t.Unit.Multiplier())-1)
	case *arrow.Time64Type:
		return inRange(t, arrow.Int64SizeBytes, 0, int64(24*time.Hour/t.Unit.Multiplier())-1)
	}
	return nil
}

// calendar is for counts of a unit since 1970, not in so many days at both ends of the
// calendar.
func calendar(t arrow.DataType, unit time.Duration, without int64) func(d arrow.ArrayData, i int) string {
	perSecond := int64(time.Second / unit)
	if perSecond > int64(time.Second/time.Microsecond) {
		return nil // 64 bits of nanoseconds are less than 300 years
	}
	return inRange(t, arrow.Int64SizeBytes, (firstDay+without)*secondsPerDay*perSecond, (lastDay-without+1)*secondsPerDay*perSecond-1)
}

func inRange(t arrow.DataType, bytes int, first, last int64) func(d arrow.ArrayData, i int) string {
	return func(d arrow.ArrayData, i int) string {
		var v int64
		if at := buffer(d, 1)[(d.Offset()+i)*bytes:]; bytes == arrow.Int32SizeBytes {
			v = int64(arrow.Int32Traits.CastFromBytes(at[:4])[0])
		} else {
			v = arrow.Int64Traits.CastFromBytes(at[:8])[0]
		}
		if v < first || v > last {
			return fmt.Sprintf("%d is no value of type %s: want %d to %d", v, t, first, last)
		}
		return ""
	}
}

func decimals(t arrow.DecimalType) func(d arrow.ArrayData, i int) string {
	width, precision := t.BitWidth()/8, max(t.GetPrecision(), 0)
	wrong := func(text string) string {
		return fmt.Sprintf("the decimal of digits %s is no value of type %s: it has more than %d digits", text, t, precision)
	}
	switch t.(type) {
	case *arrow.Decimal128Type:
		most := decimal128.GetMaxValue(min(precision, 38))
		return func(d arrow.ArrayData, i int) string {
			v := arrow.Decimal128Traits.CastFromBytes(buffer(d, 1)[(d.Offset()+i)*width:][:width])[0]
			if v.Cmp(most) > 0 || v.Cmp(most.Negate()) < 0 {
				return wrong(v.BigInt().String())
			}
			return ""
		}
	case *arrow.Decimal256Type:
		most := decimal256.GetMaxValue(min(precision, 76))
		return func(d arrow.ArrayData, i int) string {
			v := arrow.Decimal256Traits.CastFromBytes(buffer(d, 1)[(d.Offset()+i)*width:][:width])[0]
			if v.Cmp(most) > 0 || v.Cmp(most.Negate()) < 0 {
				return wrong(v.BigInt().String())
			}
			return ""
		}
	}
	most := int64(1)
	for range min(precision, 18) {
		most *= 10
	}
	return func(d arrow.ArrayData, i int) string {
		at := buffer(d, 1)[(d.Offset()+i)*width:][:width]
		var v int64
		if width == arrow.Int32SizeBytes {
			v = int64(arrow.Int32Traits.CastFromBytes(at)[0])
		} else {
			v = arrow.Int64Traits.CastFromBytes(at)[0]
		}
		if v >= most || v <= -most {
			return wrong(fmt.Sprint(v))
		}
		return ""
	}
}

// quote shows bytes that are no text, not too many of them.
func quote(b []byte) string {
	const most = 40
	if len(b) > most {
		return fmt.Sprintf("%+q... (%d bytes)", b[:most], len(b))
	}
	return fmt.Sprintf("%+q", b)
}
