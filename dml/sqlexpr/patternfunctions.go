package sqlexpr

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

func patternFunctions() []*Function {
	s := param("s", KindText)
	pattern := param("pattern", KindText).like("'x'", "'^a'", "'[a-z]+'", "'(.)(.)'", `'\d'`, `'\w+'`, `'\W'`, `'\s|é'`, `'[\dé]'`, "'.'", "''", "'l+|X'", "s2")
	flags := param("flags", KindText).optional().like("'i'", "''", "'s'", "'im'")
	return []*Function{
		{Name: "regexp_like", Aliases: []string{"regexp_match"}, Params: []Param{s, pattern, flags}, Result: "boolean",
			Doc: "whether the regular expression matches anywhere; flags: i ignores case, s lets . match a line's end, m lets ^ and $ match at lines, U makes repetitions short", Nulls: NullSpecial,
			Differs: "the value of the engines' regexp_match is the list of what matched, null without a match", bind: (*binder).regexpLike},
		{Name: "regexp_replace", Params: []Param{s, pattern, param("by", KindText).like("'_'", `'<\1>'`, "'$0$0'", "''", "s2"), param("flags", KindText).optional().like("'g'", "'i'", "'gi'", "''")}, Result: "text",
			Doc: `the first match replaced, with the flag g each one; \1 and ${1} are what the first group matched`, bind: (*binder).regexpReplace},
		{Name: "regexp_count", Params: []Param{s, pattern}, Result: "bigint", Nulls: NullSpecial, Doc: "how many matches there are, 0 of a null text", bind: (*binder).regexpCount},
	}
}

// flagText is the flags of a regular expression as Go writes them before it. Global
// says whether g is among them.
func flagText(name, flags string, mayBeGlobal bool) (prefix string, global bool, err error) {
	var out strings.Builder
	for _, c := range flags {
		switch {
		case c == 'g' && mayBeGlobal:
			global = true
		case strings.ContainsRune("imsU", c):
			if !strings.ContainsRune(out.String(), c) {
				out.WriteRune(c)
			}
		case c == 'u': // always so
		default:
			return "", false, fmt.Errorf("%s has no flag %q", name, c)
		}
	}
	if out.Len() == 0 {
		return "", global, nil
	}
	return "(?" + out.String() + ")", global, nil
}

// The classes \d, \w and \s of the engine's regular expressions know all of Unicode;
// Go's know ASCII alone.
const (
	digitClass = `\p{Nd}`
	wordClass  = `\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}`
	spaceClass = `\t\n\v\f\r\x{85}\p{Z}`
)

// compileRegexp compiles a regular expression with the engine's meaning of \d, \w and \s.
func compileRegexp(prefix, pattern string) (*regexp.Regexp, error) {
	var out strings.Builder
	class := 0 // how deep in brackets
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\\' && i+1 < len(pattern):
			i++
			text, err := escapedClass(pattern[i], class > 0)
			if err != nil {
				return nil, err
			}
			out.WriteString(text)
			continue
		case c == '[' && class == 0:
			class = 1
			out.WriteByte(c)
			// A bracket that closes is one of the characters if it is the first.
			for _, first := range []string{"^", "]"} {
				if strings.HasPrefix(pattern[i+1:], first) {
					out.WriteString(first)
					i++
				}
			}
			continue
		case c == '[' && !strings.HasPrefix(pattern[i:], "[:"):
			return nil, fmt.Errorf("a class within a class is not handled in %q", pattern)
		case c == '[':
			end := strings.Index(pattern[i:], ":]")
			if end < 0 {
				return nil, fmt.Errorf("a class that is not closed in %q", pattern)
			}
			out.WriteString(pattern[i : i+end+2])
			i += end + 1
			continue
		case class > 0 && strings.HasPrefix(pattern[i:], "&&"), class > 0 && strings.HasPrefix(pattern[i:], "--"), class > 0 && strings.HasPrefix(pattern[i:], "~~"):
			return nil, fmt.Errorf("operations on classes are not handled in %q", pattern)
		case c == ']' && class > 0:
			class = 0
		}
		out.WriteByte(c)
	}
	return regexp.Compile(prefix + out.String())
}

// escapedClass is what is written for a backslash and a letter.
func escapedClass(c byte, inClass bool) (string, error) {
	classes := map[byte]string{'d': digitClass, 'w': wordClass, 's': spaceClass}
	if text, ok := classes[c]; ok {
		if inClass {
			return text, nil
		}
		return "[" + text + "]", nil
	}
	if text, ok := classes[c|0x20]; ok && c != c|0x20 {
		if inClass {
			return "", fmt.Errorf(`\%c in a class is not handled`, c)
		}
		return "[^" + text + "]", nil
	}
	return `\` + string(rune(c)), nil
}

// lastRegexp compiles regular expressions and keeps the last one.
type lastRegexp struct {
	prefix, pattern string
	re              *regexp.Regexp
}

func (l *lastRegexp) get(prefix, pattern string) (*regexp.Regexp, error) {
	if l.re == nil || l.prefix != prefix || l.pattern != pattern {
		re, err := compileRegexp(prefix, pattern)
		if err != nil {
			return nil, err
		}
		*l = lastRegexp{prefix, pattern, re}
	}
	return l.re, nil
}

// regexpLike says whether a regular expression matches anywhere in a string. In a
// condition the engine's regexp_match says the same, so it is one with it here.
func (b *binder) regexpLike(e *call, args []*node) (*node, error) {
	if len(args) == 2 {
		return b.matching(e.span, args[0], args[1], func(p string) (matcher, error) {
			re, err := compileRegexp("", p)
			if err != nil {
				return nil, err
			}
			return re.MatchString, nil
		}, false)
	}
	// Flags that are null are none.
	flags, err := b.orEmpty(e, args[2])
	if err != nil {
		return nil, err
	}
	return b.pattern(e, []*node{args[0], args[1], flags}, func(args []*node) (*node, error) {
		return b.truths(e, true, func() func(r *row) (bool, error) {
			var last lastRegexp
			return func(r *row) (bool, error) {
				prefix, _, err := flagText(e.name, r.s(2), false)
				if err != nil {
					return false, err
				}
				re, err := last.get(prefix, r.s(1))
				if err != nil {
					return false, err
				}
				return re.MatchString(r.s(0)), nil
			}
		}(), args...)
	})
}

// pattern binds a function with a regular expression, which is compiled at once if it
// is the same for every row: a wrong one is found before any row is.
func (b *binder) pattern(e *call, args []*node, bind func([]*node) (*node, error)) (*node, error) {
	if p := args[1]; p.constant && !p.fallible {
		v, err := p.eval(constantFrame())
		if err != nil {
			return nil, err
		}
		if v.IsValid(0) {
			if _, err := compileRegexp("", stringsOf(v.Array).Value(0)); err != nil {
				return nil, b.src.errorf(p.at, "%w", err)
			}
		}
	}
	return bind(args)
}

// orEmpty is a text, empty where it is null.
func (b *binder) orEmpty(e *call, n *node) (*node, error) {
	empty, err := constantOf(arrow.BinaryTypes.String, cell{})
	if err != nil {
		return nil, err
	}
	if familyOf(n.typ) == famNull {
		return b.value(n.at, empty), nil
	}
	return b.coalesce(e.span, []*node{n, b.value(n.at, empty)})
}

// replacement turns \1 into ${1}, which Go knows; $ and ${name} are alike.
var backReference = regexp.MustCompile(`\\(\d+)`)

func (b *binder) regexpReplace(e *call, args []*node) (*node, error) {
	return b.pattern(e, args, func(args []*node) (*node, error) {
		var last lastRegexp
		return b.texts(e, stringType(args[0].typ), true, func(r *row) (string, bool, error) {
			flags := ""
			if len(args) > 3 {
				flags = r.s(3)
			}
			prefix, global, err := flagText(e.name, flags, true)
			if err != nil {
				return "", false, err
			}
			re, err := last.get(prefix, r.s(1))
			if err != nil {
				return "", false, err
			}
			return replaceMatches(r, re, r.s(0), backReference.ReplaceAllString(r.s(2), "$${$1}"), global)
		}, args...)
	})
}

func replaceMatches(r *row, re *regexp.Regexp, s, by string, global bool) (string, bool, error) {
	most := 1
	if global {
		most = -1
	}
	var out []byte
	at := 0
	for _, m := range re.FindAllStringSubmatchIndex(s, most) {
		out = append(out, s[at:m[0]]...)
		out = re.ExpandString(out, by, s, m)
		if err := r.room(int64(len(out))); err != nil {
			return "", false, err
		}
		at = m[1]
	}
	return string(append(out, s[at:]...)), true, nil
}

func (b *binder) regexpCount(e *call, args []*node) (*node, error) {
	return b.pattern(e, args, func(args []*node) (*node, error) {
		var last lastRegexp
		n, err := numbersOf(b, e, arrow.PrimitiveTypes.Int64, true, func(r *row) (int64, error) {
			re, err := last.get("", r.s(1))
			if err != nil {
				return 0, err
			}
			return int64(len(re.FindAllStringIndex(r.s(0), -1))), nil
		}, args...)
		if err != nil {
			return nil, err
		}
		zero, err := constantOf(arrow.PrimitiveTypes.Int64, cell{})
		if err != nil {
			return nil, err
		}
		return b.coalesce(e.span, []*node{n, b.value(e.span, zero)})
	})
}
