package sqlexpr

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

func (b *binder) call(e *call) (*node, error) {
	fn, ok := functionsByName()[e.name]
	if !ok {
		names := slices.Sorted(maps.Keys(functionsByName()))
		return nil, b.src.unsupportedf(e.span, "the function %s; there are %s", e.name, strings.Join(names, ", "))
	}
	if n := len(e.args); n < fn.least || fn.most >= 0 && n > fn.most {
		return nil, b.src.errorf(e.span, "%s with %d arguments", e.name, n)
	}
	args, err := b.bindAll(e.args...)
	if err != nil {
		return nil, err
	}
	for i := range args {
		args[i] = b.plain(args[i])
	}
	return fn.bind(b, e, args)
}

// strings checks that arguments are strings.
func (b *binder) strings(e *call, args ...*node) error {
	for _, a := range args {
		if f := familyOf(a.typ); f != famString && f != famNull {
			return b.src.errorf(a.at, "%s is for strings, and this is of type %s", e.name, typeText(a.typ))
		}
	}
	return nil
}

// stringType is the type of a string that is made of another one.
func stringType(t arrow.DataType) arrow.DataType {
	if t.ID() == arrow.LARGE_STRING {
		return t
	}
	return arrow.BinaryTypes.String
}

func string1(of func(string) string) function {
	return function{least: 1, most: 1, bind: func(b *binder, e *call, args []*node) (*node, error) {
		t := stringType(args[0].typ)
		return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
			s, step := stringsOf(vs[0].Array), vs[0].step()
			return f.rowStrings(t, func(i int) (string, bool) { return of(s.Value(i * step)), true }, vs...), nil
		}, args...), b.strings(e, args...)
	}}
}

func string2(of func(a, b string) bool) function {
	return function{least: 2, most: 2, bind: func(b *binder, e *call, args []*node) (*node, error) {
		return b.make(e.span, arrow.FixedWidthTypes.Boolean, false, func(f *frame, vs []vector) (vector, error) {
			l, r := stringsOf(vs[0].Array), stringsOf(vs[1].Array)
			ls, rs := vs[0].step(), vs[1].step()
			return f.rowBools(func(i int) bool { return of(l.Value(i*ls), r.Value(i*rs)) }, vs...), nil
		}, args...), b.strings(e, args...)
	}}
}

// trimming takes the characters of the second argument, or spaces, off the ends.
func trimming(of func(s, cutset string) string) function {
	return function{least: 1, most: 2, bind: func(b *binder, e *call, args []*node) (*node, error) {
		t := stringType(args[0].typ)
		return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
			s, step := stringsOf(vs[0].Array), vs[0].step()
			if len(vs) == 1 {
				return f.rowStrings(t, func(i int) (string, bool) { return of(s.Value(i*step), " "), true }, vs...), nil
			}
			cut, cs := stringsOf(vs[1].Array), vs[1].step()
			return f.rowStrings(t, func(i int) (string, bool) { return of(s.Value(i*step), cut.Value(i*cs)), true }, vs...), nil
		}, args...), b.strings(e, args...)
	}}
}

// slicing takes a part of a string, by numbers of characters.
func slicing(of func(s []rune, n []int64) []rune, least, most int) function {
	return function{least: least, most: most, bind: func(b *binder, e *call, args []*node) (*node, error) {
		if err := b.strings(e, args[0]); err != nil {
			return nil, err
		}
		for i, a := range args[1:] {
			if !isInteger(a.typ) {
				return nil, b.src.errorf(a.at, "%s takes a whole number, and this is of type %s", e.name, typeText(a.typ))
			}
			n, err := b.castTo(a, arrow.PrimitiveTypes.Int64)
			if err != nil {
				return nil, err
			}
			args[i+1] = n
		}
		t := stringType(args[0].typ)
		return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
			s, n := stringsOf(vs[0].Array), make([]int64, len(vs)-1)
			return f.rowStrings(t, func(i int) (string, bool) {
				for j, v := range vs[1:] {
					n[j] = values[int64](v.Array)[i*v.step()]
				}
				return string(of([]rune(s.Value(i*vs[0].step())), n)), true
			}, vs...), nil
		}, args...), nil
	}}
}

// fromEnd is n, or if n is below zero all but the last -n.
func fromEnd(n int64, length int) int64 {
	if n < 0 {
		return int64(length) + max(n, -int64(length))
	}
	return n
}

func clamp(n int64, length int) int { return int(min(max(n, 0), int64(length))) }

// substring counts characters from 1; the part of it before the first is cut off.
func substring(s []rune, n []int64) []rune {
	from, to := n[0]-1, int64(len(s))
	if len(n) > 1 {
		to = min(from+max(n[1], 0), to)
		if from > math.MaxInt64-max(n[1], 0) {
			to = int64(len(s))
		}
	}
	lo, hi := clamp(from, len(s)), clamp(to, len(s))
	return s[lo:max(lo, hi)]
}

// lower makes letters small. The dotted capital I is the one letter that becomes two:
// an i would be found by who looks for those without its dot.
func lower(s string) string { return strings.ToLower(strings.ReplaceAll(s, "\u0130", "i\u0307")) }

func reverse(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// countType is the type of a length: that of the offsets of the strings.
func countType(t arrow.DataType) arrow.DataType {
	if t.ID() == arrow.LARGE_STRING {
		return arrow.PrimitiveTypes.Int64
	}
	return arrow.PrimitiveTypes.Int32
}

// counting makes a number of a string.
func (b *binder) counting(e *call, of func(s []string) int, args ...*node) (*node, error) {
	if err := b.strings(e, args...); err != nil {
		return nil, err
	}
	t := countType(args[0].typ)
	n := b.make(e.span, arrow.PrimitiveTypes.Int64, false, func(f *frame, vs []vector) (vector, error) {
		n, one := f.length(vs...)
		valid, nulls := f.validity(n, vs...)
		out, s := make([]int64, n), make([]string, len(vs))
		for i := range n {
			null := false
			for j, v := range vs {
				if null = null || v.IsNull(i*v.step()); !null {
					s[j] = stringsOf(v.Array).Value(i * v.step())
				}
			}
			if !null {
				out[i] = int64(of(s))
			}
		}
		return numbers(f, arrow.PrimitiveTypes.Int64, one, out, valid, nulls), nil
	}, args...)
	return b.castTo(n, t)
}

func (b *binder) length(e *call, args []*node) (*node, error) {
	return b.counting(e, func(s []string) int { return utf8.RuneCountInString(s[0]) }, args...)
}

func (b *binder) octetLength(e *call, args []*node) (*node, error) {
	return b.counting(e, func(s []string) int { return len(s[0]) }, args...)
}

func (b *binder) strpos(e *call, args []*node) (*node, error) {
	return b.counting(e, func(s []string) int {
		if i := strings.Index(s[0], s[1]); i >= 0 {
			return utf8.RuneCountInString(s[0][:i]) + 1
		}
		return 0
	}, args...)
}

func (b *binder) replace(e *call, args []*node) (*node, error) {
	t := stringType(args[0].typ)
	return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
		s, from, to := stringsOf(vs[0].Array), stringsOf(vs[1].Array), stringsOf(vs[2].Array)
		return f.rowStrings(t, func(i int) (string, bool) {
			return strings.ReplaceAll(s.Value(i*vs[0].step()), from.Value(i*vs[1].step()), to.Value(i*vs[2].step())), true
		}, vs...), nil
	}, args...), b.strings(e, args...)
}

// concat joins the texts of its arguments; a null adds nothing.
func (b *binder) concat(e *call, args []*node) (*node, error) {
	var t arrow.DataType = arrow.BinaryTypes.String
	for i, a := range args {
		if a.typ.ID() == arrow.LARGE_STRING {
			t = a.typ
		}
		s, err := b.text(a)
		if err != nil {
			return nil, err
		}
		args[i] = s
	}
	return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
		// Rows are never null, so the vectors are not given as what makes them so.
		n, one := f.length(vs...)
		rows := numbers(f, arrow.PrimitiveTypes.Int8, one, make([]int8, n), nil, 0)
		return f.rowStrings(t, func(i int) (string, bool) {
			var sb strings.Builder
			for _, v := range vs {
				if at := i * v.step(); v.IsValid(at) {
					sb.WriteString(stringsOf(v.Array).Value(at))
				}
			}
			return sb.String(), true
		}, rows), nil
	}, args...), nil
}

// text casts to a string unless it is one.
func (b *binder) text(n *node) (*node, error) {
	if familyOf(n.typ) == famString {
		return n, nil
	}
	return b.castTo(n, arrow.BinaryTypes.String)
}

// concatOperator is l || r: null if one is. One of them must be a string, or both
// bytes.
func (b *binder) concatOperator(at span, l, r *node) (*node, error) {
	l, r = b.plain(l), b.plain(r)
	lf, rf := familyOf(l.typ), familyOf(r.typ)
	if lf == famBinary && rf == famBinary {
		bin := arrow.BinaryTypes.Binary
		return b.make(at, bin, false, func(f *frame, vs []vector) (vector, error) {
			joined := f.rowStrings(arrow.BinaryTypes.String, func(i int) (string, bool) {
				return stringsOf(vs[0].Array).Value(i*vs[0].step()) + stringsOf(vs[1].Array).Value(i*vs[1].step()), true
			}, vs...)
			return castVector(f, joined, bin, false)
		}, l, r), nil
	}
	if lf != famString && rf != famString {
		return nil, b.src.errorf(at, "|| joins strings, not %s and %s", typeText(l.typ), typeText(r.typ))
	}
	t := stringType(l.typ)
	if r.typ.ID() == arrow.LARGE_STRING {
		t = r.typ
	}
	l, err := b.text(l)
	if err != nil {
		return nil, err
	}
	if r, err = b.text(r); err != nil {
		return nil, err
	}
	return b.make(at, t, false, func(f *frame, vs []vector) (vector, error) {
		ls, rs := stringsOf(vs[0].Array), stringsOf(vs[1].Array)
		return f.rowStrings(t, func(i int) (string, bool) { return ls.Value(i*vs[0].step()) + rs.Value(i*vs[1].step()), true }, vs...), nil
	}, l, r), nil
}

// regexpLike says whether a regular expression matches anywhere in a string. In a
// condition the engine's regexp_match says the same, so it is one with it here.
func (b *binder) regexpLike(e *call, args []*node) (*node, error) {
	if err := b.strings(e, args...); err != nil {
		return nil, err
	}
	prefix, _, err := b.regexpFlags(args[2:], "")
	if err != nil {
		return nil, err
	}
	return b.matching(e.span, args[0], args[1], func(p string) (matcher, error) {
		re, err := regexp.Compile(prefix + p)
		if err != nil {
			return nil, err
		}
		return re.MatchString, nil
	}, false)
}

func (b *binder) abs(e *call, args []*node) (*node, error) {
	x := args[0]
	if !isNumeric(x.typ) && familyOf(x.typ) != famNull {
		return nil, b.src.errorf(x.at, "abs is for numbers, and this is of type %s", typeText(x.typ))
	}
	return b.make(e.span, x.typ, familyOf(x.typ) == famInt, func(f *frame, vs []vector) (vector, error) { return absolute(f, vs[0]) }, x), nil
}

func (b *binder) isNaN(e *call, args []*node) (*node, error) {
	x, err := b.toDouble(e, args[0])
	if err != nil {
		return nil, err
	}
	return b.make(e.span, arrow.FixedWidthTypes.Boolean, false, func(f *frame, vs []vector) (vector, error) {
		v := values[float64](vs[0].Array)
		return f.rowBools(func(i int) bool { return math.IsNaN(v[i*vs[0].step()]) }, vs...), nil
	}, x), nil
}

func (b *binder) toDouble(e *call, x *node) (*node, error) {
	if !isNumeric(x.typ) && familyOf(x.typ) != famNull {
		return nil, b.src.errorf(x.at, "%s is for numbers, and this is of type %s", e.name, typeText(x.typ))
	}
	return b.castTo(x, arrow.PrimitiveTypes.Float64)
}

// float1 is a function of a number, in its own type if it is a float and else in
// double.
func float1(of func(float64) float64) function {
	return function{least: 1, most: 1, bind: func(b *binder, e *call, args []*node) (*node, error) {
		t := args[0].typ
		if familyOf(t) == famDecimal {
			return nil, b.src.unsupportedf(e.span, "%s of a decimal (cast it to double)", e.name)
		}
		x, err := b.toDouble(e, args[0])
		if err != nil {
			return nil, err
		}
		n := b.make(e.span, arrow.PrimitiveTypes.Float64, false, func(f *frame, vs []vector) (vector, error) {
			return eachNumber(f, vs[0], vs[0], arrow.PrimitiveTypes.Float64, func(a, _ float64) (float64, error) { return of(a), nil })
		}, x)
		if t.ID() == arrow.FLOAT32 {
			return b.castTo(n, t)
		}
		return n, nil
	}}
}
