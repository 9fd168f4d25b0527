package lance

import (
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// A page of which no row is dropped can be copied as bytes: nothing in it refers to
// what is outside. That is several times faster than decoding and encoding it, and
// keeps it as it is: a page of a few rows stays one, with a dictionary or a symbol
// table of its own. So by default only pages of some size are copied, and small ones
// are put together to larger ones.

const (
	// copyStored and copyPlain are the sizes, as stored and decoded, from which on a
	// page is worth copying. Writers close a page at 8 MiB decoded.
	copyStored = 1 << 20
	copyPlain  = 4 << 20
)

// rewritePart is either a page to be copied or rows to be encoded anew.
type rewritePart struct {
	page int      // -1 if it is rows
	runs []rowRun // ascending
}

// copies returns which pages of a column may be copied.
func (r *rewriteRun) copies(c *datafile.Column, leaf schema.Leaf, to *datafile.ColumnWriter) func(page int) bool {
	return func(i int) bool {
		if r.req.Copy == table.CopyNever || !to.CanCopy(c, i) {
			return false
		}
		p := c.Pages()[i]
		if r.req.Copy == table.CopyAlways || p.Bytes() >= copyStored {
			return true
		}
		return leaf.Type.Kind != level.Variable && p.Rows*uint64(leaf.Type.ValueBits())/8 >= copyPlain
	}
}

// copyParts divides the rows of a column into pages that lie in a run as a whole and
// may be copied, and what is left between them.
func copyParts(c *datafile.Column, runs []rowRun, may func(page int) bool) []rewritePart {
	var parts []rewritePart
	var rest []rowRun
	pages := c.Pages()
	next := 0 // no page before it ends after the run's start
	for _, run := range runs {
		for next < len(pages) && pages[next].FirstRow < run.end {
			first, end := pages[next].FirstRow, pages[next].FirstRow+pages[next].Rows
			if end > run.end {
				break // the next run may begin in it
			}
			if first >= run.start && first < end && may(next) {
				if first > run.start {
					rest = append(rest, rowRun{run.start, first})
				}
				if len(rest) > 0 {
					parts, rest = append(parts, rewritePart{page: -1, runs: rest}), nil
				}
				parts = append(parts, rewritePart{page: next})
				run.start = end
			}
			next++
		}
		if run.start < run.end {
			rest = append(rest, run)
		}
	}
	if len(rest) > 0 {
		parts = append(parts, rewritePart{page: -1, runs: rest})
	}
	return parts
}
