package rowjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// scanner reads the tokens of one JSON text. Its caller knows from the schema what has
// to come next, so it builds no tree of values, and the text does not control the depth
// of recursion.
type scanner struct {
	text []byte
	at   int
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// peek is the next byte that is no space, 0 at the end.
func (s *scanner) peek() byte {
	for s.at < len(s.text) && isSpace(s.text[s.at]) {
		s.at++
	}
	if s.at == len(s.text) {
		return 0
	}
	return s.text[s.at]
}

// next says whether c comes next, and if so takes it.
func (s *scanner) next(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

func (s *scanner) expect(c byte) error {
	if s.next(c) {
		return nil
	}
	return s.unexpected(fmt.Sprintf("%q", string(c)))
}

// unexpected says what is there instead of what was wanted.
func (s *scanner) unexpected(want string) error {
	if s.peek() == 0 && s.at == len(s.text) {
		return fmt.Errorf("the line ends where %s was expected", want)
	}
	return fmt.Errorf("%s where %s was expected", s.excerpt(), want)
}

// excerpt shows the token that comes next, for messages.
func (s *scanner) excerpt() string {
	const longest = 24
	switch s.peek() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		from := s.at
		text, err := s.str()
		s.at = from
		if err == nil {
			return shorten(text, longest)
		}
	}
	end := s.at
	for end < len(s.text) && end < s.at+longest && isWord(s.text[end]) {
		end++
	}
	if end == s.at {
		_, n := utf8.DecodeRune(s.text[s.at:])
		end += n
	}
	return string(s.text[s.at:end])
}

// shorten quotes the beginning of a value, for messages.
func shorten[T ~string | ~[]byte](text T, longest int) string {
	short := fmt.Sprintf("%.*q", longest, text)
	if utf8.RuneCountInString(string(text)) > longest {
		short += " and more"
	}
	return short
}

// null takes a null if one comes next.
func (s *scanner) null() bool { return s.peek() == 'n' && s.word("null") }

// word takes a word that comes next and is not followed by more of it.
func (s *scanner) word(w string) bool {
	end := s.at + len(w)
	if end > len(s.text) || string(s.text[s.at:end]) != w {
		return false
	}
	if end < len(s.text) && isWord(s.text[end]) {
		return false
	}
	s.at = end
	return true
}

func isWord(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || c == '.' || c == '-' || c == '+' || c >= utf8.RuneSelf
}

var errNoNumber = errors.New("no number")

// number takes a number and returns its text, which is valid JSON.
func (s *scanner) number() ([]byte, error) {
	s.peek()
	from := s.at
	digits := func() bool {
		start := s.at
		for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
			s.at++
		}
		return s.at > start
	}
	take := func(c byte) bool {
		if s.at < len(s.text) && s.text[s.at] == c {
			s.at++
			return true
		}
		return false
	}
	take('-')
	ok := take('0') || digits()
	if ok && take('.') {
		ok = digits()
	}
	if ok && (take('e') || take('E')) {
		_ = take('+') || take('-')
		ok = digits()
	}
	if !ok || s.at < len(s.text) && isWord(s.text[s.at]) {
		s.at = from
		return nil, errNoNumber
	}
	return s.text[from:s.at], nil
}

// str takes a string and returns what it stands for. The result is valid until the
// line is.
func (s *scanner) str() ([]byte, error) {
	if s.peek() != '"' {
		return nil, s.unexpected("a string")
	}
	from := s.at
	plain := true
	for i := from + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '"':
			s.at = i + 1
			if plain {
				return s.text[from+1 : i], nil
			}
			return unquote(s.text[from : i+1])
		case c == '\\':
			plain = false
			i++ // whatever it is, it does not end the string
		case c < 0x20:
			return nil, fmt.Errorf("the control character %#02x in a string", c)
		}
	}
	return nil, errors.New("a string that does not end")
}

// unquote resolves escapes. Half a surrogate pair is refused: encoding/json would
// put U+FFFD in its place, and the value would be another.
func unquote(quoted []byte) ([]byte, error) {
	var out string
	if err := json.Unmarshal(quoted, &out); err != nil {
		return nil, fmt.Errorf("the string %.40s: %w", quoted, err)
	}
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		i++
		if quoted[i] != 'u' {
			continue
		}
		first := hex4(quoted[i+1:])
		i += 4
		if first < 0xd800 || first > 0xdfff {
			continue
		}
		if rest := quoted[i+1:]; first < 0xdc00 && len(rest) >= 6 && rest[0] == '\\' && rest[1] == 'u' {
			if second := hex4(rest[2:]); second >= 0xdc00 && second <= 0xdfff {
				i += 6
				continue
			}
		}
		return nil, fmt.Errorf("the string %.40s has half a surrogate pair, which is no character", quoted)
	}
	return []byte(out), nil
}

// hex4 reads four hexadecimal digits that are known to be there.
func hex4(b []byte) (v int) {
	for _, c := range b[:4] {
		switch {
		case c >= 'a':
			c -= 'a' - 10
		case c >= 'A':
			c -= 'A' - 10
		default:
			c -= '0'
		}
		v = v<<4 | int(c)
	}
	return v
}

// end says that nothing follows but space.
func (s *scanner) end() error {
	if s.peek(); s.at < len(s.text) {
		return fmt.Errorf("%s after the end of the row", s.excerpt())
	}
	return nil
}
