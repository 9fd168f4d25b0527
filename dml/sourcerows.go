package dml

// sourceRows is a list of source rows, one for each row of the table that is updated.
// Rows that follow each other and repetitions of one row are kept as runs: a source is
// held in memory, but many rows of the table may have one key.
type sourceRows struct{ runs []sourceRun }

// sourceRun is n times the row first or, if step is 1, the rows from first on.
type sourceRun struct{ first, n, step int32 }

func (s *sourceRows) add(row int32) {
	if at := len(s.runs) - 1; at >= 0 && s.runs[at].n < 1<<30 {
		switch run := &s.runs[at]; {
		case run.n == 1 && (row == run.first || row == run.first+1):
			run.n, run.step = 2, row-run.first
			return
		case run.n > 1 && row == run.first+run.n*run.step:
			run.n++
			return
		}
	}
	s.runs = append(s.runs, sourceRun{first: row, n: 1})
}

func (s *sourceRows) read() *sourceRowsReader { return &sourceRowsReader{runs: s.runs} }

// sourceRowsReader yields the rows of a list one after the other.
type sourceRowsReader struct {
	runs []sourceRun
	at   int32 // in the first of the runs
}

// next returns the next row. There has to be one.
func (r *sourceRowsReader) next() int32 {
	run := r.runs[0]
	row := run.first + r.at*run.step
	if r.at++; r.at == run.n {
		r.runs, r.at = r.runs[1:], 0
	}
	return row
}
