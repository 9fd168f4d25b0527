package rowjson

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Decoder reads rows in the encoding [Plain], one JSON object a line, into record
// batches: what an [Encoder] has written comes back bit by bit, but for the bits
// inside a NaN. It is for one goroutine.
//
// The first row decides which of the schema's columns the rows have, in any order.
// Every other row must have the same, so that a name that was forgotten or mistyped
// is an error and not a null. Empty lines are skipped.
type Decoder struct {
	in      *bufio.Reader
	schema  *arrow.Schema
	columns []decodeColumn
	index   map[string]int
	// line is the number of the line read last, first that of the first row.
	line, first int
	// present are the columns that the rows have, and picked is their schema; nil
	// before the first row.
	present []int
	picked  *arrow.Schema
	failed  error
}

type decodeColumn struct {
	name    string
	builder array.Builder
	append  appender
	// seen is the line of the last row that had the column.
	seen int
}

// Batches are bounded in rows, and roughly in bytes of text.
const (
	decodeRows  = 8192
	decodeBytes = 16 << 20
)

// NewDecoder reads rows of the given schema. A column of a type that has no encoding
// is ErrUnsupported, by name, if the rows have it.
func NewDecoder(r io.Reader, schema *arrow.Schema) *Decoder {
	d := &Decoder{in: bufio.NewReaderSize(r, 64<<10), schema: schema, index: make(map[string]int, schema.NumFields())}
	for i, f := range schema.Fields() {
		d.columns = append(d.columns, decodeColumn{name: f.Name})
		d.index[f.Name] = i
	}
	return d
}

// Batches yields the rows in batches, which are released as soon as the next one is
// asked for: retain what is kept. It stops at the first error, which names the line
// and the column, and with the batch before the one that it is in.
func (d *Decoder) Batches() iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		for {
			rec, err := d.Read()
			if errors.Is(err, io.EOF) {
				return
			}
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
	}
}

// Read returns the next batch, whose columns are in the order of the schema, and
// which the caller releases; io.EOF after the last one. It is never empty.
func (d *Decoder) Read() (arrow.RecordBatch, error) {
	if d.failed != nil {
		return nil, d.failed
	}
	rows, read := 0, 0
	for rows < decodeRows && read < decodeBytes {
		text, err := d.nextLine()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = d.row(text)
		}
		if err != nil {
			return nil, d.fail(fmt.Errorf("rowjson: line %d: %w", d.line, err))
		}
		rows++
		read += len(text)
	}
	if rows == 0 {
		return nil, d.fail(io.EOF)
	}
	arrays := make([]arrow.Array, len(d.present))
	for i, c := range d.present {
		arrays[i] = d.columns[c].builder.NewArray()
	}
	for i, c := range d.present {
		t := d.picked.Field(i).Type
		if !hasDictionary(t) {
			continue
		}
		a, err := toDictionaries(arrays[i], t)
		if err != nil {
			for _, a := range append(arrays[:i], arrays[i+1:]...) {
				a.Release()
			}
			return nil, d.fail(fmt.Errorf("rowjson: lines up to %d: column %q: %w", d.line, d.columns[c].name, err))
		}
		arrays[i] = a
	}
	rec := array.NewRecordBatch(d.picked, arrays, int64(rows))
	for _, a := range arrays {
		a.Release()
	}
	return rec, nil
}

// fail gives up the rows that were read of the current batch.
func (d *Decoder) fail(err error) error {
	d.failed = err
	for i := range d.columns {
		if b := d.columns[i].builder; b != nil {
			b.Release()
			d.columns[i].builder = nil
		}
	}
	return err
}

// nextLine returns the next line that is not empty.
func (d *Decoder) nextLine() ([]byte, error) {
	for {
		text, err := d.in.ReadBytes('\n')
		if err != nil && (len(text) == 0 || !errors.Is(err, io.EOF)) {
			return nil, err
		}
		d.line++
		if d.line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if len(bytes.TrimSpace(text)) > 0 {
			return text, nil
		}
	}
}

// row appends the values of one row.
func (d *Decoder) row(text []byte) error {
	if !utf8.Valid(text) {
		return errors.New("it is not UTF-8")
	}
	if d.present == nil {
		d.first = d.line
	}
	s := &scanner{text: text}
	if err := s.expect('{'); err != nil {
		return err
	}
	seen := 0
	for !s.next('}') {
		if seen > 0 {
			if err := s.expect(','); err != nil {
				return err
			}
		}
		if err := d.value(s); err != nil {
			return err
		}
		seen++
	}
	if err := s.end(); err != nil {
		return err
	}
	if d.present == nil {
		return d.pick(seen)
	}
	if seen == len(d.present) {
		return nil
	}
	for _, i := range d.present {
		if d.columns[i].seen != d.line {
			return fmt.Errorf("column %q is missing, and line %d has it: write null for no value", d.columns[i].name, d.first)
		}
	}
	return nil
}

// pick takes the columns of the first row for those of all.
func (d *Decoder) pick(n int) error {
	if n == 0 {
		return errors.New("a row without columns")
	}
	var fields []arrow.Field
	for i := range d.columns {
		if d.columns[i].seen == d.line {
			d.present = append(d.present, i)
			fields = append(fields, d.schema.Field(i))
		}
	}
	d.picked = arrow.NewSchema(fields, nil)
	return nil
}

// value appends the value of the column whose name comes next.
func (d *Decoder) value(s *scanner) error {
	name, err := s.str()
	if err != nil {
		return fmt.Errorf("the name of a column: %w", err)
	}
	i, known := d.index[string(name)]
	if !known {
		return fmt.Errorf("column %s is none of the table, which has %s", shorten(name, 60), d.names())
	}
	c := &d.columns[i]
	switch {
	case c.seen == d.line:
		return fmt.Errorf("column %q is there twice", name)
	case c.seen == 0 && d.present != nil:
		return fmt.Errorf("column %q is not in line %d: every row must have the same columns", name, d.first)
	case c.builder == nil:
		f := d.schema.Field(i)
		if err := checkDecode(f.Type); err != nil {
			return fmt.Errorf("column %q: %w", name, err)
		}
		f.Type = plainType(f.Type)
		c.builder = array.NewBuilder(memory.DefaultAllocator, f.Type)
		c.append = newAppender(f, c.builder)
	}
	c.seen = d.line
	if err := s.expect(':'); err != nil {
		return fmt.Errorf("column %q: %w", name, err)
	}
	if err := c.append(s); err != nil {
		return fmt.Errorf("column %q: %w", name, err)
	}
	return nil
}

func (d *Decoder) names() string {
	names := make([]string, len(d.columns))
	for i, c := range d.columns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}
