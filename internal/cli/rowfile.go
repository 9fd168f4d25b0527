package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"github.com/rehome-db/rehome/internal/rowjson"
)

// rowFile is a file of rows, in one of the forms that are told apart by how they
// begin.
type rowFile struct {
	name string
	in   *bufio.Reader
	file *os.File // nil for standard input
}

// openRows opens a file of rows; - is standard input.
func (a *app) openRows(path string) (*rowFile, error) {
	if path == "-" {
		return &rowFile{name: "standard input", in: bufio.NewReader(a.Stdin)}, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && info.IsDir() {
		f.Close()
		return nil, usagef("%s is a directory: want a file of rows", path)
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
// schema's columns; Arrow has types of its own.
func (r *rowFile) rows(schema *arrow.Schema) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		batches, closing, err := r.open(schema)
		if err != nil {
			yield(nil, fmt.Errorf("%s: %w", r.name, err))
			return
		}
		defer closing()
		for rec, err := range batches {
			if err != nil {
				yield(nil, fmt.Errorf("%s: %w", r.name, err))
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

func (r *rowFile) open(schema *arrow.Schema) (batches iter.Seq2[arrow.RecordBatch, error], closing func(), err error) {
	begins, err := r.in.Peek(len(arrowFile))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(begins, parquetFile):
		return nil, nil, usagef("Parquet is not read: want JSON lines, or an Arrow IPC file or stream")
	case bytes.HasPrefix(begins, arrowFile):
		if r.file == nil {
			return nil, nil, usagef("an Arrow IPC file cannot be read from a pipe: name the file, or send a stream")
		}
		in, err := ipc.NewFileReader(r.file)
		if err != nil {
			return nil, nil, err
		}
		return func(yield func(arrow.RecordBatch, error) bool) {
			for i := range in.NumRecords() {
				rec, err := in.RecordBatchAt(i)
				if err != nil {
					yield(nil, err)
					return
				}
				more := yield(rec, nil)
				rec.Release()
				if !more {
					return
				}
			}
		}, func() { in.Close() }, nil
	case bytes.HasPrefix(begins, arrowStream):
		in, err := ipc.NewReader(r.in)
		if err != nil {
			return nil, nil, err
		}
		return func(yield func(arrow.RecordBatch, error) bool) {
			for in.Next() {
				if !yield(in.RecordBatch(), nil) {
					return
				}
			}
			if err := in.Err(); err != nil {
				yield(nil, err)
			}
		}, in.Release, nil
	}
	return rowjson.NewDecoder(r.in, schema).Batches(), func() {}, nil
}
