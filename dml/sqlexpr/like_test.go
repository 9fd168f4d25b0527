package sqlexpr

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// LIKE is what a regular expression of the pattern is, with case and without.
func TestLikeIsARegularExpression(t *testing.T) {
	letters := []rune(`aAbé日%_\` + "\n")
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOfN(rapid.SampledFrom(letters), 0, 8).Draw(t, "text"))
		pattern := rapid.SliceOfN(rapid.SampledFrom(letters), 0, 8).Draw(t, "pattern")
		escape := rapid.SampledFrom([]rune(`\a%`)).Draw(t, "escape")
		fold := rapid.Bool().Draw(t, "fold")
		var expression strings.Builder
		for i := 0; i < len(pattern); i++ {
			switch r := pattern[i]; {
			case r == escape && i < len(pattern)-1:
				i++
				expression.WriteString(regexp.QuoteMeta(string(pattern[i])))
			case r == '%':
				expression.WriteString(".*")
			case r == '_':
				expression.WriteString(".")
			default:
				expression.WriteString(regexp.QuoteMeta(string(r)))
			}
		}
		flags := "s"
		if fold {
			flags = "si"
		}
		re := regexp.MustCompile("(?" + flags + ")^(?:" + expression.String() + ")$")
		require.Equal(t, re.MatchString(s), newMatcher(string(pattern), escape, fold)(s), "%q like %q", s, string(pattern))
	})
}
