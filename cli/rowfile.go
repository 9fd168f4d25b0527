package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/internal/arrowcheck"
	"github.com/rehome-db/rehome/internal/arrowipc"
	"github.com/rehome-db/rehome/internal/recovered"
	"github.com/rehome-db/rehome/internal/rowjson"
)

// rowFile is a file of rows, in one of the forms that are told apart by how they
// begin.
type rowFile struct {
	name string
	in   *bufio.Reader
	file *os.File // nil for standard input
}

// openRows opens a file of rows; - is standard input. Waiting for rows ends with the
// context.
func (a *app) openRows(ctx context.Context, path string) (*rowFile, error) {
	if path == "-" {
		return &rowFile{name: "standard input", in: bufio.NewReader(newWaiting(ctx, a.Stdin))}, nil
	}
	f, err := openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		f.Close()
		return nil, err
	case info.IsDir():
		f.Close()
		return nil, usagef("%s is a directory: want a file of rows", path)
	case !info.Mode().IsRegular():
		return &rowFile{name: path, in: bufio.NewReader(newWaiting(ctx, f)), file: f}, nil
	}
	return &rowFile{name: path, in: bufio.NewReader(f), file: f}, nil
}

func (r *rowFile) close() {
	if r.file != nil {
		r.file.Close()
	}
}

// How an Arrow IPC file begins, and each message of a stream.
var (
	arrowFile   = []byte("ARROW1")
	arrowStream = []byte{0xff, 0xff, 0xff, 0xff}
	parquetFile = []byte("PAR1")
)

// rows yields the rows, which are read once. JSON is read as values of the given
// schema's columns; Arrow has types of its own. Each batch was checked: its arrays are
// whole, and their values are values of their types. What is wrong with the file is an
// error that names it, and never says that the table is damaged.
func (r *rowFile) rows(schema *arrow.Schema) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		batches, err := r.open(schema)
		if err != nil {
			yield(nil, r.wrong(err))
			return
		}
		before := int64(0) // rows of the batches before
		for rec, err := range batches {
			if err == nil {
				err = checkRows(rec, before)
			}
			if err != nil {
				yield(nil, r.wrong(err))
				return
			}
			before += rec.NumRows()
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// checkRows checks a batch, and says which row of the file is wrong. As people count
// them, the first is row 1.
func checkRows(rec arrow.RecordBatch, before int64) error {
	err := arrowcheck.Record(rec)
	var wrong *arrowcheck.Error
	if errors.As(err, &wrong) && wrong.Row >= 0 {
		return fmt.Errorf("row %d, column %q: %s", before+int64(wrong.Row)+1, wrong.Column, wrong.Reason)
	}
	return err
}

// inputError is something wrong with a file of rows. It hides what kind of error that
// is: an input cannot make the table damaged, or unsupported.
type inputError struct {
	file string
	err  error
}

func (e *inputError) Error() string { return fmt.Sprintf("%s: %v", e.file, e.err) }

// Unwrap returns errors in how the command was used, cancellation, and panics.
func (e *inputError) Unwrap() error {
	var usage *usageError
	var stopped *recovered.Error
	if errors.As(e.err, &usage) || errors.As(e.err, &stopped) || errors.Is(e.err, context.Canceled) {
		return e.err
	}
	return nil
}

func (r *rowFile) wrong(err error) error { return &inputError{r.name, err} }

// blame names the file in an error that is a panic: it was the file that was new.
func (r *rowFile) blame(err error) error {
	var stopped *recovered.Error
	var known *inputError
	if !errors.As(err, &stopped) || errors.As(err, &known) {
		return err
	}
	return fmt.Errorf("while the rows of %s were taken in (with --verbose: where; please report it): %w", r.name, err)
}

func (r *rowFile) open(schema *arrow.Schema) (iter.Seq2[arrow.RecordBatch, error], error) {
	begins, err := r.in.Peek(len(arrowFile))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(begins, parquetFile):
		if _, err := r.size("a Parquet file"); err != nil {
			return nil, err
		}
		return parquetBatches(r.file, schema), nil
	case bytes.HasPrefix(begins, arrowFile):
		size, err := r.size("an Arrow IPC file")
		if err != nil {
			return nil, err
		}
		return arrowipc.File(r.file, size), nil
	case bytes.HasPrefix(begins, arrowStream):
		return arrowipc.Stream(r.in), nil
	}
	if len(begins) > 0 && begins[0] == 0 {
		// A device such as /dev/zero would be one line without an end.
		return nil, errors.New("it begins with a zero byte: want JSON lines, Arrow IPC or Parquet")
	}
	return rowjson.NewDecoder(r.in, schema).Batches(), nil
}

// size is the number of bytes of a file that can be read anywhere.
func (r *rowFile) size(form string) (int64, error) {
	pipe := form + " cannot be read from a pipe: name the file, or send an Arrow IPC stream"
	if r.file == nil {
		return 0, usagef("%s", pipe)
	}
	info, err := r.file.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, usagef("%s", pipe)
	}
	return info.Size(), nil
}
