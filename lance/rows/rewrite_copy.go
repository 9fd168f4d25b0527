package rows

import (
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/objects"
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
	page int      // or other part of a column; -1 if it is rows
	runs []rowRun // ascending
}

// copies returns which parts of a column, leaf number leaf of an open file of a source,
// may be copied. A part is a page, or what [datafile.Column.NumParts] says.
func (r *rewriteRun) copies(f *rewriteFile, source *rewriteSource, of *objects.DataFile, leaf int, c *datafile.Column) (func(part int) bool, error) {
	none := func(int) bool { return false }
	if r.req.Copy == table.CopyNever {
		return none, nil
	}
	together, err := r.together(f, source, of, leaf, c)
	if err != nil || len(together) == 0 {
		return none, err
	}
	return func(i int) bool {
		bytes := uint64(0)
		for _, t := range together {
			if !t.to.CanCopy(t.column, i) {
				return false
			}
			bytes += t.to.CopyBytes(t.column, i)
		}
		if r.req.Copy == table.CopyAlways || bytes >= copyStored {
			return true
		}
		_, rows := c.PartRows(i)
		leaf := r.group.leaves[leaf]
		return len(c.Lists()) == 0 && leaf.Type.Kind != level.Variable && rows*uint64(leaf.Type.ValueBits())/8 >= copyPlain
	}, nil
}

// copyTarget is a column that may be copied and the one that it would be copied to.
type copyTarget struct {
	column *datafile.Column
	to     *datafile.ColumnWriter
}

// together returns the columns of which the same parts have to be copied as of c: c
// itself, and in format 2.0 those of all leaves within the same lists. It returns none
// if some of these lie elsewhere.
func (r *rewriteRun) together(f *rewriteFile, source *rewriteSource, of *objects.DataFile, leaf int, c *datafile.Column) ([]copyTarget, error) {
	if len(c.Lists()) == 0 {
		return []copyTarget{{c, f.file.Column(leaf)}}, nil
	}
	var out []copyTarget
	outermost := r.group.leaves[leaf].Lists[0]
	for i, other := range r.group.leaves {
		if len(other.Lists) == 0 || other.Lists[0] != outermost {
			continue
		}
		if source.places[i].file != source.places[leaf].file {
			return nil, nil
		}
		column, err := source.places[i].Open(of)
		if err != nil {
			return nil, err
		}
		out = append(out, copyTarget{column, f.file.Column(i)})
	}
	return out, nil
}

// copyParts divides the rows of a column into pages, or other parts that can be copied,
// that lie in a run as a whole and may be copied, and what is left between them.
func copyParts(c *datafile.Column, runs []rowRun, may func(part int) bool) []rewritePart {
	var parts []rewritePart
	var rest []rowRun
	next := 0 // no page before it ends after the run's start
	for _, run := range runs {
		for next < c.NumParts() {
			first, rows := c.PartRows(next)
			end := first + rows
			if first >= run.end || end > run.end {
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
