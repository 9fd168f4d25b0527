package remap

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/gather"
	"github.com/rehome-db/rehome/table"
)

// Array returns an array of what the addresses in arr are now. Nulls stay null and
// are not looked at. Entries of deleted rows become null, or are left out with
// [Options.DropDeleted]; the order stays. arr may be a slice of another array, in
// any order and with duplicates, and is not changed.
//
// The caller releases the result, which is arr itself, retained, if nothing moved.
func (r *Remapper) Array(arr *array.Uint64) (*array.Uint64, Counts, error) {
	t, err := r.translate(arr)
	if err != nil {
		return nil, Counts{}, err
	}
	defer t.release()
	switch {
	case t.counts.Moved == 0 && t.counts.Deleted == 0:
		arr.Retain()
		return arr, t.counts, nil
	case t.counts.Deleted == 0 || !r.opts.DropDeleted:
		return t.array(arr, t.deleted), t.counts, nil
	}
	whole := t.array(arr, nil)
	defer whole.Release()
	kept, err := gather.Array(r.opts.Allocator, whole, t.deleted.gaps(arr.Len()))
	if err != nil {
		return nil, Counts{}, fmt.Errorf("remap: %w", err)
	}
	return kept.(*array.Uint64), t.counts, nil
}

// Record returns rec with the addresses in the given column, which is of type
// uint64, as they are now. Rows whose address is of a deleted row are left out of
// all columns, whatever [Options.DropDeleted] says: what stands beside a dead
// address has nothing to belong to. Rows without an address (null) stay.
//
// Columns of every Arrow type can be copied but run-end encoded ones, which are
// refused (ErrUnsupported of package table) before anything is done, even if no
// row goes. The caller releases the result. It shares what did not change with
// rec: all other columns if no row goes.
func (r *Remapper) Record(rec arrow.RecordBatch, column int) (arrow.RecordBatch, Counts, error) {
	if column < 0 || column >= int(rec.NumCols()) {
		return nil, Counts{}, fmt.Errorf("remap: record: no column %d among %d", column, rec.NumCols())
	}
	addrs, ok := rec.Column(column).(*array.Uint64)
	if !ok {
		return nil, Counts{}, table.Unsupportedf("remap: record: column %q has type %v, addresses are uint64", rec.ColumnName(column), rec.Column(column).DataType())
	}
	for i, c := range rec.Columns() {
		if err := gather.Check(c.DataType()); err != nil {
			return nil, Counts{}, fmt.Errorf("remap: record: column %q: %w", rec.ColumnName(i), err)
		}
	}
	t, err := r.translate(addrs)
	if err != nil {
		return nil, Counts{}, fmt.Errorf("remap: record: column %q: %w", rec.ColumnName(column), err)
	}
	defer t.release()
	moved := t.array(addrs, nil)
	defer moved.Release()
	cols := append([]arrow.Array(nil), rec.Columns()...)
	cols[column] = moved
	whole := array.NewRecordBatch(rec.Schema(), cols, rec.NumRows())
	if t.counts.Deleted == 0 {
		return whole, t.counts, nil
	}
	defer whole.Release()
	out, err := gather.Record(r.opts.Allocator, whole, t.deleted.gaps(addrs.Len()))
	if err != nil {
		return nil, Counts{}, fmt.Errorf("remap: record: %w", err)
	}
	return out, t.counts, nil
}

// translated is the entries of an array, translated, at their old positions.
type translated struct {
	mem     memory.Allocator
	values  *memory.Buffer
	deleted Mask
	counts  Counts
}

func (t *translated) release() { t.values.Release() }

func (r *Remapper) translate(arr *array.Uint64) (*translated, error) {
	n := arr.Len()
	t := &translated{mem: r.opts.Allocator, values: memory.NewResizableBuffer(r.opts.Allocator), deleted: NewMask(n)}
	t.values.Resize(n * arrow.Uint64SizeBytes)
	dst := arrow.Uint64Traits.CastFromBytes(t.values.Bytes())
	src := arr.Uint64Values()
	var err error
	if arr.NullN() == 0 {
		copy(dst, src)
		if _, t.counts, err = r.apply(rowAddrs(dst), t.deleted); err != nil {
			t.release()
			return nil, err
		}
		return t, nil
	}

	// What a null hides is no address. Those that are move to the front, so that
	// a null does not interrupt a stretch that ascends, and back.
	m := 0
	valid, offset := arr.NullBitmapBytes(), arr.Data().Offset()
	for i, v := range src {
		if bitutil.BitIsSet(valid, offset+i) {
			dst[m] = v
			m++
		}
	}
	packed := NewMask(m)
	if _, t.counts, err = r.apply(rowAddrs(dst[:m]), packed); err != nil {
		t.release()
		return nil, err
	}
	for i := n - 1; i >= 0; i-- {
		if !bitutil.BitIsSet(valid, offset+i) {
			dst[i] = 0
			continue
		}
		m--
		dst[i] = dst[m]
		if packed.Get(m) {
			t.deleted.set(i)
		}
	}
	return t, nil
}

// array returns the entries as an array in which arr's nulls are null and the
// entries of the mask as well.
func (t *translated) array(arr *array.Uint64, null Mask) *array.Uint64 {
	n := arr.Len()
	nulls := arr.NullN()
	var valid *memory.Buffer
	if nulls > 0 || null != nil {
		valid = memory.NewResizableBuffer(t.mem)
		defer valid.Release()
		valid.Resize(int(bitutil.BytesForBits(int64(n))))
		set := valid.Bytes()
		clear(set)
		if nulls > 0 {
			bitutil.CopyBitmap(arr.NullBitmapBytes(), arr.Data().Offset(), n, set, 0)
		} else {
			bitutil.SetBitsTo(set, 0, int64(n), true)
		}
		var word [8]byte
		for i, w := range null {
			// Masks and bitmaps count bits alike, from the lowest of the first byte.
			binary.LittleEndian.PutUint64(word[:], w)
			for j, b := range set[8*i : min(8*i+8, len(set))] {
				set[8*i+j] = b &^ word[j]
			}
		}
		nulls = n - bitutil.CountSetBits(set, 0, n)
	}
	d := array.NewData(arrow.PrimitiveTypes.Uint64, n, []*memory.Buffer{valid, t.values}, nil, nulls, 0)
	defer d.Release()
	return array.NewUint64Data(d)
}

// gaps returns the entries of the first n that are not marked, as ranges.
func (m Mask) gaps(n int) []gather.Range {
	var out []gather.Range
	add := func(start, end int) {
		if k := len(out); k > 0 && out[k-1].End == start {
			out[k-1].End = end
		} else {
			out = append(out, gather.Range{Start: start, End: end})
		}
	}
	for i, w := range m {
		base := 64 * i
		count := min(64, n-base)
		free := ^w
		if count < 64 {
			free &= 1<<count - 1
		}
		for free != 0 {
			from := bits.TrailingZeros64(free)
			length := bits.TrailingZeros64(^(free >> from))
			add(base+from, base+from+length)
			free &= ^uint64(0) << (from + length)
		}
	}
	return out
}
