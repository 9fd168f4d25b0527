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
	require.Equal(t, "left: its rows\nare scanned", wrap("left: its rows are scanned", 14, true))
	require.Equal(t, "data/\n0123456789\nab.lance", wrap("data/0123456789ab.lance", 10, true))
	require.Equal(t, "short", wrap("short", 10, true))
	require.Equal(t, "", wrap("", 10, true))
}

// A path is in one piece where a program may read it.
func TestReport19PathsAreWholeInAPipe(t *testing.T) {
	t.Setenv("COLUMNS", "")
	path := "data/" + strings.Repeat("0123456789-", 12) + ".lance"
	var out bytes.Buffer
	p := &printer{w: &out}
	p.table([]string{"FILE", "WHOSE"}, [][]string{{path, strings.Repeat("left behind ", 10)}})
	require.Contains(t, out.String(), path)
	require.Equal(t, "a\n0123456789\nb", wrap("a 0123456789 b", 4, false))
	out.Reset()
	t.Setenv("COLUMNS", "80")
	p.table([]string{"FILE"}, [][]string{{path}})
	require.NotContains(t, out.String(), path)
}

// Prose is no wider than tables are, and loses no word.
func TestReport19ProseFitsTheWidth(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(` {0,4}([a-zé]{1,12} ){1,30}[a-z]{1,12}`).Draw(rt, "text")
		cut := rapid.IntRange(0, len(text)).Draw(rt, "cut")
		var out bytes.Buffer
		p := &printer{w: &out}
		p.f("%s", text[:cut])
		p.f("%s\n", text[cut:])
		require.NoError(rt, p.err)
		for _, line := range strings.Split(out.String(), "\n") {
			require.LessOrEqual(rt, utf8.RuneCountInString(line), 40, "%q", line)
		}
		require.Equal(rt, strings.Fields(text), strings.Fields(out.String()))
	})
	require.Equal(t, "  one two\n  three", wrapProse("  one two three", 10))
	require.Equal(t, "a\n"+strings.Repeat("/b", 9), wrapProse("a "+strings.Repeat("/b", 9), 10))
}
