package sqlexpr

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

const (
	secondsADay = 24 * 60 * 60
	millisADay  = secondsADay * 1000
)

// unitsASecond is how many of a time unit make a second.
func unitsASecond(u arrow.TimeUnit) int64 {
	switch u {
	case arrow.Second:
		return 1
	case arrow.Millisecond:
		return 1e3
	case arrow.Microsecond:
		return 1e6
	}
	return 1e9
}

// changeUnit converts a count of units, towards zero if the new unit is coarser.
func changeUnit(v int64, from, to arrow.TimeUnit) (int64, error) {
	a, b := unitsASecond(from), unitsASecond(to)
	if a >= b {
		return v / (a / b), nil
	}
	if out := v * (b / a); out/(b/a) == v {
		return out, nil
	}
	return 0, fmt.Errorf("the time %d%s does not fit in %s", v, from, to)
}

// floorDiv divides and rounds down.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// instant is a count of units as a time.
func instant(v int64, unit arrow.TimeUnit) time.Time {
	per := unitsASecond(unit)
	s := floorDiv(v, per)
	return time.Unix(s, (v-s*per)*(1e9/per)).UTC()
}

// isUTC says whether a zone is the one of Unix time.
func isUTC(zone string) bool {
	switch strings.ToUpper(zone) {
	case "UTC", "Z", "+00:00", "-00:00", "+0000", "ETC/UTC", "GMT":
		return true
	}
	return false
}

// zoneOf is the zone of a timestamp type, nil if it has none.
func zoneOf(t *arrow.TimestampType) (*time.Location, error) {
	if t.TimeZone == "" {
		return nil, nil
	}
	loc, err := t.GetZone()
	if err != nil {
		return nil, fmt.Errorf("the time zone %q: %w", t.TimeZone, err)
	}
	return loc, nil
}

// parseDate reads YYYY-MM-DD or YYYYMMDD, or a timestamp, of which it takes the day.
func parseDate(s string) (days int64, err error) {
	for _, layout := range []string{"2006-1-2", "20060102"} {
		if t, err := time.Parse(layout, s); err == nil {
			return floorDiv(t.Unix(), secondsADay), nil
		}
	}
	t, _, err := parseTime(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a date (write it 2006-01-02)", s)
	}
	return floorDiv(t.Unix(), secondsADay), nil
}

// parseTime reads a timestamp: a date, then if wanted a T or a space and a time of day
// with up to nine digits of a second, then if wanted Z, an offset or the name of a
// zone. zoned says that it had one of these.
func parseTime(s string) (t time.Time, zoned bool, err error) {
	bad := fmt.Errorf("%q is not a timestamp (write it 2006-01-02 15:04:05)", s)
	if len(s) < len("2006-01-02") {
		return time.Time{}, false, bad
	}
	date, rest := s[:10], s[10:]
	if rest == "" {
		t, err = time.Parse("2006-01-02", date)
		if err != nil {
			err = bad
		}
		return t, false, err
	}
	if !strings.ContainsAny(rest[:1], "Tt ") {
		return time.Time{}, false, bad
	}
	clock, zone := rest[1:], ""
	if i := strings.IndexAny(clock, "Zz+- "); i >= 0 {
		clock, zone = clock[:i], strings.TrimSpace(clock[i:])
	}
	loc := time.UTC
	if zone != "" {
		if loc, err = parseZone(zone); err != nil {
			return time.Time{}, false, bad
		}
	}
	t, err = time.ParseInLocation("2006-01-02 15:04:05", date+" "+clock, loc)
	if err != nil {
		return time.Time{}, false, bad
	}
	return t.UTC(), zone != "", nil
}

// parseZone reads Z, an offset such as +02, +0200 and +02:00, or the name of a zone.
func parseZone(s string) (*time.Location, error) {
	if isUTC(s) {
		return time.UTC, nil
	}
	for _, layout := range []string{"-07", "-0700", "-07:00"} {
		if t, err := time.Parse(layout, s); err == nil {
			_, offset := t.Zone()
			return time.FixedZone(s, offset), nil
		}
	}
	if s == "Local" {
		return nil, fmt.Errorf("the time zone %q is another one on every machine", s)
	}
	return time.LoadLocation(s)
}

// timestampValue is a time as a count of units, towards zero.
func timestampValue(t time.Time, unit arrow.TimeUnit) (int64, error) {
	per := unitsASecond(unit)
	s, ns := t.Unix(), int64(t.Nanosecond())
	if s > math.MaxInt64/per-1 || s < math.MinInt64/per+1 {
		return 0, fmt.Errorf("%s is out of the range of timestamps in %s", t.Format(time.RFC3339), unit)
	}
	return s*per + ns/(1e9/per), nil
}

// parseTimestamp reads text as a timestamp type. Without a zone in the text it is in
// that of the type.
func parseTimestamp(s string, t *arrow.TimestampType) (int64, error) {
	at, zoned, err := parseTime(s)
	if err != nil {
		return 0, err
	}
	loc, err := zoneOf(t)
	if err != nil {
		return 0, err
	}
	if loc != nil && !zoned {
		at = time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), loc)
	}
	return timestampValue(at, t.Unit)
}

// formatTime writes a time as Arrow does: a T, and as many digits of a second as
// there are, in groups of three.
func formatTime(t time.Time, zone *time.Location) string {
	layout := "2006-01-02T15:04:05" + fractionLayout(t.Nanosecond())
	if zone != nil {
		return t.In(zone).Format(layout + "Z07:00")
	}
	return t.Format(layout)
}

func fractionLayout(ns int) string {
	switch {
	case ns == 0:
		return ""
	case ns%1e6 == 0:
		return ".000"
	case ns%1e3 == 0:
		return ".000000"
	}
	return ".000000000"
}
