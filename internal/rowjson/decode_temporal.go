package rowjson

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

var (
	errTooFine    = errors.New("it has more digits after the point than the column's unit")
	errOutOfRange = errors.New("it is outside the range of the column's type")
)

// temporalAppender reads dates, times, timestamps and durations, as the functions in
// temporal.go write them. Fraction digits may be left out.
func temporalAppender(t arrow.DataType, b array.Builder) appender {
	switch b := b.(type) {
	case *array.Date32Builder:
		return clockAppender(t, "a date like 2024-02-29", func(c *clockText) {
			days := c.date()
			c.fits32(days)
			b.Append(arrow.Date32(days))
		})
	case *array.Date64Builder:
		return clockAppender(t, "a date like 2024-02-29", func(c *clockText) {
			days := c.date()
			var second, fraction int64
			if c.take('T') {
				second, fraction = c.clock(1000)
			}
			b.Append(arrow.Date64(c.join(c.join(days, secondsPerDay, second), 1000, fraction)))
		})
	case *array.Time32Builder:
		per, _ := unitScale(t.(*arrow.Time32Type).Unit)
		return clockAppender(t, "a time like 12:30:00", func(c *clockText) {
			v := c.signedClock(per)
			c.fits32(v)
			b.Append(arrow.Time32(v))
		})
	case *array.Time64Builder:
		per, _ := unitScale(t.(*arrow.Time64Type).Unit)
		return clockAppender(t, "a time like 12:30:00", func(c *clockText) {
			b.Append(arrow.Time64(c.signedClock(per)))
		})
	case *array.TimestampBuilder:
		ts := t.(*arrow.TimestampType)
		per, _ := unitScale(ts.Unit)
		want := "a timestamp like 2024-02-29T12:30:00"
		if ts.TimeZone != "" {
			want += "Z or with an offset like +01:00"
		} else {
			want += " without an offset, for the column has no time zone"
		}
		return clockAppender(t, want, func(c *clockText) {
			days := c.date()
			c.must('T')
			second, fraction := c.clock(per)
			seconds := c.join(days, secondsPerDay, second)
			if ts.TimeZone != "" {
				seconds = c.plus(seconds, -c.offset())
			}
			b.Append(arrow.Timestamp(c.join(seconds, per, fraction)))
		})
	case *array.DurationBuilder:
		per, _ := unitScale(t.(*arrow.DurationType).Unit)
		return clockAppender(t, "a duration like PT1.5S", func(c *clockText) {
			c.must('P')
			c.must('T')
			negative := c.take('-')
			seconds := c.digits(1, 20)
			fraction := c.fraction(per)
			c.must('S')
			b.Append(arrow.Duration(c.signed(negative, seconds, per, fraction)))
		})
	}
	return func(*scanner) error { return fmt.Errorf("values of type %s cannot be read from JSON", t) }
}

// clockAppender reads a string and lets parse make a value of it.
func clockAppender(t arrow.DataType, want string, parse func(*clockText)) appender {
	return func(s *scanner) error {
		text, err := s.str()
		if err != nil {
			return err
		}
		c := &clockText{text: text}
		parse(c)
		switch {
		case c.bad || c.at < len(text):
			return fmt.Errorf("%s is not %s", shorten(text, 60), want)
		case c.err != nil:
			return fmt.Errorf("%s as %s: %w", shorten(text, 60), t, c.err)
		}
		return nil
	}
}

// clockText reads the parts of dates and times. It keeps the first error, so a caller
// checks once, at the end.
type clockText struct {
	text []byte
	at   int
	bad  bool  // it is written wrong
	err  error // it is written right, and no value of the type
}

func (c *clockText) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *clockText) take(b byte) bool {
	if c.at < len(c.text) && c.text[c.at] == b {
		c.at++
		return true
	}
	return false
}

func (c *clockText) must(b byte) {
	if !c.take(b) {
		c.bad = true
	}
}

// digit takes one digit, if there is one.
func (c *clockText) digit() (v uint64, ok bool) {
	if c.at == len(c.text) || c.text[c.at] < '0' || c.text[c.at] > '9' {
		return 0, false
	}
	c.at++
	return uint64(c.text[c.at-1] - '0'), true
}

// digits reads from least to most digits.
func (c *clockText) digits(least, most int) (v uint64) {
	n := 0
	for ; n < most; n++ {
		d, ok := c.digit()
		if !ok {
			break
		}
		if v > (math.MaxUint64-d)/10 {
			c.fail(errOutOfRange)
		}
		v = v*10 + d
	}
	if n < least {
		c.bad = true
	}
	return v
}

// date reads a date of four year digits, or of a sign and more, and returns the day
// counted from 1970-01-01.
func (c *clockText) date() int64 {
	var year int64
	switch {
	case c.take('+'):
		year = int64(c.digits(6, 15))
	case c.take('-'):
		year = -int64(c.digits(6, 15))
	default:
		year = int64(c.digits(4, 4))
	}
	c.must('-')
	month := int64(c.digits(2, 2))
	c.must('-')
	day := int64(c.digits(2, 2))
	days := daysFromCivil(year, month, day)
	if y, m, d := civil(days); y != year || m != month || d != day {
		c.bad = true // no such month or day
	}
	return days
}

// daysFromCivil is the inverse of civil, and has the same source.
func daysFromCivil(year, month, day int64) int64 {
	if month <= 2 {
		year--
	}
	era, yearOfEra := floorDiv(year, 400)
	shifted := (month + 9) % 12
	dayOfYear := (153*shifted+2)/5 + day - 1
	return era*146097 + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - 719468
}

// clock reads a time of day, in seconds and a fraction in units of which a second has
// per.
func (c *clockText) clock(per int64) (seconds, fraction int64) {
	hour := c.digits(2, 2)
	c.must(':')
	minute := c.digits(2, 2)
	c.must(':')
	second := c.digits(2, 2)
	if hour > 23 || minute > 59 || second > 59 {
		c.bad = true
	}
	return int64(hour*3600 + minute*60 + second), c.fraction(per)
}

// signedClock reads what is meant to be a time of day and need not be one.
func (c *clockText) signedClock(per int64) int64 {
	negative := c.take('-')
	hours := c.digits(2, 20)
	c.must(':')
	minute := c.digits(2, 2)
	c.must(':')
	second := c.digits(2, 2)
	if minute > 59 || second > 59 {
		c.bad = true
	}
	if hours > math.MaxInt64/3600 {
		c.fail(errOutOfRange)
		hours = 0
	}
	return c.signed(negative, hours*3600+minute*60+second, per, c.fraction(per))
}

// fraction reads the digits after the point, if there are any, in units of which a
// second has per.
func (c *clockText) fraction(per int64) (v int64) {
	if !c.take('.') {
		return 0
	}
	n := 0
	for ; ; n++ {
		d, ok := c.digit()
		if !ok {
			break
		}
		if per /= 10; per > 0 {
			v += int64(d) * per
		} else if d != 0 {
			c.fail(errTooFine)
		}
	}
	if n == 0 {
		c.bad = true
	}
	return v
}

// offset reads the distance from UTC, in seconds to the east.
func (c *clockText) offset() int64 {
	if c.take('Z') {
		return 0
	}
	west := c.take('-')
	if !west {
		c.must('+')
	}
	hours := c.digits(2, 2)
	c.must(':')
	minutes := c.digits(2, 2)
	if hours > 23 || minutes > 59 {
		c.bad = true
	}
	seconds := int64(hours*3600 + minutes*60)
	if west {
		return -seconds
	}
	return seconds
}

func (c *clockText) fits32(v int64) {
	if v != int64(int32(v)) {
		c.fail(errOutOfRange)
	}
}

// plus is a sum that must not overflow.
func (c *clockText) plus(a, b int64) int64 {
	sum := a + b
	if (sum > a) != (b > 0) {
		c.fail(errOutOfRange)
	}
	return sum
}

// join returns whole*per + part, where 0 <= part < per, which must not overflow. The
// product alone may, at the lower end of the range.
func (c *clockText) join(whole, per, part int64) int64 {
	v := whole*per + part // may wrap around, which the inverse shows
	if q, r := floorDiv(v, per); q != whole || r != part {
		c.fail(errOutOfRange)
	}
	return v
}

// signed is join of a magnitude and a sign.
func (c *clockText) signed(negative bool, seconds uint64, per, fraction int64) int64 {
	limit := uint64(math.MaxInt64)
	if negative {
		limit++
	}
	if seconds > (limit-uint64(fraction))/uint64(per) {
		c.fail(errOutOfRange)
		return 0
	}
	m := seconds*uint64(per) + uint64(fraction)
	if negative {
		m = -m
	}
	return int64(m)
}
