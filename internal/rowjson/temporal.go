package rowjson

import (
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

const secondsPerDay = 86400

// unitsPerSecond and the digits that a fraction of a second has in a unit.
func unitScale(u arrow.TimeUnit) (perSecond int64, digits int) {
	switch u {
	case arrow.Second:
		return 1, 0
	case arrow.Millisecond:
		return 1e3, 3
	case arrow.Microsecond:
		return 1e6, 6
	default:
		return 1e9, 9
	}
}

func (e *Encoder) appendDate32(dst []byte, d arrow.Date32) []byte {
	if e.enc == Raw {
		return appendInt(dst, int64(d))
	}
	dst = appendDate(append(dst, '"'), int64(d))
	return append(dst, '"')
}

// appendDate64 writes a date; a value that is not a whole day, which the type
// forbids but a file may hold, shows its time of day too.
func (e *Encoder) appendDate64(dst []byte, d arrow.Date64) []byte {
	if e.enc == Raw {
		return e.appendInt64(dst, int64(d))
	}
	days, ms := floorDiv(int64(d), secondsPerDay*1000)
	dst = appendDate(append(dst, '"'), days)
	if ms != 0 {
		dst = appendClock(append(dst, 'T'), ms, 1000, 3)
	}
	return append(dst, '"')
}

func (e *Encoder) appendTime32(dst []byte, v arrow.Time32, u arrow.TimeUnit) []byte {
	if e.enc == Raw {
		return appendInt(dst, int64(v))
	}
	return appendQuotedClock(dst, int64(v), u)
}

func (e *Encoder) appendTime64(dst []byte, v arrow.Time64, u arrow.TimeUnit) []byte {
	if e.enc == Raw {
		return e.appendInt64(dst, int64(v))
	}
	return appendQuotedClock(dst, int64(v), u)
}

func appendQuotedClock(dst []byte, v int64, u arrow.TimeUnit) []byte {
	per, digits := unitScale(u)
	dst = append(dst, '"')
	// A time of day outside the day breaks the type's rule; show it rather
	// than fold it into another time.
	neg := v < 0
	if neg {
		dst = append(dst, '-')
	}
	dst = appendClockUint(dst, magnitude(v), uint64(per), digits)
	return append(dst, '"')
}

// appendTimestamp writes the local time without an offset when the type has no
// zone, and the zone's local time with its offset (Z for UTC) when it has. A zone
// that this machine does not know is shown in UTC: the instant is what is stored.
func (e *Encoder) appendTimestamp(dst []byte, v arrow.Timestamp, t *arrow.TimestampType) []byte {
	if e.enc == Raw {
		return e.appendInt64(dst, int64(v))
	}
	per, digits := unitScale(t.Unit)
	seconds, fraction := floorDiv(int64(v), per)
	suffix := ""
	if t.TimeZone != "" {
		offset := zoneOffset(t, seconds)
		suffix = "Z"
		if offset != 0 && offset%60 == 0 {
			seconds += offset
			suffix = formatOffset(offset)
		}
	}
	days, second := floorDiv(seconds, secondsPerDay)
	dst = appendDate(append(dst, '"'), days)
	dst = appendClock(append(dst, 'T'), second*per+fraction, per, digits)
	return append(append(dst, suffix...), '"')
}

// zoneOffset returns the seconds east of UTC at the instant, 0 if unknown.
func zoneOffset(t *arrow.TimestampType, seconds int64) int64 {
	// time.Time counts seconds from the year 1 in an int64; stay clear of its ends.
	const limit = 1 << 60
	if seconds > limit || seconds < -limit {
		return 0
	}
	loc, err := t.GetZone()
	if err != nil || loc == nil {
		return 0
	}
	_, offset := time.Unix(seconds, 0).In(loc).Zone()
	return int64(offset)
}

func formatOffset(seconds int64) string {
	sign := byte('+')
	if seconds < 0 {
		sign, seconds = '-', -seconds
	}
	out := append(make([]byte, 0, 6), sign)
	out = appendPadded(out, uint64(seconds/3600), 2)
	out = append(out, ':')
	return string(appendPadded(out, uint64(seconds/60%60), 2))
}

// appendDuration writes ISO 8601 seconds, "PT-1.500S" for minus one and a half:
// durations here have no calendar, so no larger unit would add anything.
func (e *Encoder) appendDuration(dst []byte, v arrow.Duration, u arrow.TimeUnit) []byte {
	if e.enc == Raw {
		return e.appendInt64(dst, int64(v))
	}
	per, digits := unitScale(u)
	m := magnitude(int64(v))
	dst = append(dst, `"PT`...)
	if v < 0 {
		dst = append(dst, '-')
	}
	dst = strconv.AppendUint(dst, m/uint64(per), 10)
	if digits > 0 {
		dst = appendPadded(append(dst, '.'), m%uint64(per), digits)
	}
	return append(dst, 'S', '"')
}

// appendDate writes the proleptic Gregorian date of a day counted from
// 1970-01-01. Years outside 0000..9999 have a sign and at least six digits, as
// ISO 8601 wants of expanded years.
func appendDate(dst []byte, days int64) []byte {
	year, month, day := civil(days)
	switch {
	case year >= 0 && year <= 9999:
		dst = appendPadded(dst, uint64(year), 4)
	case year < 0:
		dst = appendPadded(append(dst, '-'), uint64(-year), 6)
	default:
		dst = appendPadded(append(dst, '+'), uint64(year), 6)
	}
	dst = appendPadded(append(dst, '-'), uint64(month), 2)
	return appendPadded(append(dst, '-'), uint64(day), 2)
}

// civil converts days since 1970-01-01 to a date, for every day count that fits
// (time.Time overflows with second timestamps near the ends of int64). Eras of
// 400 years, years from March: Howard Hinnant, "chrono-compatible low-level date
// algorithms", days_from_civil and its inverse.
func civil(days int64) (year, month, day int64) {
	era, dayOfEra := floorDiv(days+719468, 146097)
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*dayOfYear + 2) / 153
	day = dayOfYear - (153*shifted+2)/5 + 1
	month = shifted + 3
	if month > 12 {
		month -= 12
	}
	year = yearOfEra + era*400
	if month <= 2 {
		year++
	}
	return year, month, day
}

// appendClock writes a time of day given in units of which a second has per.
func appendClock(dst []byte, v, per int64, digits int) []byte {
	return appendClockUint(dst, uint64(v), uint64(per), digits)
}

func appendClockUint(dst []byte, v, per uint64, digits int) []byte {
	seconds, fraction := v/per, v%per
	dst = appendPadded(dst, seconds/3600, 2)
	dst = appendPadded(append(dst, ':'), seconds/60%60, 2)
	dst = appendPadded(append(dst, ':'), seconds%60, 2)
	if digits > 0 {
		dst = appendPadded(append(dst, '.'), fraction, digits)
	}
	return dst
}

// appendPadded writes v with leading zeros to at least width digits.
func appendPadded(dst []byte, v uint64, width int) []byte {
	var buf [20]byte
	s := strconv.AppendUint(buf[:0], v, 10)
	for n := len(s); n < width; n++ {
		dst = append(dst, '0')
	}
	return append(dst, s...)
}

// floorDiv divides towards minus infinity; the remainder is never negative.
func floorDiv(a, b int64) (quotient, remainder int64) {
	quotient, remainder = a/b, a%b
	if remainder < 0 {
		quotient, remainder = quotient-1, remainder+b
	}
	return quotient, remainder
}

// magnitude is |v|, also for the smallest int64.
func magnitude(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}
