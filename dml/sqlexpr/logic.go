package sqlexpr

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

// SQL's logic has three values: true, false and null, which stands for "unknown".
// AND is false as soon as one side is, OR is true as soon as one side is, and what
// else meets a null is null.

// logical computes l AND r, or l OR r.
func logical(f *frame, and bool, l, r vector) vector {
	n, one := f.length(l, r)
	lt, lf := truths(n, l)
	rt, rf := truths(n, r)
	isTrue, isFalse := lt, lf
	for i := range isTrue {
		if and {
			isTrue[i], isFalse[i] = lt[i]&rt[i], lf[i]|rf[i]
		} else {
			isTrue[i], isFalse[i] = lt[i]|rt[i], lf[i]&rf[i]
		}
		isFalse[i] |= isTrue[i] // where the result is known
	}
	if bitutil.CountSetBits(isFalse, 0, n) == n {
		return f.bools(n, one, isTrue, nil)
	}
	return f.bools(n, one, isTrue, isFalse)
}

// truths are the bitmaps of where n values are true, and where they are false.
func truths(n int, v vector) (isTrue, isFalse []byte) {
	size := bitutil.BytesForBits(int64(n))
	isTrue, isFalse = make([]byte, size), make([]byte, size)
	b := v.Array.(*array.Boolean)
	if v.one {
		if b.IsValid(0) {
			which := isFalse
			if b.Value(0) {
				which = isTrue
			}
			bitutil.SetBitsTo(which, 0, int64(n), true)
		}
		return isTrue, isFalse
	}
	offset := b.Data().Offset()
	bitutil.CopyBitmap(b.Data().Buffers()[1].Bytes(), offset, n, isTrue, 0)
	valid := make([]byte, size)
	if b.NullN() > 0 {
		bitutil.CopyBitmap(b.NullBitmapBytes(), offset, n, valid, 0)
	} else {
		bitutil.SetBitsTo(valid, 0, int64(n), true)
	}
	for i := range isTrue {
		isFalse[i] = valid[i] &^ isTrue[i]
		isTrue[i] &= valid[i]
	}
	return isTrue, isFalse
}

// negation is NOT v.
func negation(f *frame, v vector) vector {
	b := v.Array.(*array.Boolean)
	s := v.step()
	return f.rowBools(func(i int) bool { return !b.Value(i * s) }, v)
}

// isNull is v IS NULL, or IS NOT NULL.
func isNull(f *frame, v vector, not bool) vector {
	n, one := f.length(v)
	out := make([]byte, bitutil.BytesForBits(int64(n)))
	for i := range n {
		bitutil.SetBitTo(out, i, v.IsNull(i) != not)
	}
	return f.bools(n, one, out, nil)
}

// isBool is v IS TRUE (or FALSE), or IS NOT; null is neither.
func isBool(f *frame, v vector, what, not bool) vector {
	n, one := f.length(v)
	b := v.Array.(*array.Boolean)
	out := make([]byte, bitutil.BytesForBits(int64(n)))
	for i := range n {
		bitutil.SetBitTo(out, i, (b.IsValid(i) && b.Value(i) == what) != not)
	}
	return f.bools(n, one, out, nil)
}

// rowsWhere are the rows of f where the condition is true, or where it is not.
func (f *frame) rowsWhere(condition vector, is bool) []int {
	b := condition.Array.(*array.Boolean)
	s := condition.step()
	var rows []int
	for i := range f.rows {
		if (b.IsValid(i*s) && b.Value(i*s)) == is {
			rows = append(rows, i)
		}
	}
	return rows
}

// decided evaluates AND or OR in the way that a guard needs: the right side only for
// the rows that the left does not decide. So b <> 0 AND a / b > 1 never divides by
// zero.
func decided(f *frame, and bool, l vector, right *node) (vector, error) {
	undecided := negation(f, l) // rows where this is not true: l is true or null
	if !and {
		undecided = l
	}
	rows := f.rowsWhere(undecided, false)
	if len(rows) == 0 {
		return f.nullsOf(arrow.FixedWidthTypes.Boolean), nil
	}
	r, err := right.eval(f.part(rows))
	if err != nil {
		return vector{}, err
	}
	return scatter(f, arrow.FixedWidthTypes.Boolean, []piecewise{{rows, r}})
}

// piecewise is the values of an expression for some rows of a frame.
type piecewise struct {
	rows   []int
	values vector
}

// scatter puts pieces together. Rows that are in no piece are null.
func scatter(f *frame, typ arrow.DataType, pieces []piecewise) (vector, error) {
	from := make([]int, f.rows)
	for i := range from {
		from[i] = -1
	}
	arrays := []arrow.Array{f.nullsOf(typ).Array}
	offset := 1
	for _, p := range pieces {
		for i, row := range p.rows {
			from[row] = offset + i*p.values.step()
		}
		arrays = append(arrays, p.values.Array)
		offset += p.values.Len()
	}
	all, err := array.Concatenate(arrays, allocator)
	if err != nil {
		return vector{}, err
	}
	for i, at := range from {
		from[i] = max(at, 0)
	}
	out, err := take(f, f.own(all), from)
	return vector{out, false}, err
}
