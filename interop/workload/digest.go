package workload

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Digest stands for the values of a column in some rows, in any order: the sum, modulo
// 2^128, of a hash of each row's id and value. Equal digests mean that every row has
// the value that it should have, short of a collision of SHA-256 cut to 16 bytes.
//
// Values are compared by what they say, not by how Arrow lays them out: a value that a
// dictionary holds is that value, and what is under a null does not count.
type Digest struct{ lo, hi uint64 }

func (d *Digest) add(o Digest) {
	var carry uint64
	d.lo, carry = bits.Add64(d.lo, o.lo, 0)
	d.hi, _ = bits.Add64(d.hi, o.hi, carry)
}

// String returns the digest as 32 hexadecimal digits.
func (d Digest) String() string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], d.hi)
	binary.BigEndian.PutUint64(b[8:], d.lo)
	return hex.EncodeToString(b[:])
}

// MarshalText implements encoding.TextMarshaler.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	var b [16]byte
	if len(text) != 2*len(b) {
		return fmt.Errorf("workload: %q is no digest", text)
	}
	if _, err := hex.Decode(b[:], text); err != nil {
		return fmt.Errorf("workload: %q is no digest: %w", text, err)
	}
	d.hi, d.lo = binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	return nil
}

// Digests adds up the columns of batches of a table, which have a column "id".
type Digests struct {
	Rows    int
	Columns map[string]Digest
}

// Add adds the rows of a batch.
func (d *Digests) Add(rec arrow.RecordBatch) error {
	at := rec.Schema().FieldIndices("id")
	if len(at) != 1 {
		return errors.New("workload: rows without a column id")
	}
	ids, ok := rec.Column(at[0]).(*array.Int64)
	if !ok || ids.NullN() > 0 {
		return fmt.Errorf("workload: the column id is %s with %d nulls", rec.Column(at[0]).DataType(), rec.Column(at[0]).NullN())
	}
	if d.Columns == nil {
		d.Columns = map[string]Digest{}
	}
	d.Rows += ids.Len()
	for i, f := range rec.Schema().Fields() {
		hashes, err := hashRows(ids, rec.Column(i))
		if err != nil {
			return fmt.Errorf("column %q: %w", f.Name, err)
		}
		sum := d.Columns[f.Name]
		for _, h := range hashes {
			sum.add(h)
		}
		d.Columns[f.Name] = sum
	}
	return nil
}

// hashRows hashes each row's id and value.
func hashRows(ids *array.Int64, values arrow.Array) ([]Digest, error) {
	out := make([]Digest, ids.Len())
	var b []byte
	for i := range out {
		var err error
		b = binary.LittleEndian.AppendUint64(b[:0], uint64(ids.Value(i)))
		if b, err = appendCanonical(b, values, i); err != nil {
			return nil, err
		}
		h := sha256.Sum256(b)
		out[i] = Digest{lo: binary.LittleEndian.Uint64(h[:8]), hi: binary.LittleEndian.Uint64(h[8:16])}
	}
	return out, nil
}

// appendCanonical appends bytes that only equal values have.
func appendCanonical(b []byte, a arrow.Array, i int) ([]byte, error) {
	switch a := a.(type) {
	case *array.Dictionary:
		if a.IsNull(i) {
			return append(b, 0), nil
		}
		return appendCanonical(b, a.Dictionary(), a.GetValueIndex(i))
	case array.ExtensionArray:
		return appendCanonical(b, a.Storage(), i)
	}
	if a.IsNull(i) || a.DataType().ID() == arrow.NULL {
		return append(b, 0), nil
	}
	b = append(b, 1)
	items := func(of arrow.Array, start, end int) (_ []byte, err error) {
		b = binary.AppendUvarint(b, uint64(end-start))
		for k := start; k < end && err == nil; k++ {
			b, err = appendCanonical(b, of, k)
		}
		return b, err
	}
	varied := func(v []byte) ([]byte, error) { return append(binary.AppendUvarint(b, uint64(len(v))), v...), nil }
	switch a := a.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case *array.String:
		return varied([]byte(a.Value(i)))
	case *array.LargeString:
		return varied([]byte(a.Value(i)))
	case *array.Binary:
		return varied(a.Value(i))
	case *array.LargeBinary:
		return varied(a.Value(i))
	case *array.Struct:
		var err error
		for f := 0; f < a.NumField() && err == nil; f++ {
			b, err = appendCanonical(b, a.Field(f), i)
		}
		return b, err
	case *array.Map:
		start, end := a.ValueOffsets(i)
		b = binary.AppendUvarint(b, uint64(end-start))
		for k := int(start); k < int(end); k++ {
			var err error
			if b, err = appendCanonical(b, a.Keys(), k); err != nil {
				return b, err
			}
			if b, err = appendCanonical(b, a.Items(), k); err != nil {
				return b, err
			}
		}
		return b, nil
	case array.ListLike: // of fixed size too
		start, end := a.ValueOffsets(i)
		return items(a.ListValues(), int(start), int(end))
	}
	if dt, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		width, at := dt.Bytes(), a.Data().Offset()+i
		if values := a.Data().Buffers()[1].Bytes(); (at+1)*width <= len(values) {
			return append(b, values[at*width:(at+1)*width]...), nil
		}
	}
	return b, fmt.Errorf("workload: no digest of %s", a.DataType())
}
