package rows

import (
	"math"

	"github.com/rehome-db/rehome/table"
)

// rewriteOutput is one file to be written: its rows, as ranges of the sources'.
type rewriteOutput struct {
	rows   uint64
	bytes  float64 // about
	slices []rewriteSlice
}

// rewriteSlice is a part of one source.
type rewriteSlice struct {
	source int // index in the group
	rows   uint64
	runs   []rowRun
}

// rowRun is the physical rows [start, end), all live.
type rowRun struct{ start, end uint64 }

// plan deals the live rows of the sources out to files. All files but the last
// have exactly opts.MaxRows rows, or fewer if their size, estimated from the
// bytes that the sources take for a row, reaches opts.MaxBytes.
func (g *rewriteGroup) plan(opts table.WriteOptions) ([]rewriteOutput, error) {
	var outputs []rewriteOutput
	for i := range g.sources {
		s := &g.sources[i]
		rowBytes := float64(s.bytes) / float64(max(s.fragment.PhysicalRows, 1))
		live := uint64(0)
		for start, end := range s.dead.Live(s.fragment.PhysicalRows) {
			live += end - start
			for start < end {
				if len(outputs) == 0 || outputs[len(outputs)-1].full(opts) {
					outputs = append(outputs, rewriteOutput{})
				}
				out := &outputs[len(outputs)-1]
				n := min(end-start, opts.MaxRows-out.rows, rowsWithin(float64(opts.MaxBytes)-out.bytes, rowBytes))
				out.add(i, rowRun{start, start + n})
				start += n
				out.bytes += float64(n) * rowBytes
			}
		}
		if want := s.fragment.LiveRows(); live != want {
			return nil, table.Corruptf("fragment %d has %d live rows by its deletion vector, %d by the version", s.fragment.ID, live, want)
		}
	}
	return outputs, nil
}

func (o *rewriteOutput) full(opts table.WriteOptions) bool {
	return o.rows >= opts.MaxRows || o.bytes >= float64(opts.MaxBytes)
}

// rowsWithin returns how many rows fill the bytes that are left, at least one.
func rowsWithin(left, rowBytes float64) uint64 {
	if rowBytes <= 0 || left/rowBytes >= math.MaxInt64 {
		return math.MaxInt64
	}
	return uint64(max(math.Ceil(left/rowBytes), 1))
}

func (o *rewriteOutput) add(source int, r rowRun) {
	if n := len(o.slices); n == 0 || o.slices[n-1].source != source {
		o.slices = append(o.slices, rewriteSlice{source: source})
	}
	s := &o.slices[len(o.slices)-1]
	s.runs = append(s.runs, r)
	s.rows += r.end - r.start
	o.rows += r.end - r.start
}
