package arrowipc

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
)

// magic begins an IPC file, padded to eight bytes, and ends it.
var magic = []byte("ARROW1")

const headLength = 8

// block is where a message lies in a file.
type block struct{ offset, metadata, body int64 }

// File yields the batches of an IPC file of so many bytes. A batch is valid until the
// next one, unless it is retained.
func File(in io.ReaderAt, size int64) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		schema, blocks, err := readFooter(in, size)
		if err != nil {
			yield(nil, err)
			return
		}
		batches(func() (metadata, body []byte, err error) {
			if schema != nil {
				metadata, schema = schema, nil
				return metadata, nil, nil
			}
			if len(blocks) == 0 {
				return nil, nil, io.EOF
			}
			b := blocks[0]
			blocks = blocks[1:]
			metadata, body, err = readMessage(io.NewSectionReader(in, b.offset, b.metadata+b.body))
			return metadata, body, unexpected(err)
		})(yield)
	}
}

// readFooter returns the metadata of a message that is the schema, and the blocks of
// dictionaries, then those of batches.
func readFooter(in io.ReaderAt, size int64) (schema []byte, blocks []block, err error) {
	tail := int64(4 + len(magic))
	if size < headLength+tail {
		return nil, nil, fmt.Errorf("an Arrow IPC file of %d bytes", size)
	}
	end, err := readAt(in, size-tail, tail)
	if err != nil {
		return nil, nil, err
	}
	n := int64(int32(binary.LittleEndian.Uint32(end)))
	if !bytes.Equal(end[4:], magic) {
		return nil, nil, fmt.Errorf("an Arrow IPC file that does not end as one: it is cut off, or something was added")
	}
	if n <= 0 || n > size-headLength-tail {
		return nil, nil, fmt.Errorf("a footer of %d bytes in a file of %d", n, size)
	}
	footer, err := readAt(in, size-tail-n, n)
	if err != nil {
		return nil, nil, err
	}
	f := &flat{bytes: footer}
	root := f.root()
	for _, field := range []int{2, 3} {
		first, n := f.vector(root, field, 24)
		for i := range n {
			at := first + 24*i
			blocks = append(blocks, block{f.i64(at), int64(f.i32(at + 8)), f.i64(at + 16)})
		}
	}
	at := f.table(root, 1)
	if at == 0 || f.bad {
		return nil, nil, fmt.Errorf("the footer: %w", errMetadata)
	}
	return schemaMessage(footer, at), blocks, checkBlocks(blocks, size-tail-n)
}

// schemaMessage is the metadata of a message of the schema that lies at a place of a
// footer. Offsets are relative, so the footer is the message's tail as it is.
func schemaMessage(footer []byte, at int) []byte {
	const (
		vtable, message, header = 4, 16, 20
		length                  = 32
		version5                = 4
	)
	m := make([]byte, length, length+len(footer))
	binary.LittleEndian.PutUint32(m, message)
	for i, v := range []uint16{10, 12, 8, 10, 4} { // sizes, then where the fields are
		binary.LittleEndian.PutUint16(m[vtable+2*i:], v)
	}
	binary.LittleEndian.PutUint32(m[message:], message-vtable)
	binary.LittleEndian.PutUint32(m[header:], uint32(length+at-header))
	m[message+8], m[message+10] = version5, kindSchema
	return append(m, footer...)
}

// checkBlocks checks that blocks lie before the footer and do not overlap.
func checkBlocks(blocks []block, size int64) error {
	for _, b := range blocks {
		if b.offset < headLength || b.metadata < 0 || b.body < 0 || b.offset > size || b.metadata > size-b.offset || b.body > size-b.offset-b.metadata {
			return fmt.Errorf("a message of %d and %d bytes at byte %d, and the footer is at byte %d", b.metadata, b.body, b.offset, size)
		}
	}
	sorted := slices.SortedFunc(slices.Values(blocks), func(a, b block) int { return cmp.Compare(a.offset, b.offset) })
	for i := 1; i < len(sorted); i++ {
		if a, b := sorted[i-1], sorted[i]; b.offset < a.offset+a.metadata+a.body {
			return fmt.Errorf("two messages that overlap, at the bytes %d and %d", a.offset, b.offset)
		}
	}
	return nil
}

func readAt(in io.ReaderAt, offset, n int64) ([]byte, error) {
	b := make([]byte, n)
	if _, err := in.ReadAt(b, offset); err != nil {
		return nil, fmt.Errorf("read %d bytes at byte %d: %w", n, offset, unexpected(err))
	}
	return b, nil
}
