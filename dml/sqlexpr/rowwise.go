package sqlexpr

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// maxText bounds the bytes that a function makes for the rows of one batch: a text of
// ten letters can ask for terabytes.
const maxText = 1 << 28

// row gives a function the values of its arguments in one row.
type row struct {
	text  []stringValues
	whole [][]int64
	float [][]float64
	step  []int
	at    int
	// left is how many bytes may be made yet.
	left int
}

// s is the j-th argument, a text or bytes.
func (r *row) s(j int) string { return r.text[j].Value(r.at * r.step[j]) }

// n is the j-th argument, a bigint.
func (r *row) n(j int) int64 { return r.whole[j][r.at*r.step[j]] }

// f is the j-th argument, a double.
func (r *row) f(j int) float64 { return r.float[j][r.at*r.step[j]] }

// room checks that n bytes more may be made.
func (r *row) room(n int64) error {
	if n > int64(r.left) {
		return fmt.Errorf("texts of more than %d MiB for one batch of rows", maxText>>20)
	}
	return nil
}

func newRow(vs []vector) *row {
	r := &row{text: make([]stringValues, len(vs)), whole: make([][]int64, len(vs)), float: make([][]float64, len(vs)), step: make([]int, len(vs)), left: maxText}
	for j, v := range vs {
		r.step[j] = v.step()
		switch t := v.DataType(); {
		case t.ID() == arrow.INT64:
			r.whole[j] = values[int64](v.Array)
		case t.ID() == arrow.FLOAT64:
			r.float[j] = values[float64](v.Array)
		case familyOf(t) == famString || familyOf(t) == famBinary || familyOf(t) == famNull:
			r.text[j] = stringsOf(v.Array)
		}
	}
	return r
}

// texts makes a node of texts, or bytes, by a function of the row, null where an
// argument is. The function may say that a row is null, too.
func (b *binder) texts(e *call, t arrow.DataType, fallible bool, of func(r *row) (s string, ok bool, err error), args ...*node) (*node, error) {
	return b.make(e.span, t, fallible, func(f *frame, vs []vector) (vector, error) {
		r := newRow(vs)
		var failed error
		out := f.rowStrings(t, func(i int) (string, bool) {
			if failed != nil {
				return "", false
			}
			r.at = i
			s, ok, err := of(r)
			if err == nil {
				err = r.room(int64(len(s)))
			}
			if err != nil {
				failed = err
				return "", false
			}
			r.left -= len(s)
			return s, ok
		}, vs...)
		return out, failed
	}, args...), nil
}

// numbersOf makes a node of numbers of a type by a function of the row, null where an
// argument is.
func numbersOf[T arrow.FixedWidthType](b *binder, e *call, t arrow.DataType, fallible bool, of func(r *row) (T, error), args ...*node) (*node, error) {
	return b.make(e.span, t, fallible, func(f *frame, vs []vector) (vector, error) {
		n, one := f.length(vs...)
		valid, nulls := f.validity(n, vs...)
		r, out := newRow(vs), make([]T, n)
		for i := range n {
			if valid != nil && !bitutil.BitIsSet(valid, i) {
				continue
			}
			r.at = i
			v, err := of(r)
			if err != nil {
				return vector{}, err
			}
			out[i] = v
		}
		return numbers(f, t, one, out, valid, nulls), nil
	}, args...), nil
}

// truths makes a node of booleans by a function of the row, null where an argument is.
func (b *binder) truths(e *call, fallible bool, of func(r *row) (bool, error), args ...*node) (*node, error) {
	return b.make(e.span, arrow.FixedWidthTypes.Boolean, fallible, func(f *frame, vs []vector) (vector, error) {
		r := newRow(vs)
		var failed error
		out := f.rowBools(func(i int) bool {
			if failed != nil {
				return false
			}
			r.at = i
			v, err := of(r)
			failed = err
			return v
		}, vs...)
		return out, failed
	}, args...), nil
}

// castEach casts arguments to one type each; nil leaves one as it is.
func (b *binder) castEach(args []*node, to ...arrow.DataType) error {
	for i := range args {
		t := to[min(i, len(to)-1)]
		if t == nil {
			continue
		}
		n, err := b.castTo(args[i], t)
		if err != nil {
			return err
		}
		args[i] = n
	}
	return nil
}
