package sqlexpr

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

const (
	// maxChoices is how many arguments greatest and least take: each is a level of
	// choice.
	maxChoices = 64
	// maxMade is how many bytes of text a function that makes texts longer may make for
	// one batch of rows.
	maxMade    = 256 << 20
	textLimits = "At most 256 MiB for a batch of rows."
)

// grown is an error if texts of n characters of at most size bytes, beside those made
// so far, would be too large.
func grown(n int64, size, made int) error {
	if size > 0 && n > int64(maxMade-made)/int64(size) {
		return fmt.Errorf("texts of more than %d MiB for one batch of rows", maxMade>>20)
	}
	return nil
}

// rowText is a function that makes a string of strings (s) and whole numbers (i). It is
// told how many bytes were made before.
func rowText(kinds string, of func(a []cell, made int) (string, error)) function {
	return function{least: len(kinds), most: len(kinds), bind: func(b *binder, e *call, args []*node) (*node, error) {
		for i, a := range args {
			if kinds[i] == 's' {
				if err := b.strings(e, a); err != nil {
					return nil, err
				}
				continue
			}
			if !isInteger(a.typ) && familyOf(a.typ) != famNull {
				return nil, b.src.errorf(a.at, "%s takes a whole number, and this is of type %s", e.name, typeText(a.typ))
			}
			n, err := b.castTo(a, arrow.PrimitiveTypes.Int64)
			if err != nil {
				return nil, err
			}
			args[i] = n
		}
		t := stringType(args[0].typ)
		return b.make(e.span, t, true, func(f *frame, vs []vector) (out vector, err error) {
			read, row, made := make([]func(int) cell, len(vs)), make([]cell, len(vs)), 0
			for j, v := range vs {
				read[j] = cellReader(v.Array)
			}
			out = f.rowStrings(t, func(i int) (string, bool) {
				if err != nil {
					return "", false
				}
				for j, v := range vs {
					row[j] = read[j](i * v.step())
				}
				var s string
				s, err = of(row, made)
				made += len(s)
				return s, err == nil
			}, vs...)
			return out, err
		}, args...), nil
	}}
}

func splitPart(a []cell, _ int) (string, error) {
	parts, n := []string{a[0].s}, a[2].i
	if n == 0 {
		return "", errors.New("the parts of split_part are counted from 1")
	}
	if a[1].s != "" {
		parts = strings.Split(a[0].s, a[1].s)
	}
	if n < 0 {
		n += int64(len(parts)) + 1
	}
	if n < 1 || n > int64(len(parts)) {
		return "", nil
	}
	return parts[n-1], nil
}

func substrIndex(a []cell, _ int) (string, error) {
	s, d, n := a[0].s, a[1].s, a[2].i
	if n == 0 || d == "" {
		return "", nil
	}
	parts := strings.Split(s, d)
	if n > 0 {
		return strings.Join(parts[:min(n, int64(len(parts)))], d), nil
	}
	return strings.Join(parts[max(0, int64(len(parts))+max(n, -int64(len(parts)))):], d), nil
}

func repeat(a []cell, made int) (string, error) {
	if err := grown(a[1].i, len(a[0].s), made); err != nil || a[1].i <= 0 {
		return "", err
	}
	return strings.Repeat(a[0].s, int(a[1].i)), nil
}

func lpad(a []cell, made int) (string, error) {
	s, fill, err := padding(a, made)
	return fill + s, err
}

func rpad(a []cell, made int) (string, error) {
	s, fill, err := padding(a, made)
	return s + fill, err
}

// padding is a text, cut to a number of characters, and what fills it up to that.
func padding(a []cell, made int) (s, fill string, err error) {
	n, with := max(a[1].i, 0), []rune(" ")
	if len(a) > 2 {
		with = []rune(a[2].s)
	}
	have := int64(utf8.RuneCountInString(a[0].s))
	if n <= have {
		return string([]rune(a[0].s)[:n]), "", nil
	}
	if len(with) == 0 {
		return a[0].s, "", nil
	}
	if err := grown(n, utf8.UTFMax, made); err != nil {
		return "", "", err
	}
	out := make([]rune, n-have)
	for i := range out {
		out[i] = with[i%len(with)]
	}
	return a[0].s, string(out), nil
}

func initcap(s string) string {
	inside := false
	return strings.Map(func(r rune) rune {
		was := inside
		inside = unicode.IsLetter(r) || unicode.IsNumber(r)
		if was {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

func (b *binder) bitLength(e *call, args []*node) (*node, error) {
	return b.counting(e, func(s []string) int { return 8 * len(s[0]) }, args...)
}

// concatWS joins texts with a separator, and leaves nulls out.
func (b *binder) concatWS(e *call, args []*node) (*node, error) {
	for i, a := range args {
		s, err := b.text(a)
		if err != nil {
			return nil, err
		}
		args[i] = s
	}
	t := arrow.BinaryTypes.String
	return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
		n, one := f.length(vs...)
		rows := numbers(f, arrow.PrimitiveTypes.Int8, one, make([]int8, n), nil, 0)
		return f.rowStrings(t, func(i int) (string, bool) {
			var parts []string
			for _, v := range vs[1:] {
				if at := i * v.step(); v.IsValid(at) {
					parts = append(parts, stringsOf(v.Array).Value(at))
				}
			}
			return strings.Join(parts, stringsOf(vs[0].Array).Value(i*vs[0].step())), true
		}, vs[0], rows), nil
	}, args...), nil
}

// regexpFlags reads the constant flags of a regular expression, as a prefix of it.
// What else may be among them says more.
func (b *binder) regexpFlags(flags []*node, more string) (prefix string, global bool, err error) {
	if len(flags) == 0 {
		return "", false, nil
	}
	at := flags[0].at
	if !flags[0].constant {
		return "", false, b.src.unsupportedf(at, "flags that are not a constant")
	}
	v, err := flags[0].eval(constantFrame())
	if err != nil || v.IsNull(0) {
		return "", false, b.src.errorf(at, "flags are expected")
	}
	for _, r := range stringsOf(v.Array).Value(0) {
		switch {
		case strings.ContainsRune("ims", r):
			prefix += string(r)
		case strings.ContainsRune(more, r):
			global = true
		default:
			return "", false, b.src.unsupportedf(at, "the flag %q of a regular expression; there are i, m, s %s", r, more)
		}
	}
	if prefix != "" {
		prefix = "(?" + prefix + ")"
	}
	return prefix, global, nil
}

var groupReference = regexp.MustCompile(`\\(\d+)`)

func (b *binder) regexpReplace(e *call, args []*node) (*node, error) {
	if err := b.strings(e, args...); err != nil {
		return nil, err
	}
	prefix, global, err := b.regexpFlags(args[3:], "g")
	if err != nil {
		return nil, err
	}
	limit := 1
	if global {
		limit = -1
	}
	t := stringType(args[0].typ)
	return b.make(e.span, t, true, func(f *frame, vs []vector) (out vector, err error) {
		var re *regexp.Regexp
		last, made := "", 0
		s, p, to := stringsOf(vs[0].Array), stringsOf(vs[1].Array), stringsOf(vs[2].Array)
		out = f.rowStrings(t, func(i int) (string, bool) {
			pattern := p.Value(i * vs[1].step())
			if err == nil && (re == nil || pattern != last) {
				re, err = regexp.Compile(prefix + pattern)
				last = pattern
			}
			if err != nil {
				return "", false
			}
			var text string
			text, err = replaceMatches(re, s.Value(i*vs[0].step()), to.Value(i*vs[2].step()), limit, made)
			made += len(text)
			return text, err == nil
		}, vs...)
		return out, err
	}, args[:3]...), nil
}

// replaceMatches replaces up to limit matches, all if it is below zero. It is told how
// many bytes were made before.
func replaceMatches(re *regexp.Regexp, s, to string, limit, made int) (string, error) {
	to = groupReference.ReplaceAllString(to, "$${$1}")
	var out []byte
	from := 0
	for _, m := range re.FindAllStringSubmatchIndex(s, limit) {
		out = append(out, s[from:m[0]]...)
		out = re.ExpandString(out, to, s, m)
		if from = m[1]; made+len(out) > maxMade {
			return "", grown(math.MaxInt64, 1, made)
		}
	}
	return string(out) + s[from:], nil
}

func md5Hex(s string) string    { h := md5.Sum([]byte(s)); return hex.EncodeToString(h[:]) }
func sha224(s string) string    { h := sha256.Sum224([]byte(s)); return string(h[:]) }
func sha256sum(s string) string { h := sha256.Sum256([]byte(s)); return string(h[:]) }
func sha384(s string) string    { h := sha512.Sum384([]byte(s)); return string(h[:]) }
func sha512sum(s string) string { h := sha512.Sum512([]byte(s)); return string(h[:]) }

// digest is a function of the bytes of a string or of binary values.
func digest(of func(string) string, t arrow.DataType) function {
	return function{least: 1, most: 1, bind: func(b *binder, e *call, args []*node) (*node, error) {
		if fam := familyOf(args[0].typ); fam != famString && fam != famBinary && fam != famNull {
			return nil, b.src.errorf(args[0].at, "%s is for strings and bytes, and this is of type %s", e.name, typeText(args[0].typ))
		}
		return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
			n, one := f.length(vs...)
			s, out := stringsOf(vs[0].Array), newCellBuilder(t)
			defer out.Release()
			for i := range n {
				if vs[0].IsNull(i) {
					out.AppendNull()
				} else if err := out.add(cell{s: of(s.Value(i))}); err != nil {
					return vector{}, err
				}
			}
			return vector{f.own(out.NewArray()), one}, nil
		}, args...), nil
	}}
}

func signum(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return x
}

func (b *binder) power(e *call, args []*node) (*node, error) {
	for i, a := range args {
		x, err := b.toDouble(e, a)
		if err != nil {
			return nil, err
		}
		args[i] = x
	}
	t := arrow.PrimitiveTypes.Float64
	return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
		return eachNumber(f, vs[0], vs[1], t, func(x, y float64) (float64, error) { return math.Pow(x, y), nil })
	}, args...), nil
}

// extreme is the value that stands to all others as op says. Nulls do not count.
func (b *binder) extreme(e *call, op string, args []*node) (*node, error) {
	args, typ, err := b.commonOf(e.span, args)
	if err != nil {
		return nil, err
	}
	null := func(n *node) *node {
		return b.make(n.at, arrow.FixedWidthTypes.Boolean, false, func(f *frame, vs []vector) (vector, error) { return isNull(f, vs[0], false), nil }, n)
	}
	best := args[0]
	for _, x := range args[1:] {
		best, x = share(best), share(x)
		first, err := b.compare(e.span, op, best, x, false)
		if err != nil {
			return nil, err
		}
		best = b.choice(e.span, typ, []*node{null(best), null(x), first}, []*node{x, best, best, x})
	}
	return best, nil
}

func (b *binder) now(e *call, _ []*node) (*node, error) {
	return b.moment(e, timestampOf(arrow.Nanosecond), b.src.now.UnixNano())
}

func (b *binder) today(e *call, _ []*node) (*node, error) {
	return b.moment(e, arrow.FixedWidthTypes.Date32, floorDiv(b.src.now.Unix(), secondsADay))
}

func (b *binder) moment(e *call, t arrow.DataType, v int64) (*node, error) {
	a, err := constantOf(t, cell{i: v})
	if err != nil {
		return nil, err
	}
	return b.value(e.span, a), nil
}

// casting is a function that means a cast.
func casting(t arrow.DataType) func(b *binder, e *call, args []*node) (*node, error) {
	return func(b *binder, e *call, args []*node) (*node, error) { return b.cast(e.span, args[0], t, false) }
}

func (b *binder) fromUnixtime(e *call, args []*node) (*node, error) {
	if !isInteger(args[0].typ) {
		return nil, b.src.errorf(args[0].at, "from_unixtime is for whole numbers, and this is of type %s", typeText(args[0].typ))
	}
	n, err := b.castTo(args[0], arrow.PrimitiveTypes.Int64)
	if err != nil {
		return nil, err
	}
	return b.cast(e.span, n, timestampOf(arrow.Second), false)
}

func (b *binder) toTimestamp(e *call, args []*node) (*node, error) {
	x := args[0]
	if isInteger(x.typ) {
		var err error
		if x, err = b.fromUnixtime(e, args); err != nil {
			return nil, err
		}
	}
	return b.cast(e.span, x, timestampOf(arrow.Nanosecond), false)
}
