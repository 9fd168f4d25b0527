package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A table is no wider than the terminal, and loses no letter.
func TestReport19TablesFitTheWidth(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.StringMatching(`[a-zé,/ -]{0,60}`), 4, 4), 1, 6).Draw(rt, "rows")
		want := map[rune]int{}
		for _, row := range rows {
			for _, cell := range row {
				for _, r := range cell {
					want[r]++
				}
			}
		}
		var out bytes.Buffer
		p := &printer{w: &out}
		p.table([]string{"", "", "", ""}, rows)
		require.NoError(rt, p.err)
		got := map[rune]int{}
		for _, line := range strings.Split(out.String(), "\n") {
			require.LessOrEqual(rt, utf8.RuneCountInString(line), 80, "%q", line)
			for _, r := range line {
				got[r]++
			}
		}
		delete(want, ' ')
		delete(got, ' ')
		require.Equal(rt, want, got)
	})
}

func TestReport19LongTextsBreakAtWords(t *testing.T) {
	require.Equal(t, "left: its rows\nare scanned", wrap("left: its rows are scanned", 14))
	require.Equal(t, "data/\n0123456789\nab.lance", wrap("data/0123456789ab.lance", 10))
	require.Equal(t, "short", wrap("short", 10))
	require.Equal(t, "", wrap("", 10))
}
