package sqlexpr

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

func formatHex(v uint64) string { return strconv.FormatUint(v, 16) }

func textFunctions() []*Function {
	s, part := param("s", KindText), param("part", KindText).like("'x'", "''", "'é'", "s2")
	count := param("n", KindWhole).like("0", "1", "2", "5", "-1", "-3", "n", "i32", "i64")
	size := param("n", KindWhole).like("0", "1", "2", "7", "-1", "n", "i8", "u8")
	fill := param("fill", KindText).optional().like("'x'", "'é'", "''", "'ab'", "s2")
	any := param("x", KindAny&^KindStruct&^KindList&^KindBytes&^KindDuration)
	upper, capitals := text1("upper", "in capitals; a letter stays one letter", strings.ToUpper), text1("initcap", "each word with a capital first, the rest small", initcap)
	upper.Differs, capitals.Differs = "engines write `ß` as `SS`", "engines write `ß` as `SS`"
	return []*Function{
		text1("lower", "in small letters", lower), upper, capitals,
		text1("reverse", "the characters from the last to the first", reverse),
		{Name: "length", Aliases: []string{"char_length", "character_length"}, Params: []Param{param("s", KindText|KindBytes)}, Result: "int, bigint of a large text", Doc: "how many characters there are, of bytes that are UTF-8 too", bind: (*binder).length},
		{Name: "octet_length", Params: []Param{param("s", KindText|KindBytes)}, Result: "int, bigint of a large text", Doc: "how many bytes there are", Differs: "engines refuse bytes", bind: (*binder).octetLength},
		{Name: "bit_length", Params: []Param{param("s", KindText|KindBytes)}, Result: "int, bigint of a large text", Doc: "how many bits there are", Differs: "engines refuse bytes", bind: (*binder).bitLength},
		{Name: "ascii", Params: []Param{s}, Result: "int", Doc: "the code point of the first character, 0 of an empty text", bind: (*binder).ascii},
		{Name: "concat", Params: []Param{any}, Variadic: true, Result: "text", Nulls: NullIgnored, Doc: "the texts of the arguments, joined", bind: (*binder).concat},
		{Name: "concat_ws", Params: []Param{param("separator", KindText).like("'-'", "''", "', '", "s2"), any}, Variadic: true, Result: "text", Nulls: NullSpecial,
			Doc: "the texts of the arguments that are not null, joined by the separator; null if that is", bind: (*binder).concatWith},
		{Name: "repeat", Params: []Param{s, size}, Result: "text", Doc: "n times the text, none below one", bind: (*binder).repeat},
		{Name: "lpad", Params: []Param{s, size, fill}, Result: "text", Doc: "filled on the left up to n characters, with spaces by default, or cut off to so many",
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.pad(e, args, true) }},
		{Name: "rpad", Params: []Param{s, size, fill}, Result: "text", Doc: "filled on the right up to n characters, with spaces by default, or cut off to so many",
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.pad(e, args, false) }},
		trimming("btrim", "without the characters of set, or spaces, at both ends", strings.Trim, "trim"),
		trimming("ltrim", "without the characters of set, or spaces, at the start", strings.TrimLeft),
		trimming("rtrim", "without the characters of set, or spaces, at the end", strings.TrimRight),
		slicing("left", "the first n characters; below zero all but the last -n", []Param{s, count}, func(s []rune, n []int64) []rune { return s[:clamp(fromEnd(n[0], len(s)), len(s))] }),
		slicing("right", "the last n characters; below zero all but the first -n", []Param{s, count}, func(s []rune, n []int64) []rune { return s[len(s)-clamp(fromEnd(n[0], len(s)), len(s)):] }),
		slicing("substr", "the characters from start on, which is 1 for the first, or so many of them", []Param{s, param("start", KindWhole), param("n", KindWhole).optional()}, substring, "substring"),
		{Name: "split_part", Params: []Param{s, param("separator", KindText).like("'x'", "''", "'l'", "s2"), count}, Result: "text", Doc: "the n-th part between separators, from the end below zero, empty if there is none", bind: (*binder).splitPart},
		{Name: "substr_index", Aliases: []string{"substring_index"}, Params: []Param{s, param("separator", KindText).like("'x'", "''", "'l'", "s2"), count}, Result: "text", Doc: "what is before the n-th separator, below zero after it from the end", bind: (*binder).beforeSeparator},
		{Name: "replace", Params: []Param{s, part, param("by", KindText).like("''", "'zz'", "s2")}, Result: "text", Doc: "with each occurrence of part replaced", bind: (*binder).replace},
		{Name: "translate", Params: []Param{s, param("from", KindText).like("'ax'", "''", "'éxx'", "s2"), param("to", KindText).like("'b'", "''", "'éyz'", "s2")}, Result: "text",
			Doc: "with each character of from replaced by the one of to at its place, or left out if there is none", bind: (*binder).translateText},
		{Name: "strpos", Aliases: []string{"instr", "position"}, Params: []Param{s, part}, Result: "int, bigint of a large text", Doc: "where part is found first, 1 for the first character; 0 if it is not", bind: (*binder).strpos},
		textTest("starts_with", "whether s starts with part", strings.HasPrefix), textTest("ends_with", "whether s ends with part", strings.HasSuffix),
		textTest("contains", "whether part is in s", strings.Contains),
	}
}

// stringType is the type of a string that is made of another one.
func stringType(t arrow.DataType) arrow.DataType {
	if t.ID() == arrow.LARGE_STRING {
		return t
	}
	return arrow.BinaryTypes.String
}

// text1 is a function of a text that makes one.
func text1(name, doc string, of func(string) string) *Function {
	return &Function{Name: name, Params: []Param{param("s", KindText)}, Result: "text", Doc: doc, bind: func(b *binder, e *call, args []*node) (*node, error) {
		return b.texts(e, stringType(args[0].typ), false, func(r *row) (string, bool, error) { return of(r.s(0)), true, nil }, args...)
	}}
}

func textTest(name, doc string, of func(s, part string) bool) *Function {
	return &Function{Name: name, Params: []Param{param("s", KindText), param("part", KindText).like("'x'", "''", "'é'", "s2")}, Result: "boolean", Doc: doc, bind: func(b *binder, e *call, args []*node) (*node, error) {
		return b.truths(e, false, func(r *row) (bool, error) { return of(r.s(0), r.s(1)), nil }, args...)
	}}
}

// trimming takes the characters of the second argument, or spaces, off the ends.
func trimming(name, doc string, of func(s, cutset string) string, aliases ...string) *Function {
	set := param("set", KindText).optional().like("'x'", "''", "'ab '", "s2")
	f := &Function{Name: name, Aliases: aliases, Params: []Param{param("s", KindText), set}, Result: "text", Doc: doc, bind: func(b *binder, e *call, args []*node) (*node, error) {
		return b.texts(e, stringType(args[0].typ), false, func(r *row) (string, bool, error) {
			if len(args) == 1 {
				return of(r.s(0), " "), true, nil
			}
			return of(r.s(0), r.s(1)), true, nil
		}, args...)
	}}
	if len(aliases) > 0 {
		f.Differs = "Lance's parser refuses the name trim"
	}
	return f
}

// slicing takes a part of a string, by numbers of characters.
func slicing(name, doc string, params []Param, of func(s []rune, n []int64) []rune, aliases ...string) *Function {
	f := &Function{Name: name, Aliases: aliases, Params: params, Result: "text", Doc: doc, bind: func(b *binder, e *call, args []*node) (*node, error) {
		if err := b.castEach(args, nil, arrow.PrimitiveTypes.Int64); err != nil {
			return nil, err
		}
		n := make([]int64, len(args)-1)
		return b.texts(e, stringType(args[0].typ), false, func(r *row) (string, bool, error) {
			n := slices.Clone(n)
			for j := range n {
				n[j] = r.n(j + 1)
			}
			return string(of([]rune(r.s(0)), n)), true, nil
		}, args...)
	}}
	if len(aliases) > 0 {
		f.Differs = "Lance's parser refuses it"
	}
	return f
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

// initcap makes the first letter of each word a capital: words are letters and digits.
func initcap(s string) string {
	var b strings.Builder
	inside := false
	for _, r := range s {
		if inside {
			b.WriteString(lower(string(r)))
		} else {
			b.WriteRune(unicode.ToUpper(r))
		}
		inside = unicode.IsLetter(r) || unicode.IsNumber(r)
	}
	return b.String()
}

func reverse(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

// countType is the type of a length: that of the offsets of the strings.
func countType(t arrow.DataType) arrow.DataType {
	if t.ID() == arrow.LARGE_STRING || t.ID() == arrow.LARGE_BINARY {
		return arrow.PrimitiveTypes.Int64
	}
	return arrow.PrimitiveTypes.Int32
}

// counting makes a number of texts, of the type of their offsets.
func (b *binder) counting(e *call, args []*node, of func(r *row) int) (*node, error) {
	n, err := numbersOf(b, e, arrow.PrimitiveTypes.Int64, false, func(r *row) (int64, error) { return int64(of(r)), nil }, args...)
	if err != nil {
		return nil, err
	}
	return b.castTo(n, countType(args[0].typ))
}

func (b *binder) length(e *call, args []*node) (*node, error) {
	if familyOf(args[0].typ) != famBinary {
		return b.counting(e, args, func(r *row) int { return utf8.RuneCountInString(r.s(0)) })
	}
	// Engines take the bytes for text, and fail where they are not.
	n, err := numbersOf(b, e, arrow.PrimitiveTypes.Int64, true, func(r *row) (int64, error) {
		if !utf8.ValidString(r.s(0)) {
			return 0, errors.New("bytes that are not UTF-8 have no length in characters: use octet_length")
		}
		return int64(utf8.RuneCountInString(r.s(0))), nil
	}, args...)
	if err != nil {
		return nil, err
	}
	return b.castTo(n, countType(args[0].typ))
}

func (b *binder) octetLength(e *call, args []*node) (*node, error) {
	return b.counting(e, args, func(r *row) int { return len(r.s(0)) })
}

func (b *binder) bitLength(e *call, args []*node) (*node, error) {
	return b.counting(e, args, func(r *row) int { return 8 * len(r.s(0)) })
}

func (b *binder) strpos(e *call, args []*node) (*node, error) {
	return b.counting(e, args, func(r *row) int {
		s := r.s(0)
		if i := strings.Index(s, r.s(1)); i >= 0 {
			return utf8.RuneCountInString(s[:i]) + 1
		}
		return 0
	})
}

func (b *binder) ascii(e *call, args []*node) (*node, error) {
	return numbersOf(b, e, arrow.PrimitiveTypes.Int32, false, func(r *row) (int32, error) {
		for _, c := range r.s(0) {
			return c, nil
		}
		return 0, nil
	}, args...)
}

func (b *binder) replace(e *call, args []*node) (*node, error) {
	return b.texts(e, stringType(args[0].typ), true, func(r *row) (string, bool, error) {
		s, from, to := r.s(0), r.s(1), r.s(2)
		if grows := len(to) - len(from); grows > 0 {
			if err := r.room(int64(len(s)) + int64(strings.Count(s, from))*int64(grows)); err != nil {
				return "", false, err
			}
		}
		return strings.ReplaceAll(s, from, to), true, nil
	}, args...)
}

func (b *binder) translateText(e *call, args []*node) (*node, error) {
	return b.texts(e, stringType(args[0].typ), false, func(r *row) (string, bool, error) {
		to := []rune(r.s(2))
		by := map[rune]rune{}
		at := 0
		for _, c := range r.s(1) {
			if _, again := by[c]; !again {
				if by[c] = -1; at < len(to) { // strings.Map leaves out what is below zero
					by[c] = to[at]
				}
			}
			at++
		}
		return strings.Map(func(c rune) rune {
			if d, ok := by[c]; ok {
				return d
			}
			return c
		}, r.s(0)), true, nil
	}, args...)
}

func (b *binder) repeat(e *call, args []*node) (*node, error) {
	if err := b.castEach(args, nil, arrow.PrimitiveTypes.Int64); err != nil {
		return nil, err
	}
	return b.texts(e, stringType(args[0].typ), true, func(r *row) (string, bool, error) {
		s, n := r.s(0), max(r.n(1), 0)
		if s == "" {
			return "", true, nil
		}
		if n > maxText {
			n = maxText + 1
		}
		if err := r.room(int64(len(s)) * n); err != nil {
			return "", false, err
		}
		return strings.Repeat(s, int(n)), true, nil
	}, args...)
}

// pad fills texts up to a number of characters, and cuts them off to as many.
func (b *binder) pad(e *call, args []*node, left bool) (*node, error) {
	if err := b.castEach(args, nil, arrow.PrimitiveTypes.Int64, nil); err != nil {
		return nil, err
	}
	return b.texts(e, stringType(args[0].typ), true, func(r *row) (string, bool, error) {
		s, n, fill := r.s(0), max(r.n(1), 0), " "
		if len(args) > 2 {
			fill = r.s(2)
		}
		n = min(n, maxText+1) // so many are refused below
		have := utf8.RuneCountInString(s)
		if int(n) <= have {
			return string([]rune(s)[:n]), true, nil
		}
		with := []rune(fill)
		if len(with) == 0 {
			return s, true, nil
		}
		missing := int(n) - have
		times, rest := missing/len(with), string(with[:missing%len(with)])
		if err := r.room(int64(len(s)) + int64(times)*int64(len(fill)) + int64(len(rest))); err != nil {
			return "", false, err
		}
		padding := strings.Repeat(fill, times) + rest
		if left {
			return padding + s, true, nil
		}
		return s + padding, true, nil
	}, args...)
}

var errPartZero = errors.New("the number of the part is zero; the first is 1")

// splitPart is a part of a text between separators. An empty separator separates
// nothing.
func (b *binder) splitPart(e *call, args []*node) (*node, error) {
	if err := b.castEach(args, nil, nil, arrow.PrimitiveTypes.Int64); err != nil {
		return nil, err
	}
	return b.texts(e, stringType(args[0].typ), true, func(r *row) (string, bool, error) {
		s, sep, n := r.s(0), r.s(1), r.n(2)
		parts := []string{s}
		if sep != "" {
			parts = strings.Split(s, sep)
		}
		switch have := int64(len(parts)); {
		case n == 0:
			return "", false, errPartZero
		case n > 0 && n <= have:
			return parts[n-1], true, nil
		case n < 0 && n >= -have:
			return parts[have+n], true, nil
		}
		return "", true, nil
	}, args...)
}

func (b *binder) beforeSeparator(e *call, args []*node) (*node, error) {
	if err := b.castEach(args, nil, nil, arrow.PrimitiveTypes.Int64); err != nil {
		return nil, err
	}
	return b.texts(e, stringType(args[0].typ), false, func(r *row) (string, bool, error) {
		s, sep, n := r.s(0), r.s(1), r.n(2)
		if n == 0 || sep == "" {
			return "", true, nil
		}
		parts := strings.Split(s, sep)
		if have := int64(len(parts)); n > 0 {
			parts = parts[:min(n, have)]
		} else {
			parts = parts[have+max(n, -have):]
		}
		return strings.Join(parts, sep), true, nil
	}, args...)
}

// concat joins the texts of its arguments; a null adds nothing.
func (b *binder) concat(e *call, args []*node) (*node, error) { return b.join(e, args, nil) }

// concatWith joins the texts of its arguments with the first one between them.
func (b *binder) concatWith(e *call, args []*node) (*node, error) {
	return b.join(e, args[1:], args[0])
}

func (b *binder) join(e *call, args []*node, separator *node) (*node, error) {
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
	inputs := slices.Clone(args)
	if separator != nil {
		inputs = append(inputs, separator)
	}
	return b.make(e.span, t, true, func(f *frame, vs []vector) (vector, error) {
		parts, r, between := vs[:len(args)], newRow(vs), len(vs)-1
		// Rows are null where the separator is, and not because a part is.
		n, one := f.length(vs...)
		rows := []vector{numbers(f, arrow.PrimitiveTypes.Int8, one, make([]int8, n), nil, 0)}
		if separator != nil {
			rows = append(rows, vs[between])
		}
		var failed error
		out := f.rowStrings(t, func(i int) (string, bool) {
			var sb strings.Builder
			r.at = i
			first := true
			for j, v := range parts {
				if failed != nil || v.IsNull(i*v.step()) {
					continue
				}
				if separator != nil && !first {
					sb.WriteString(r.s(between))
				}
				first = false
				s := r.s(j)
				if failed = r.room(int64(sb.Len() + len(s))); failed == nil {
					sb.WriteString(s)
				}
			}
			r.left -= sb.Len()
			return sb.String(), true
		}, rows...)
		return out, failed
	}, inputs...), nil
}
