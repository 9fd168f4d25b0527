package sqlexpr

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// dateFormat writes dates and timestamps by a pattern of strftime.
func (b *binder) dateFormat(e *call, args []*node) (*node, error) {
	v, err := args[1].eval(constantFrame())
	if err != nil {
		return nil, err
	}
	if v.IsNull(0) || familyOf(args[0].typ) == famNull {
		return b.nullOf(e.span, arrow.BinaryTypes.String), nil
	}
	write, err := newDateFormat(stringsOf(v.Array).Value(0))
	if err != nil {
		return nil, b.src.errorf(args[1].at, "%w", err)
	}
	at, err := b.dated(e, args[0])
	if err != nil {
		return nil, err
	}
	return b.make(e.span, arrow.BinaryTypes.String, false, func(f *frame, vs []vector) (vector, error) {
		read := cellReader(vs[0].Array)
		return f.rowStrings(arrow.BinaryTypes.String, func(i int) (string, bool) {
			var sb strings.Builder
			t := at(read(i * vs[0].step()).i)
			for _, w := range write {
				w(&sb, t)
			}
			return sb.String(), true
		}, vs...), nil
	}, args[0]), nil
}

// dateWriter writes a part of a time.
type dateWriter func(sb *strings.Builder, t time.Time)

// dateField is a number in a pattern: how it is padded by itself, and to what width.
type dateField struct {
	of    func(t time.Time) int
	width int
	pad   byte
}

func twelve(t time.Time) int { return (t.Hour()+11)%12 + 1 }

func weekFrom(first time.Weekday) func(t time.Time) int {
	return func(t time.Time) int { return (t.YearDay() + 6 - (int(t.Weekday())-int(first)+7)%7) / 7 }
}

func isoYear(t time.Time) int { y, _ := t.ISOWeek(); return y }

func modulo(a, b int) int { return ((a % b) + b) % b }

var dateFields = map[byte]dateField{
	'Y': {time.Time.Year, 4, '0'}, 'C': {func(t time.Time) int { return int(floorDiv(int64(t.Year()), 100)) }, 2, '0'}, 'y': {func(t time.Time) int { return modulo(t.Year(), 100) }, 2, '0'},
	'm': {func(t time.Time) int { return int(t.Month()) }, 2, '0'}, 'd': {time.Time.Day, 2, '0'}, 'e': {time.Time.Day, 2, ' '},
	'H': {time.Time.Hour, 2, '0'}, 'k': {time.Time.Hour, 2, ' '}, 'I': {twelve, 2, '0'}, 'l': {twelve, 2, ' '},
	'M': {time.Time.Minute, 2, '0'}, 'S': {time.Time.Second, 2, '0'}, 'j': {time.Time.YearDay, 3, '0'},
	'w': {func(t time.Time) int { return int(t.Weekday()) }, 1, '0'}, 'u': {func(t time.Time) int { return (int(t.Weekday())+6)%7 + 1 }, 1, '0'},
	'U': {weekFrom(time.Sunday), 2, '0'}, 'W': {weekFrom(time.Monday), 2, '0'},
	'G': {isoYear, 4, '0'}, 'g': {func(t time.Time) int { return modulo(isoYear(t), 100) }, 2, '0'}, 'V': {func(t time.Time) int { _, w := t.ISOWeek(); return w }, 2, '0'},
}

// dateTexts are the parts that are no padded number; shortcuts stand for several.
var (
	dateTexts = map[byte]func(t time.Time) string{
		'a': func(t time.Time) string { return t.Format("Mon") }, 'A': func(t time.Time) string { return t.Format("Monday") },
		'b': func(t time.Time) string { return t.Format("Jan") }, 'h': func(t time.Time) string { return t.Format("Jan") }, 'B': func(t time.Time) string { return t.Format("January") },
		'p': func(t time.Time) string { return t.Format("PM") }, 'P': func(t time.Time) string { return t.Format("pm") },
		's': func(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) },
		'f': func(t time.Time) string { return fmt.Sprintf("%09d", t.Nanosecond()) },
		'%': func(time.Time) string { return "%" }, 'n': func(time.Time) string { return "\n" }, 't': func(time.Time) string { return "\t" },
	}
	dateShortcuts = map[byte]string{'F': "%Y-%m-%d", 'T': "%H:%M:%S", 'X': "%H:%M:%S", 'D': "%m/%d/%y", 'x': "%m/%d/%y", 'R': "%H:%M", 'r': "%I:%M:%S %p", 'v': "%e-%b-%Y", 'c': "%a %b %e %H:%M:%S %Y"}
)

// newDateFormat reads a pattern.
func newDateFormat(pattern string) ([]dateWriter, error) {
	var out []dateWriter
	for pattern != "" {
		text, rest, found := strings.Cut(pattern, "%")
		if text != "" {
			out = append(out, func(sb *strings.Builder, _ time.Time) { sb.WriteString(text) })
		}
		if !found {
			break
		}
		w, n, err := dateDirective(rest)
		if err != nil {
			return nil, err
		}
		out = append(out, w...)
		pattern = rest[n:]
	}
	return out, nil
}

// dateDirective reads what follows a %, and says how many bytes that is.
func dateDirective(s string) ([]dateWriter, int, error) {
	bad := fmt.Errorf("the pattern %%%.2s is not handled", s)
	if s == "" {
		return nil, 0, bad
	}
	if w, n := fractionDirective(s); n > 0 {
		return []dateWriter{w}, n, nil
	}
	n, pad := 0, byte(1)
	switch s[0] {
	case '-':
		n, pad = 1, 0
	case '_':
		n, pad = 1, ' '
	case '0':
		n, pad = 1, '0'
	}
	if n == len(s) {
		return nil, 0, bad
	}
	c := s[n]
	if f, ok := dateFields[c]; ok {
		if pad == 1 {
			pad = f.pad
		}
		return []dateWriter{func(sb *strings.Builder, t time.Time) { sb.WriteString(padded(f.of(t), f.width, pad)) }}, n + 1, nil
	}
	if n > 0 {
		return nil, 0, bad
	}
	if of, ok := dateTexts[c]; ok {
		return []dateWriter{func(sb *strings.Builder, t time.Time) { sb.WriteString(of(t)) }}, 1, nil
	}
	if long, ok := dateShortcuts[c]; ok {
		w, err := newDateFormat(long)
		return w, 1, err
	}
	return nil, 0, bad
}

// padded writes a number; years beyond four digits have a sign.
func padded(v, width int, pad byte) string {
	s := strconv.Itoa(v)
	sign := ""
	switch {
	case v < 0:
		sign, s = "-", s[1:]
	case width == 4 && len(s) > width:
		sign = "+"
	}
	if pad == 0 || len(s) >= width {
		return sign + s
	}
	if pad == ' ' {
		return strings.Repeat(" ", width-len(s)) + sign + s
	}
	return sign + strings.Repeat("0", width-len(s)) + s
}

// fractionDirective reads %.f, %.3f, %.6f, %.9f and %3f, %6f, %9f.
func fractionDirective(s string) (dateWriter, int) {
	point, digits, n := "", 0, 0
	if s[n] == '.' {
		point, n = ".", 1
	}
	if n < len(s) && strings.IndexByte("369", s[n]) >= 0 {
		digits, n = int(s[n]-'0'), n+1
	}
	if n == 0 || n >= len(s) || s[n] != 'f' {
		return nil, 0
	}
	return func(sb *strings.Builder, t time.Time) {
		all := fmt.Sprintf("%09d", t.Nanosecond())
		switch {
		case digits > 0:
			sb.WriteString(point + all[:digits])
		default:
			sb.WriteString(t.Format(fractionLayout(t.Nanosecond())))
		}
	}, n + 1
}
