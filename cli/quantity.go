package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// quantity is a flag value that counts something: rows, versions, threads. It has
// bounds, and refuses what is outside them with the bounds in the message.
type quantity struct {
	value    *uint64
	min, max uint64
}

// number returns a quantity that sets *value, from min to max.
func number(value *uint64, min, max uint64) *quantity { return &quantity{value, min, max} }

// String prints the value so that Set reads it back.
func (q *quantity) String() string {
	if q.value == nil {
		return "0"
	}
	return strconv.FormatUint(*q.value, 10)
}

// Type is what the help text calls the value.
func (q *quantity) Type() string { return "number" }

var quantityUnits = map[string]float64{
	"":  1,
	"k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9,
	"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30,
}

// Set reads "250000", "250_000", "64k", "1M", "1.5M" and "1Mi". k, M and G are powers
// of 1000, as people count rows, and Ki, Mi and Gi of 1024.
func (q *quantity) Set(s string) error {
	v, err := parseQuantity(s)
	if err != nil {
		return err
	}
	if v < q.min || v > q.max {
		return fmt.Errorf("%s is out of range: want %s", s, q.span())
	}
	*q.value = v
	return nil
}

func (q *quantity) span() string {
	if q.max == math.MaxUint64 || q.max == math.MaxInt64 {
		return fmt.Sprintf("%d or more", q.min)
	}
	return fmt.Sprintf("%d to %d", q.min, q.max)
}

func parseQuantity(s string) (uint64, error) {
	wrong := fmt.Errorf("%q is no number: want one such as 250000, 64k, 1M or 1Mi (k, M, G are thousands, millions, billions)", s)
	text, unit := splitUnit(s)
	factor, ok := quantityUnits[unit]
	if strings.HasPrefix(text, "-") {
		if _, err := strconv.ParseFloat(text, 64); err == nil && ok {
			return 0, fmt.Errorf("%s is negative: want 0 or more", s)
		}
	}
	if !ok {
		return 0, wrong
	}
	if whole, err := strconv.ParseUint(text, 10, 64); err == nil {
		if whole > math.MaxUint64/uint64(factor) {
			return 0, fmt.Errorf("%q is more than 64 bits can count", s)
		}
		return whole * uint64(factor), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	switch v *= factor; {
	case err != nil || v < 0:
		return 0, wrong
	case v >= 1<<63:
		return 0, fmt.Errorf("%q is more than 64 bits can count", s)
	case v != math.Trunc(v):
		return 0, fmt.Errorf("%q is no whole number", s)
	}
	return uint64(v), nil
}

// splitUnit cuts a number from the unit behind it, which it returns in lower case.
func splitUnit(s string) (number, unit string) {
	text := strings.TrimSpace(s)
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '_' && r != '-' })
	if end >= 0 {
		text, unit = text[:end], strings.ToLower(strings.TrimSpace(text[end:]))
	}
	return strings.ReplaceAll(text, "_", ""), unit
}

// share is a flag value between 0 and 1, or in percent.
type share float64

func (v *share) String() string { return strconv.FormatFloat(float64(*v), 'g', -1, 64) }

// Type is what the help text calls the value.
func (v *share) Type() string { return "share" }

// Set reads "0.1" and "10%".
func (v *share) Set(s string) error {
	text, percent := strings.CutSuffix(strings.TrimSpace(s), "%")
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) {
		return fmt.Errorf("%q is no share: want a number from 0 to 1, or 0%% to 100%%", s)
	}
	if percent {
		f /= 100
	}
	if f < 0 || f > 1 {
		hint := ""
		if f > 1 && f <= 100 && !percent {
			hint = fmt.Sprintf(" (for %s percent write %s%%)", text, text)
		}
		return fmt.Errorf("%s is out of range: want 0 to 1, the share of the rows%s", s, hint)
	}
	*v = share(f)
	return nil
}

// period is a flag value: a time span, with days and weeks, that is not negative.
type period time.Duration

func (v *period) String() string { return time.Duration(*v).String() }

// Type is what the help text calls the value.
func (v *period) Type() string { return "duration" }

// Set reads what time.ParseDuration reads, and "7d" and "2w".
func (v *period) Set(s string) error {
	d, err := time.ParseDuration(strings.TrimSpace(s))
	if err != nil {
		text, unit := splitUnit(s)
		days, known := map[string]float64{"d": 1, "w": 7}[unit]
		n, bad := strconv.ParseFloat(text, 64)
		if bad != nil || !known {
			return fmt.Errorf("%q is no time span: want one such as 90s, 30m, 24h, 7d or 2w", s)
		}
		if n *= days * float64(24*time.Hour); n >= math.MaxInt64 {
			return fmt.Errorf("%s is out of range: want 0 to 106751d", s)
		}
		d = time.Duration(n)
	}
	if d < 0 {
		return fmt.Errorf("%s is out of range: it is negative, want 0 or more", s)
	}
	*v = period(d)
	return nil
}
