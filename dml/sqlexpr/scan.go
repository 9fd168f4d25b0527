package sqlexpr

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rehome-db/rehome/table"
)

// kind is what a token is.
type kind uint8

const (
	word    kind = iota // a name or a word of the language, without quotes
	quoted              // a name in backticks
	text                // a string in single or double quotes
	hexText             // x'…'
	number
	symbol // an operator or a bracket
)

// token is a piece of the user's text.
type token struct {
	kind kind
	at   span
	// val is the token without its quotes; of a symbol and a word as it stands.
	val string
	// upper is val in upper case if the token is a word, "" otherwise.
	upper string
}

// is says whether the token is the symbol.
func (t token) is(s string) bool { return t.kind == symbol && t.val == s }

// span is a range of bytes of the user's text.
type span struct{ from, to int }

// until is the span from the start of s to the end of end.
func (s span) until(end span) span { return span{s.from, end.to} }

// source is the user's text, which every message quotes.
type source struct {
	sql string
	// now is when the text was read: the one time that now() and its kind give, for all
	// rows and for every attempt.
	now time.Time
}

// errorf makes an error that names the place and quotes it.
func (s source) errorf(at span, format string, args ...any) error {
	return fmt.Errorf("sqlexpr: %s: %w", s.place(at), fmt.Errorf(format, args...))
}

// unsupportedf is errorf for what is good SQL but not handled here.
func (s source) unsupportedf(at span, format string, args ...any) error {
	return table.Unsupportedf("sqlexpr: %s: not supported: %w", s.place(at), fmt.Errorf(format, args...))
}

// place names a span: its first character, counted from 1, and its text.
func (s source) place(at span) string {
	from := min(max(at.from, 0), len(s.sql))
	to := min(max(at.to, from), len(s.sql))
	pos := utf8.RuneCountInString(s.sql[:from]) + 1
	if from == to {
		return fmt.Sprintf("at character %d", pos)
	}
	return fmt.Sprintf("at character %d, %s", pos, s.quote(span{from, to}))
}

// quote is the text of a span, shortened if it is long.
func (s source) quote(at span) string {
	const most = 60
	t := []rune(s.sql[at.from:at.to])
	if len(t) > most {
		return fmt.Sprintf("%q…", string(t[:most]))
	}
	return fmt.Sprintf("%q", string(t))
}

// symbols are the operators and brackets, longest first.
var symbols = []string{"<=>", "!~*", "!~~", "==", "<=", ">=", "<>", "!=", "||", "::", "->", "=>", "<<", ">>", "!~", "~*", "&&",
	"=", "<", ">", "+", "-", "*", "/", "%", "(", ")", "[", "]", ",", ".", "&", "|", "^", "~"}

// scan cuts the text into tokens, by the rules of Lance's dialect: names are quoted
// with backticks, strings with either quote, a quote in a string is written twice
// and a backslash stands for itself.
func scan(src source) ([]token, error) {
	var tokens []token
	sql := src.sql
	for i := 0; i < len(sql); {
		r, size := utf8.DecodeRuneInString(sql[i:])
		if r == utf8.RuneError && size == 1 {
			return nil, src.errorf(span{i, i + 1}, "not valid UTF-8")
		}
		switch {
		case unicode.IsSpace(r):
			i += size
		case strings.HasPrefix(sql[i:], "--"):
			if n := strings.IndexByte(sql[i:], '\n'); n >= 0 {
				i += n
			} else {
				i = len(sql)
			}
		case strings.HasPrefix(sql[i:], "/*"):
			n := strings.Index(sql[i+2:], "*/")
			if n < 0 {
				return nil, src.errorf(span{i, i + 2}, "a comment that does not end")
			}
			i += n + 4
		default:
			tok, err := scanToken(src, i, r, tokens)
			if err != nil {
				return nil, err
			}
			tokens = append(tokens, tok)
			i = tok.at.to
		}
	}
	return tokens, nil
}

// scanToken reads the token at i, which begins with r and comes after the others.
func scanToken(src source, i int, r rune, before []token) (token, error) {
	sql := src.sql
	switch {
	case r == '\'' || r == '"' || r == '`':
		val, end, err := scanQuoted(src, i)
		k := text
		if r == '`' {
			k = quoted
		}
		return token{kind: k, at: span{i, end}, val: val}, err
	case (r == 'x' || r == 'X') && strings.HasPrefix(sql[i+1:], "'"):
		val, end, err := scanQuoted(src, i+1)
		return token{kind: hexText, at: span{i, end}, val: val}, err
	case isDigit(sql[i]), r == '.' && i+1 < len(sql) && isDigit(sql[i+1]) && !endsOperand(before):
		end := scanNumber(sql, i)
		if next, size := utf8.DecodeRuneInString(sql[end:]); size > 0 && (next == '_' || unicode.IsLetter(next)) {
			return token{}, src.errorf(span{i, end + size}, "a number that runs into a name")
		}
		return token{kind: number, at: span{i, end}, val: sql[i:end]}, nil
	case r == '_' || unicode.IsLetter(r):
		end := i
		for end < len(sql) {
			r, size := utf8.DecodeRuneInString(sql[end:])
			if r != '_' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
				break
			}
			end += size
		}
		return token{kind: word, at: span{i, end}, val: sql[i:end], upper: strings.ToUpper(sql[i:end])}, nil
	}
	for _, s := range symbols {
		if strings.HasPrefix(sql[i:], s) {
			return token{kind: symbol, at: span{i, i + len(s)}, val: s}, nil
		}
	}
	return token{}, src.unsupportedf(span{i, i + utf8.RuneLen(r)}, "the character %q", r)
}

// scanQuoted returns what is between the quote at i and its match, and the offset
// after that.
func scanQuoted(src source, i int) (val string, end int, err error) {
	quote := src.sql[i]
	var b strings.Builder
	for j := i + 1; j < len(src.sql); j++ {
		switch c := src.sql[j]; {
		case c == 0:
			return "", 0, src.unsupportedf(span{j, j + 1}, "a zero byte")
		case c != quote:
			b.WriteByte(c)
		case j+1 < len(src.sql) && src.sql[j+1] == quote:
			b.WriteByte(c)
			j++
		case !utf8.ValidString(b.String()):
			return "", 0, src.errorf(span{i, j + 1}, "not valid UTF-8")
		default:
			return b.String(), j + 1, nil
		}
	}
	return "", 0, src.errorf(span{i, i + 1}, "a quote that does not end")
}

func scanNumber(sql string, i int) int {
	digits := func() {
		for i < len(sql) && isDigit(sql[i]) {
			i++
		}
	}
	digits()
	if i < len(sql) && sql[i] == '.' {
		i++
		digits()
	}
	if i < len(sql) && (sql[i] == 'e' || sql[i] == 'E') {
		j := i + 1
		if j < len(sql) && (sql[j] == '+' || sql[j] == '-') {
			j++
		}
		if j < len(sql) && isDigit(sql[j]) {
			i = j
			digits()
		}
	}
	return i
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
