package deletion

import (
	"bytes"
	"encoding/binary"
)

// This file reads just as much of an Arrow IPC file's metadata as a deletion file
// needs. The metadata is FlatBuffers: tables whose fields are found through a
// vtable of 16-bit offsets. Everything is reached through positions in the bytes,
// so each read is checked against them; nothing is allocated.

const (
	arrowMagic = "ARROW1"

	// Field numbers of the tables in Arrow's Schema.fbs, Message.fbs, File.fbs.
	footerSchema, footerDictionaries, footerBatches = 1, 2, 3
	schemaEndianness, schemaFields                  = 0, 1
	fieldName, fieldNullable, fieldTypeTag          = 0, 1, 2
	fieldType, fieldDictionary                      = 3, 4
	intWidth, intSigned                             = 0, 1
	messageHeaderTag, messageHeader                 = 1, 2
	batchLength, batchNodes, batchBuffers           = 0, 1, 2
	batchCompression                                = 3
	compressionCodec, compressionMethod             = 0, 1

	typeTagInt         = 2
	headerTagBatch     = 3
	codecLZ4, codecZSD = 0, 1

	blockSize, nodeSize, bufferSize = 24, 16, 16
)

// openArrow finds the one record batch of an Arrow file and checks that the
// schema is exactly that of a deletion file.
func openArrow(data []byte) (arrowBatch, error) {
	const tail = 4 + len(arrowMagic)
	if len(data) < 8+tail || !bytes.HasPrefix(data, []byte(arrowMagic)) || !bytes.HasSuffix(data, []byte(arrowMagic)) {
		return arrowBatch{}, corruptf("deletion: arrow: %d bytes are not an Arrow file", len(data))
	}
	end := len(data) - tail
	size := uint64(binary.LittleEndian.Uint32(data[end:]))
	if size > uint64(end-8) {
		return arrowBatch{}, corruptf("deletion: arrow: the footer claims %d bytes of a file of %d", size, len(data))
	}
	f := &flat{buf: data[end-int(size) : end]}
	footer := f.root()
	checkSchema(f, footer.table(footerSchema))
	if _, n := footer.vector(footerDictionaries, blockSize); n != 0 {
		f.failf("%d dictionaries, want none", n)
	}
	blocks, n := footer.vector(footerBatches, blockSize)
	if n != 1 {
		f.failf("%d record batches, want one", n)
	}
	if f.err != nil {
		return arrowBatch{}, f.err
	}
	offset := binary.LittleEndian.Uint64(blocks)
	meta := uint64(binary.LittleEndian.Uint32(blocks[8:]))
	body := binary.LittleEndian.Uint64(blocks[16:])
	// Each is compared with what is left, so that no sum can overflow.
	left := uint64(end) - size
	if offset > left || meta > left-offset || body > left-offset-meta {
		return arrowBatch{}, corruptf("deletion: arrow: a batch at byte %d of %d+%d bytes lies outside the file", offset, meta, body)
	}
	return openBatch(data[offset:offset+meta], data[offset+meta:offset+meta+body])
}

func checkSchema(f *flat, schema table) {
	if e := schema.uint(schemaEndianness, 2, 0); e != 0 {
		f.failf("values are not little-endian")
	}
	column := schema.only(schemaFields)
	typ := column.table(fieldType)
	switch {
	case f.err != nil:
	case string(column.string(fieldName)) != columnName:
		f.failf("the column is %.40q, want %q", column.string(fieldName), columnName)
	case column.uint(fieldTypeTag, 1, 0) != typeTagInt || typ.uint(intWidth, 4, 0) != 32 || typ.uint(intSigned, 1, 0) != 0:
		f.failf("the column is not uint32")
	case column.uint(fieldNullable, 1, 0) != 0:
		f.failf("the column is nullable")
	case column.has(fieldDictionary):
		f.failf("the column is dictionary-encoded")
	}
}

func openBatch(meta, body []byte) (arrowBatch, error) {
	// A message begins with its length, since 2019 after four bytes of ones.
	if len(meta) >= 4 && binary.LittleEndian.Uint32(meta) == 1<<32-1 {
		meta = meta[4:]
	}
	if len(meta) < 4 || uint64(binary.LittleEndian.Uint32(meta)) > uint64(len(meta)-4) {
		return arrowBatch{}, corruptf("deletion: arrow: the batch's metadata is cut off")
	}
	f := &flat{buf: meta[4 : 4+binary.LittleEndian.Uint32(meta)]}
	msg := f.root()
	if tag := msg.uint(messageHeaderTag, 1, 0); tag != headerTagBatch && f.err == nil {
		f.failf("the message is of kind %d, want a record batch", tag)
	}
	batch := msg.table(messageHeader)
	out := arrowBatch{rows: batch.uint(batchLength, 8, 0)}
	if batch.has(batchCompression) {
		c := batch.table(batchCompression)
		switch codec := c.uint(compressionCodec, 1, 0); {
		case f.err != nil:
		case codec == codecLZ4:
			return out, unsupportedf("deletion: arrow: buffers compressed with LZ4")
		case codec != codecZSD || c.uint(compressionMethod, 1, 0) != 0:
			f.failf("unknown compression %d", codec)
		}
		out.compressed = true
	}
	nodes, n := batch.vector(batchNodes, nodeSize)
	if n != 1 {
		f.failf("%d columns in the batch, want one", n)
	}
	buffers, n := batch.vector(batchBuffers, bufferSize)
	if n != 2 {
		f.failf("%d buffers in the batch, want two", n)
	}
	if f.err != nil {
		return out, f.err
	}
	if rows := binary.LittleEndian.Uint64(nodes); rows != out.rows {
		return out, corruptf("deletion: arrow: the column has %d values in a batch of %d rows", rows, out.rows)
	}
	if nulls := binary.LittleEndian.Uint64(nodes[8:]); nulls != 0 {
		return out, corruptf("deletion: arrow: %d values are null", nulls)
	}
	// The first buffer would be the validity bitmap.
	at, size := binary.LittleEndian.Uint64(buffers[bufferSize:]), binary.LittleEndian.Uint64(buffers[bufferSize+8:])
	if at > uint64(len(body)) || size > uint64(len(body))-at {
		return out, corruptf("deletion: arrow: the values lie at byte %d of %d bytes, of a body of %d", at, size, len(body))
	}
	out.data = body[at : at+size]
	return out, nil
}

// flat is a FlatBuffer. The first thing that goes wrong is kept in err and makes
// every later read return zeros.
type flat struct {
	buf []byte
	err error
}

// table is a position in the buffer, 0 for a table that is absent.
type table struct {
	f   *flat
	pos int
}

func (f *flat) failf(format string, args ...any) {
	if f.err == nil {
		f.err = corruptf("deletion: arrow: "+format, args...)
	}
}

// at returns size bytes at pos, zeros after a failure.
func (f *flat) at(pos, size int) []byte {
	if f.err == nil && (pos < 0 || size < 0 || pos > len(f.buf) || size > len(f.buf)-pos) {
		f.failf("metadata points outside its %d bytes", len(f.buf))
	}
	if f.err != nil {
		return make([]byte, min(max(size, 0), 8))
	}
	return f.buf[pos : pos+size]
}

func (f *flat) u32(pos int) int { return int(binary.LittleEndian.Uint32(f.at(pos, 4))) }

func (f *flat) root() table { return table{f, f.u32(0)} }

// field returns the position of a field's value, 0 if the table does not have it.
func (t table) field(n int) int {
	if t.f.err != nil || t.pos == 0 {
		return 0
	}
	vtable := t.pos - int(int32(t.f.u32(t.pos)))
	size := int(binary.LittleEndian.Uint16(t.f.at(vtable, 2)))
	if at := 4 + 2*n; at+2 <= size {
		if off := int(binary.LittleEndian.Uint16(t.f.at(vtable+at, 2))); off != 0 {
			return t.pos + off
		}
	}
	return 0
}

func (t table) has(n int) bool { return t.field(n) != 0 }

// uint reads an integer of size bytes, def if the field is absent.
func (t table) uint(n, size int, def uint64) uint64 {
	pos := t.field(n)
	if pos == 0 {
		return def
	}
	var wide [8]byte
	copy(wide[:], t.f.at(pos, size))
	return binary.LittleEndian.Uint64(wide[:])
}

func (t table) table(n int) table {
	pos := t.field(n)
	if pos == 0 {
		return table{t.f, 0}
	}
	return table{t.f, pos + t.f.u32(pos)}
}

// vector returns the elements of a vector of structs and their number.
func (t table) vector(n, size int) ([]byte, int) {
	pos := t.field(n)
	if pos == 0 {
		return nil, 0
	}
	pos += t.f.u32(pos)
	count := t.f.u32(pos)
	if t.f.err == nil && count > len(t.f.buf)/size {
		t.f.failf("a vector of %d elements in %d bytes of metadata", count, len(t.f.buf))
	}
	data := t.f.at(pos+4, count*size)
	if t.f.err != nil {
		return nil, 0
	}
	return data, count
}

func (t table) string(n int) []byte {
	data, _ := t.vector(n, 1)
	return data
}

// only returns the element of a vector of tables that has exactly one.
func (t table) only(n int) table {
	pos := t.field(n)
	if pos == 0 {
		t.f.failf("the schema has no column")
		return table{t.f, 0}
	}
	pos += t.f.u32(pos)
	if count := t.f.u32(pos); count != 1 {
		t.f.failf("the schema has %d columns, want one", count)
		return table{t.f, 0}
	}
	return table{t.f, pos + 4 + t.f.u32(pos+4)}
}
