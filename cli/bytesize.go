package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteSize is a flag value: bytes with an optional unit.
type byteSize uint64

// String prints the value so that Set reads it back, in the largest unit that
// divides it.
func (b *byteSize) String() string {
	v, unit := uint64(*b), 0
	for v != 0 && v%1024 == 0 && unit < len(sizeUnits)-1 {
		v, unit = v/1024, unit+1
	}
	if unit == 0 {
		return strconv.FormatUint(v, 10)
	}
	return strconv.FormatUint(v, 10) + sizeUnits[unit]
}

// Type is what the help text calls the value.
func (b *byteSize) Type() string { return "bytes" }

// Set reads "1048576", "64MiB", "1.5g", "200 MB". K, M, G, T and KiB... are powers
// of 1024, KB, MB, GB and TB powers of 1000.
func (b *byteSize) Set(s string) error {
	text := strings.TrimSpace(s)
	end := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '_' })
	unit := ""
	if end >= 0 {
		text, unit = text[:end], strings.ToLower(strings.TrimSpace(text[end:]))
	}
	factor, ok := map[string]float64{
		"": 1, "b": 1,
		"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
		"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
		"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	}[unit]
	if !ok {
		return fmt.Errorf("%q is no size: want a number of bytes, or one with KiB, MiB, GiB, KB, MB or GB", s)
	}
	text = strings.ReplaceAll(text, "_", "")
	if whole, err := strconv.ParseUint(text, 10, 64); err == nil {
		if f := uint64(factor); whole > math.MaxUint64/f {
			return fmt.Errorf("%q is more than 64 bits can count", s)
		}
		*b = byteSize(whole * uint64(factor))
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 {
		return fmt.Errorf("%q is no size: want a number of bytes, or one with KiB, MiB, GiB, KB, MB or GB", s)
	}
	if v *= factor; v >= 1<<63 {
		return fmt.Errorf("%q is more than 64 bits can count", s)
	}
	*b = byteSize(math.Round(v))
	return nil
}
