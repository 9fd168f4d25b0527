package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
)

// printJSON writes one document, indented: programs do not care and people look
// at it too.
func (a *app) printJSON(doc any) error {
	enc := json.NewEncoder(a.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(doc)
}

// printer writes text, in lines of the width that there is, and remembers the first
// error, so that a full disk or a closed pipe is reported once.
type printer struct {
	w    io.Writer
	line string // of which the end is to come
	err  error
}

// f formats text. A line is written when it ends, with \n.
func (p *printer) f(format string, args ...any) {
	p.line += fmt.Sprintf(format, args...)
	for p.err == nil {
		line, rest, ended := strings.Cut(p.line, "\n")
		if !ended {
			return
		}
		p.line = rest
		_, p.err = fmt.Fprintln(p.w, wrapProse(line, lineWidth(p.w)))
	}
}

// table prints rows in aligned columns below a heading.
func (p *printer) table(heading []string, rows [][]string) {
	if p.err != nil {
		return
	}
	rows = append([][]string{heading}, rows...)
	wrapTable(rows, lineWidth(p.w), knownWidth(p.w))
	tw := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([][]string, len(row))
		lines := 1
		for i, cell := range row {
			cells[i] = strings.Split(cell, "\n")
			lines = max(lines, len(cells[i]))
		}
		for n := range lines {
			var line []string
			for _, c := range cells {
				text := ""
				if n < len(c) {
					text = c[n]
				}
				line = append(line, text)
			}
			// No tab after the last cell: it would pad the line with blanks.
			if _, p.err = fmt.Fprintln(tw, strings.Join(line, "\t")); p.err != nil {
				return
			}
		}
	}
	p.err = tw.Flush()
}

// count writes a number with thousands separators: 1,048,576.
func count[N int | int64 | uint64 | uint32](n N) string {
	s := strconv.FormatUint(uint64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural writes "1 row", "2 rows".
func plural[N int | int64 | uint64 | uint32](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if base, ok := strings.CutSuffix(noun, "x"); ok { // index
		return count(n) + " " + base + "xes"
	}
	return count(n) + " " + noun + "s"
}

// percent writes part of whole, and does not round something to nothing or to all.
func percent(part, whole uint64) string {
	switch {
	case whole == 0 || part == 0:
		return "0%"
	case part == whole:
		return "100%"
	}
	v := 100 * float64(part) / float64(whole)
	switch {
	case v < 0.1:
		return "<0.1%"
	case v > 99.9:
		return ">99.9%"
	case v < 10:
		return strconv.FormatFloat(v, 'f', 1, 64) + "%"
	default:
		return strconv.FormatFloat(v, 'f', 0, 64) + "%"
	}
}

// size writes bytes in binary units: 1.5 MiB.
func size(n uint64) string {
	if n < 1024 {
		return strconv.FormatUint(n, 10) + " B"
	}
	v, unit := float64(n), 0
	for v >= 1024 && unit < len(sizeUnits)-1 {
		v, unit = v/1024, unit+1
	}
	digits := 1
	if v >= 100 {
		digits = 0
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " " + sizeUnits[unit]
}

var sizeUnits = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
