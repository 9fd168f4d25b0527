package arrowipc

import (
	"fmt"
	"math"
)

// The kinds of messages, as their header says.
const (
	kindSchema      = 1
	kindDictionary  = 2
	kindRecordBatch = 3
)

// Of the kinds of types, those of which the size is not fixed.
const (
	typeTimestamp = 10
	typeUnion     = 14
)

// maxDepth is how deep types may be nested; the Arrow library has the same limit.
const maxDepth = 64

// message is the metadata of a message, looked at.
type message struct {
	flat
	kind       uint8
	bodyLength int
	// batch is the table of a record batch, also of the one that is a dictionary; 0 for
	// a schema.
	batch int
}

// parse looks at a message's metadata.
func parse(metadata []byte) (*message, error) { return parseWith(metadata, -1) }

// parseWith is parse for a body of so many bytes, whatever the metadata say; -1 for what
// they say.
func parseWith(metadata []byte, bodyLength int) (*message, error) {
	m := &message{flat: flat{bytes: metadata}}
	root := m.root()
	if at := m.field(root, 1); at != 0 {
		m.kind = m.u8(at)
	}
	if at := m.field(root, 3); at != 0 {
		n := m.i64(at)
		if n < 0 || n > math.MaxInt32*1024 {
			return nil, fmt.Errorf("a message with a body of %d bytes", n)
		}
		m.bodyLength = int(n)
	}
	if bodyLength >= 0 {
		m.bodyLength = bodyLength
	}
	header := m.table(root, 2)
	if header == 0 {
		return nil, fmt.Errorf("a message without a header")
	}
	switch m.kind {
	case kindSchema:
		if err := checkSchema(&m.flat, header); err != nil {
			return nil, err
		}
	case kindDictionary:
		if m.batch = m.table(header, 1); m.batch == 0 {
			return nil, fmt.Errorf("a dictionary without values")
		}
	case kindRecordBatch:
		m.batch = header
	default:
		return nil, fmt.Errorf("a message of kind %d, which is no schema, dictionary or batch of rows", m.kind)
	}
	if m.batch != 0 {
		if err := m.checkBatch(); err != nil {
			return nil, err
		}
	}
	return m, m.err()
}

// checkBatch checks the counts of a record batch, and that its buffers lie in the body.
func (m *message) checkBatch() error {
	if at := m.field(m.batch, 0); at != 0 {
		if n := m.i64(at); n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("a batch of %d rows", n)
		}
	}
	first, n := m.vector(m.batch, 1, 16)
	for i := range n {
		if length, nulls := m.i64(first+16*i), m.i64(first+16*i+8); length < 0 || length > 1<<48 || nulls < 0 || nulls > length {
			return fmt.Errorf("an array of %d values of which %d are null", length, nulls)
		}
	}
	buffers, n := m.vector(m.batch, 2, 16)
	for i := range n {
		offset, length := m.i64(buffers+16*i), m.i64(buffers+16*i+8)
		if offset < 0 || length < 0 || offset > int64(m.bodyLength) || length > int64(m.bodyLength)-offset {
			return fmt.Errorf("a buffer of %d bytes at byte %d of %d", length, offset, m.bodyLength)
		}
	}
	counts, views := m.vector(m.batch, 4, 8)
	for i := range views {
		if k := m.i64(counts + 8*i); k < 0 || k > int64(n) {
			return fmt.Errorf("an array with %d buffers of text, and the batch has %d buffers", k, n)
		}
	}
	return m.err()
}

// checkSchema checks that a schema has no more in it than its metadata have room for: a
// part that is referred to from several places is read several times.
func checkSchema(f *flat, schema int) error {
	room := len(f.bytes)
	first, n := f.vector(schema, 1, 4)
	room -= texts(f, schema, 2)
	if err := checkFields(f, first, n, 1, &room); err != nil {
		return err
	}
	if room < 0 {
		return fmt.Errorf("a schema that refers to the same names again and again")
	}
	return f.err()
}

func checkFields(f *flat, first, n, depth int, room *int) error {
	if depth > maxDepth && n > 0 {
		return fmt.Errorf("a schema with more than %d types inside each other", maxDepth)
	}
	for i := range n {
		field := f.follow(first + 4*i)
		_, name := f.vector(field, 0, 1)
		*room -= 8 + name + texts(f, field, 6)
		if at := f.field(field, 2); at != 0 && (f.u8(at) == typeTimestamp || f.u8(at) == typeUnion) {
			_, inType := f.vector(f.table(field, 3), 1, 1) // the time zone, the type codes
			*room -= inType
		}
		if *room < 0 || f.bad {
			return fmt.Errorf("a schema that refers to the same fields again and again, or to what is not there")
		}
		below, k := f.vector(field, 5, 4)
		if err := checkFields(f, below, k, depth+1, room); err != nil {
			return err
		}
	}
	return nil
}

// texts is the number of bytes of a vector of pairs of strings.
func texts(f *flat, table, n int) int {
	first, count := f.vector(table, n, 4)
	bytes := 0
	for i := range count {
		pair := f.follow(first + 4*i)
		for part := range 2 {
			_, k := f.vector(pair, part, 1)
			bytes += k
		}
		if f.bad || bytes > len(f.bytes) {
			break
		}
	}
	return bytes
}
