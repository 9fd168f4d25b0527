package sqlexpr

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/gather"
)

// vector is the values of an expression for the rows of a frame: one a row, or a
// single one for all of them.
type vector struct {
	arrow.Array
	one bool
}

// IsNull says whether a value is null. Arrays of Arrow's null type have no bitmap that
// would say so.
func (v vector) IsNull(i int) bool { return v.DataType().ID() == arrow.NULL || v.Array.IsNull(i) }

// IsValid is the opposite of IsNull.
func (v vector) IsValid(i int) bool { return !v.IsNull(i) }

// step is by how much the index into the values grows from row to row.
func (v vector) step() int {
	if v.one {
		return 0
	}
	return 1
}

// frame is what an expression is evaluated over: the rows of a batch, or some of
// them. It owns all that is made on the way.
type frame struct {
	ctx  context.Context
	rec  arrow.RecordBatch
	rows int
	// of and pick make it a part of another frame: the rows of that, in order.
	of   *frame
	pick []int
	// taken are the columns of a part, by index, made when they are needed.
	taken map[int]arrow.Array
	// shared are the values of nodes that are used more than once.
	shared map[*node]vector
	owned  *[]arrow.Array
}

func newFrame(ctx context.Context, rec arrow.RecordBatch) *frame {
	return &frame{ctx: ctx, rec: rec, rows: int(rec.NumRows()), owned: new([]arrow.Array)}
}

// own hands an array over to the frame.
func (f *frame) own(a arrow.Array) arrow.Array {
	*f.owned = append(*f.owned, a)
	return a
}

// release lets go of everything that was made.
func (f *frame) release() {
	for _, a := range *f.owned {
		a.Release()
	}
}

// column is the i-th column of the batch, for the rows of the frame.
func (f *frame) column(i int) (arrow.Array, error) {
	if f.of == nil {
		return f.rec.Column(i), nil
	}
	if a, ok := f.taken[i]; ok {
		return a, nil
	}
	whole, err := f.of.column(i)
	if err != nil {
		return nil, err
	}
	a, err := take(f, whole, f.pick)
	if err != nil {
		return nil, err
	}
	f.taken[i] = a
	return a, nil
}

// known is the value of a shared node, if it was computed for these rows or for more.
func (f *frame) known(n *node) (vector, bool, error) {
	if v, ok := f.shared[n]; ok || f.of == nil {
		return v, ok, nil
	}
	v, ok, err := f.of.known(n)
	if err != nil || !ok || v.one {
		return v, ok, err
	}
	v.Array, err = take(f, v.Array, f.pick)
	f.remember(n, v)
	return v, true, err
}

func (f *frame) remember(n *node, v vector) {
	if f.shared == nil {
		f.shared = map[*node]vector{}
	}
	f.shared[n] = v
}

// part is the frame of the given rows of f, which ascend. All of them are f itself.
func (f *frame) part(rows []int) *frame {
	if len(rows) == f.rows {
		return f
	}
	return &frame{ctx: f.ctx, rec: f.rec, rows: len(rows), of: f, pick: rows, taken: map[int]arrow.Array{}, owned: f.owned}
}

// take gathers the given rows of an array; a row below zero makes a null.
func take(f *frame, values arrow.Array, rows []int) (arrow.Array, error) {
	switch fam := familyOf(values.DataType()); {
	case fam == famBool:
		return takeBools(f, values.(*array.Boolean), rows), nil
	case fam >= famInt && fam <= famDuration && fam != famDecimal && fam != famString && fam != famBinary:
		// The types that every row number costs least.
		switch bits(values.DataType()) {
		case 8:
			return takeNumbers[int8](f, values, rows), nil
		case 16:
			return takeNumbers[int16](f, values, rows), nil
		case 32:
			return takeNumbers[int32](f, values, rows), nil
		case 64:
			return takeNumbers[int64](f, values, rows), nil
		}
	}
	if slices.ContainsFunc(rows, func(r int) bool { return r < 0 }) {
		// One null behind the values is what these rows take.
		all, err := array.Concatenate([]arrow.Array{values, f.nullsOf(values.DataType()).Array}, allocator)
		if err != nil {
			return nil, err
		}
		values, rows = f.own(all), slices.Clone(rows)
		for i, r := range rows {
			if r < 0 {
				rows[i] = values.Len() - 1
			}
		}
	}
	out, err := gather.Take(allocator, values, rows)
	if err != nil {
		return nil, err
	}
	return f.own(out), nil
}

// takenValidity is the bitmap of the rows that are not null, nil if there is no null.
func takenValidity(a arrow.Array, rows []int) (valid []byte, nulls int) {
	for i, r := range rows {
		if r >= 0 && !a.IsNull(r) {
			continue
		}
		if valid == nil {
			valid = make([]byte, bitutil.BytesForBits(int64(len(rows))))
			bitutil.SetBitsTo(valid, 0, int64(len(rows)), true)
		}
		bitutil.ClearBit(valid, i)
		nulls++
	}
	return valid, nulls
}

func takeNumbers[T arrow.FixedWidthType](f *frame, a arrow.Array, rows []int) arrow.Array {
	in, out := values[T](a), make([]T, len(rows))
	for i, r := range rows {
		if r >= 0 {
			out[i] = in[r]
		}
	}
	valid, nulls := takenValidity(a, rows)
	return numbers(f, a.DataType(), false, out, valid, nulls).Array
}

func takeBools(f *frame, a *array.Boolean, rows []int) arrow.Array {
	out := make([]byte, bitutil.BytesForBits(int64(len(rows))))
	for i, r := range rows {
		if r >= 0 && a.Value(r) {
			bitutil.SetBit(out, i)
		}
	}
	valid, _ := takenValidity(a, rows)
	return f.bools(len(rows), false, out, valid).Array
}

// length is how many values the result of an operation on vectors has, and whether it
// is one for all rows.
func (f *frame) length(vs ...vector) (n int, one bool) {
	for _, v := range vs {
		if !v.one {
			return f.rows, false
		}
	}
	return 1, true
}

// validity is the bitmap of where all vectors have a value, and how many values are
// null. Without nulls the bitmap is nil.
func (f *frame) validity(n int, vs ...vector) (valid []byte, nulls int) {
	for _, v := range vs {
		if v.NullN() == 0 && v.DataType().ID() != arrow.NULL {
			continue
		}
		if valid == nil {
			valid = make([]byte, bitutil.BytesForBits(int64(n)))
			bitutil.SetBitsTo(valid, 0, int64(n), true)
		}
		if v.one || v.DataType().ID() == arrow.NULL {
			bitutil.SetBitsTo(valid, 0, int64(n), false)
			continue
		}
		bitutil.BitmapAnd(valid, v.NullBitmapBytes(), 0, int64(v.Data().Offset()), valid, 0, int64(n))
	}
	if valid == nil {
		return nil, 0
	}
	return valid, n - bitutil.CountSetBits(valid, 0, n)
}

// bools makes a vector of booleans out of bitmaps; valid may be nil.
func (f *frame) bools(n int, one bool, values, valid []byte) vector {
	return vector{f.own(boolArray(n, values, valid)), one}
}

func boolArray(n int, values, valid []byte) *array.Boolean {
	nulls := 0
	bufs := []*memory.Buffer{nil, memory.NewBufferBytes(values)}
	if valid != nil {
		bufs[0] = memory.NewBufferBytes(valid)
		nulls = n - bitutil.CountSetBits(valid, 0, n)
	}
	data := array.NewData(arrow.FixedWidthTypes.Boolean, n, bufs, nil, nulls, 0)
	defer data.Release()
	return array.NewBooleanData(data)
}

// numbers makes a vector of a type of fixed width out of its values.
func numbers[T arrow.FixedWidthType](f *frame, typ arrow.DataType, one bool, values []T, valid []byte, nulls int) vector {
	bufs := []*memory.Buffer{nil, memory.NewBufferBytes(arrow.GetBytes(values))}
	if valid != nil {
		bufs[0] = memory.NewBufferBytes(valid)
	}
	data := array.NewData(typ, len(values), bufs, nil, nulls, 0)
	defer data.Release()
	return vector{f.own(array.MakeFromData(data)), one}
}

// values are the numbers in an array of fixed width.
func values[T arrow.FixedWidthType](a arrow.Array) []T {
	data := a.Data()
	if data.Len() == 0 || data.Buffers()[1] == nil {
		return make([]T, data.Len())
	}
	return arrow.GetData[T](data.Buffers()[1].Bytes())[data.Offset() : data.Offset()+data.Len()]
}

// rowBools makes booleans by a function of the row, which is not called for rows
// where a vector is null.
func (f *frame) rowBools(of func(i int) bool, vs ...vector) vector {
	n, one := f.length(vs...)
	valid, _ := f.validity(n, vs...)
	out := make([]byte, bitutil.BytesForBits(int64(n)))
	for i := range n {
		if (valid == nil || bitutil.BitIsSet(valid, i)) && of(i) {
			bitutil.SetBit(out, i)
		}
	}
	return f.bools(n, one, out, valid)
}

// nullsOf is a vector of nulls.
func (f *frame) nullsOf(t arrow.DataType) vector {
	return vector{f.own(gather.Nulls(allocator, t, 1)), true}
}

// stringValues is what string arrays have in common for us.
type stringValues interface{ Value(i int) string }

// stringsOf gives access to the values of a string or binary array.
func stringsOf(a arrow.Array) stringValues {
	switch a := a.(type) {
	case stringValues:
		return a
	case interface{ Value(int) []byte }:
		return bytesAsStrings{a}
	}
	return noStrings{}
}

type bytesAsStrings struct {
	of interface{ Value(int) []byte }
}

func (b bytesAsStrings) Value(i int) string { return string(b.of.Value(i)) }

// noStrings are the values of an array that is all null.
type noStrings struct{}

func (noStrings) Value(int) string { return "" }

// newTextBuilder builds texts, or bytes, of a type.
func newTextBuilder(t arrow.DataType) (array.Builder, func(string)) {
	switch t.ID() {
	case arrow.LARGE_STRING:
		b := array.NewLargeStringBuilder(allocator)
		return b, b.Append
	case arrow.BINARY:
		b := array.NewBinaryBuilder(allocator, arrow.BinaryTypes.Binary)
		return b, b.AppendString
	}
	b := array.NewStringBuilder(allocator)
	return b, b.Append
}

// rowStrings makes strings or bytes of a type by a function of the row, which may say that the
// row is null. It is not called for rows where a vector is null.
func (f *frame) rowStrings(t arrow.DataType, of func(i int) (string, bool), vs ...vector) vector {
	n, one := f.length(vs...)
	valid, _ := f.validity(n, vs...)
	b, add := newTextBuilder(t)
	defer b.Release()
	b.Reserve(n)
	for i := range n {
		if valid == nil || bitutil.BitIsSet(valid, i) {
			if s, ok := of(i); ok {
				add(s)
				continue
			}
		}
		b.AppendNull()
	}
	return vector{f.own(b.NewArray()), one}
}
