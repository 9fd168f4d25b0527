package cli

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// usualWidth is that of a terminal that does not say how wide it is.
const usualWidth = 80

// lineWidth is how many columns there are: what COLUMNS says, the terminal's width, or
// that of the usual terminal.
func lineWidth(w io.Writer) int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if f, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
			return n
		}
	}
	return usualWidth
}

// knownWidth says whether somebody looks at lines of that width. If not, a program
// reads them, perhaps, and a path has to be in one piece.
func knownWidth(w io.Writer) bool {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return true
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// wrapProse breaks a line at blanks. What follows is indented as the line is. Words
// longer than a line stay whole.
func wrapProse(line string, width int) string {
	if utf8.RuneCountInString(line) <= width {
		return line
	}
	indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
	var out strings.Builder
	at := 0
	for i, word := range strings.Split(line[len(indent):], " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
			out.WriteString(indent)
			at = len(indent)
		case at+1+n > width:
			out.WriteString("\n" + indent)
			at = len(indent)
		default:
			out.WriteByte(' ')
			at++
		}
		out.WriteString(word)
		at += n
	}
	return out.String()
}

// wrapTable breaks the texts of the widest columns at blanks and, if words may be cut,
// at commas and within words, until the rows fit the width or no column can give more.
func wrapTable(rows [][]string, width int, cut bool) {
	const gap, least = 2, 12
	columns := 0
	for _, row := range rows {
		columns = max(columns, len(row))
	}
	widths := make([]int, columns)
	total := gap * (columns - 1)
	for i := range widths {
		for _, row := range rows {
			if i < len(row) {
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
			}
		}
		total += widths[i]
	}
	for total > width {
		widest := 0
		for i := range widths {
			if widths[i] > widths[widest] {
				widest = i
			}
		}
		if widths[widest] <= least {
			break
		}
		widths[widest]--
		total--
	}
	for _, row := range rows {
		for i := range row {
			row[i] = wrap(row[i], widths[i], cut)
		}
	}
}

// wrap breaks a text into lines of so many runes at most. Where a word is longer it is
// cut, if it may be: a path that is cut can still be put together, a table that is not cannot be read.
func wrap(text string, width int, cut bool) string {
	var lines []string
	for utf8.RuneCountInString(text) > width {
		runes := []rune(text)
		at := width
		if i := strings.LastIndexAny(string(runes[:width+1]), " "); i > 0 {
			at = utf8.RuneCountInString(string(runes[:width+1])[:i])
		} else if !cut {
			if at = slices.Index(runes, ' '); at < 0 {
				break
			}
		} else if i := strings.LastIndexAny(string(runes[:width]), ",/-"); i > 0 {
			at = utf8.RuneCountInString(string(runes[:width])[:i+1])
		}
		lines = append(lines, strings.TrimRight(string(runes[:at]), " "))
		text = strings.TrimLeft(string(runes[at:]), " ")
	}
	return strings.Join(append(lines, text), "\n")
}
