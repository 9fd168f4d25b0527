package deletion

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/klauspost/compress/zstd"
)

// columnName is the one column's name; readers compare it.
const columnName = "row_id"

// maxWindow bounds what a compressed buffer can make the decoder allocate before
// it yields a byte. The writers of this format stay below 8 MiB.
const maxWindow = 32 << 20

// EncodeArrow returns v as an Arrow IPC file: one batch, one non-null uint32
// column, sorted, buffers compressed with zstd.
func EncodeArrow(v *Vector) ([]byte, error) {
	schema := arrow.NewSchema([]arrow.Field{{Name: columnName, Type: arrow.PrimitiveTypes.Uint32}}, nil)
	b := array.NewUint32Builder(memory.DefaultAllocator)
	defer b.Release()
	b.Reserve(int(v.Cardinality()))
	for o := range v.All() {
		b.UnsafeAppend(o)
	}
	col := b.NewArray()
	defer col.Release()
	rec := array.NewRecordBatch(schema, []arrow.Array{col}, int64(col.Len()))
	defer rec.Release()

	var out bytes.Buffer
	w, err := ipc.NewFileWriter(&out, ipc.WithSchema(schema), ipc.WithZstd())
	if err != nil {
		return nil, fmt.Errorf("deletion: arrow: %w", err)
	}
	if err := w.Write(rec); err != nil {
		return nil, fmt.Errorf("deletion: arrow: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("deletion: arrow: %w", err)
	}
	return out.Bytes(), nil
}

// DecodeArrow reads an Arrow IPC file of the form that [EncodeArrow] writes, with
// the values in any order and the buffers compressed with zstd or not. A value
// that occurs twice is refused: no writer makes it, and readers would disagree on
// the number of deleted rows.
//
// The metadata is parsed here (see flat.go) because Arrow's reader, handed hostile
// bytes, allocates what they ask for.
func DecodeArrow(data []byte, physicalRows uint64) (*Vector, error) {
	batch, err := openArrow(data)
	if err != nil {
		return nil, err
	}
	physicalRows = min(physicalRows, 1<<32)
	if batch.rows > physicalRows {
		return nil, corruptf("deletion: arrow: %d rows are deleted in a fragment of %d", batch.rows, physicalRows)
	}
	values, done, err := batch.values()
	if err != nil {
		return nil, err
	}
	defer done()

	// Read in pieces: memory follows the distinct values seen so far, whatever
	// a compressed buffer claims to hold.
	bm := roaring.New()
	var chunk [4096]byte
	for left := batch.rows; left > 0; {
		part := chunk[:4*min(left, uint64(len(chunk)/4))]
		if _, err := io.ReadFull(values, part); err != nil {
			if errors.Is(err, zstd.ErrWindowSizeExceeded) {
				return nil, unsupportedf("deletion: arrow: values: %w", err)
			}
			return nil, corruptf("deletion: arrow: values: %w", err)
		}
		for i := 0; i < len(part); i += 4 {
			o := binary.LittleEndian.Uint32(part[i:])
			if uint64(o) >= physicalRows {
				return nil, corruptf("deletion: arrow: offset %d is deleted in a fragment of %d rows", o, physicalRows)
			}
			if !bm.CheckedAdd(o) {
				return nil, corruptf("deletion: arrow: offset %d occurs twice", o)
			}
		}
		left -= uint64(len(part) / 4)
	}
	return compact(bm), nil
}

// arrowBatch is the one record batch of a file: rows values of 4 bytes.
type arrowBatch struct {
	rows       uint64
	data       []byte // the values buffer as stored
	compressed bool   // data begins with the u64 length and goes on with a zstd frame
}

// values returns a reader of at least 4*rows bytes and a function to call after
// use.
func (b arrowBatch) values() (io.Reader, func(), error) {
	need := 4 * b.rows
	raw := b.data
	if b.compressed && need > 0 {
		if len(raw) < 8 {
			return nil, nil, corruptf("deletion: arrow: a compressed buffer of %d bytes has no length", len(raw))
		}
		length := int64(binary.LittleEndian.Uint64(raw))
		raw = raw[8:]
		// -1 says that compression did not pay and the bytes follow as they are.
		if length != -1 {
			// Buffers may be padded, to 64 bytes by the most generous writers.
			if length < 0 || uint64(length) < need || uint64(length)-need >= 64 {
				return nil, nil, corruptf("deletion: arrow: %d values need %d bytes, the buffer has %d", b.rows, need, length)
			}
			// Concurrency 1 decodes in the caller's goroutine and starts none.
			dec, err := zstd.NewReader(bytes.NewReader(raw), zstd.WithDecoderConcurrency(1),
				zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
			if err != nil {
				return nil, nil, corruptf("deletion: arrow: values: %w", err)
			}
			return dec, dec.Close, nil
		}
	}
	if uint64(len(raw)) < need {
		return nil, nil, corruptf("deletion: arrow: %d values need %d bytes, the buffer has %d", b.rows, need, len(raw))
	}
	return bytes.NewReader(raw), func() {}, nil
}
