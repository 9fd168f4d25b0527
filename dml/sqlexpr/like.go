package sqlexpr

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

// matcher says whether a string is like a pattern.
type matcher func(s string) bool

// patternStep is a step of a pattern: any text, any one character, or a certain one.
type patternStep struct {
	kind stepKind
	r    rune
}

type stepKind uint8

const (
	stepRune stepKind = iota
	stepOne
	stepMany
)

// newMatcher compiles a pattern of LIKE: % is any text, _ any one character, and what
// follows the escape stands for itself. An escape at the end stands for itself too.
// The common patterns, which have % only at their ends, are searches for a text.
func newMatcher(pattern string, escape rune, fold bool) matcher {
	var steps []patternStep
	var literal strings.Builder
	runes := []rune(pattern)
	for i := 0; i < len(runes); i++ {
		r := runes[i]
		switch {
		case r == escape && i < len(runes)-1:
			i++
			r = runes[i]
			steps = append(steps, patternStep{r: r})
			literal.WriteRune(r)
		case r == '%':
			if n := len(steps); n == 0 || steps[n-1].kind != stepMany {
				steps = append(steps, patternStep{kind: stepMany})
			}
		case r == '_':
			steps = append(steps, patternStep{kind: stepOne})
		default:
			steps = append(steps, patternStep{r: r})
			literal.WriteRune(r)
		}
	}
	n, lit := len(steps), literal.String()
	plain := func(steps []patternStep) bool {
		return !fold && !slices.ContainsFunc(steps, func(s patternStep) bool { return s.kind != stepRune })
	}
	switch {
	case n == 0 || plain(steps):
		return func(s string) bool { return s == lit }
	case steps[n-1].kind == stepMany && plain(steps[:n-1]):
		return func(s string) bool { return strings.HasPrefix(s, lit) }
	case steps[0].kind == stepMany && plain(steps[1:]):
		return func(s string) bool { return strings.HasSuffix(s, lit) }
	case steps[0].kind == stepMany && steps[n-1].kind == stepMany && n > 1 && plain(steps[1:n-1]):
		return func(s string) bool { return strings.Contains(s, lit) }
	}
	same := func(a, b rune) bool { return a == b }
	if fold {
		same = equalFold
	}
	return func(s string) bool { return matchSteps(s, steps, same) }
}

// equalFold says whether two characters differ at most in case.
func equalFold(a, b rune) bool {
	if a == b {
		return true
	}
	for r := unicode.SimpleFold(a); r != a; r = unicode.SimpleFold(r) {
		if r == b {
			return true
		}
	}
	return false
}

// matchSteps matches all of s. Where it fails, the last "any text" takes one character
// more; those before it never need to, so the time is at most the product of the
// lengths.
func matchSteps(s string, steps []patternStep, same func(a, b rune) bool) bool {
	at, step := 0, 0
	retry, many := 0, -1
	for at < len(s) {
		r, size := utf8.DecodeRuneInString(s[at:])
		switch {
		case step < len(steps) && steps[step].kind == stepMany:
			many, retry = step, at
			step++
		case step < len(steps) && (steps[step].kind == stepOne || same(steps[step].r, r)):
			step++
			at += size
		case many >= 0:
			_, size := utf8.DecodeRuneInString(s[retry:])
			retry += size
			at, step = retry, many+1
		default:
			return false
		}
	}
	for step < len(steps) && steps[step].kind == stepMany {
		step++
	}
	return step == len(steps)
}

func (b *binder) like(e *like) (*node, error) {
	ns, err := b.bindAll(e.x, e.pattern)
	if err != nil {
		return nil, err
	}
	x, pattern := b.plain(ns[0]), b.plain(ns[1])
	for _, n := range []*node{x, pattern} {
		if f := familyOf(n.typ); f != famString && f != famNull {
			return nil, b.src.errorf(n.at, "LIKE is for strings, and this is of type %s", typeText(n.typ))
		}
	}
	return b.matching(e.span, x, pattern, func(p string) (matcher, error) { return newMatcher(p, e.escape, e.fold), nil }, e.not)
}

// matching tests strings against patterns, which are compiled once if they are
// constant and else once in a row.
func (b *binder) matching(at span, x, pattern *node, compile func(string) (matcher, error), not bool) (*node, error) {
	var fixed matcher
	if pattern.constant && familyOf(pattern.typ) == famString {
		v, err := pattern.eval(constantFrame())
		if err != nil {
			return nil, err
		}
		if v.IsValid(0) {
			if fixed, err = compile(stringsOf(v.Array).Value(0)); err != nil {
				return nil, b.src.errorf(pattern.at, "%w", err)
			}
		}
	}
	return b.make(at, arrow.FixedWidthTypes.Boolean, fixed == nil, func(f *frame, vs []vector) (vector, error) {
		s, p := stringsOf(vs[0].Array), stringsOf(vs[1].Array)
		ss, ps := vs[0].step(), vs[1].step()
		if fixed != nil {
			return f.rowBools(func(i int) bool { return fixed(s.Value(i*ss)) != not }, vs...), nil
		}
		var last string
		var m matcher
		var failed error
		out := f.rowBools(func(i int) bool {
			if now := p.Value(i * ps); m == nil || now != last {
				var err error
				if m, err = compile(now); err != nil {
					failed, m = err, func(string) bool { return false }
				}
				last = now
			}
			return m(s.Value(i*ss)) != not
		}, vs...)
		return out, failed
	}, x, pattern), nil
}
