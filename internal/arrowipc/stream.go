package arrowipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/recovered"
)

// continuation begins each message, except in what Arrow wrote before version 0.15.
const continuation = 0xffffffff

// Stream yields the batches of an IPC stream, which is read once, up to its end marker
// or its end. A batch is valid until the next one, unless it is retained.
func Stream(in io.Reader) iter.Seq2[arrow.RecordBatch, error] {
	return batches(func() (metadata, body []byte, err error) { return readMessage(in) })
}

// batches yields the batches of messages. next returns io.EOF after the last.
func batches(next func() (metadata, body []byte, err error)) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		messages := &messageReader{next: next}
		in, err := open(messages)
		if err != nil {
			yield(nil, err)
			return
		}
		defer in.Release()
		for {
			rec, err := read(in)
			if err != nil && messages.err != nil && !errors.Is(messages.err, io.EOF) {
				err = messages.err // without what the library says around it
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if rec == nil && err == nil {
				err = errors.New("a message that makes no rows")
			}
			if !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// open and read call the library, which may panic.
func open(messages *messageReader) (in *ipc.Reader, err error) {
	defer recovered.Into(&err)
	if in, err = ipc.NewReaderFromMessageReader(messages, ipc.WithAllocator(allocator{memory.DefaultAllocator, messages})); err != nil && messages.err != nil {
		err = messages.err // without what the library says around it
	}
	return in, unexpected(err)
}

func read(in *ipc.Reader) (rec arrow.RecordBatch, err error) {
	defer recovered.Into(&err)
	return in.Read()
}

// unexpected is for where the end is no end.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// messageReader gives the library messages that were looked at.
type messageReader struct {
	next func() (metadata, body []byte, err error)
	err  error // what next or the look said
	held int   // the bytes of all messages so far, decompressed
}

func (r *messageReader) Retain()  {}
func (r *messageReader) Release() {}

// Message returns the next message.
func (r *messageReader) Message() (*ipc.Message, error) {
	metadata, body, err := r.next()
	if err == nil {
		var m *message
		if m, err = parse(metadata); err == nil && m.batch != 0 {
			body, err = m.inflate(body)
		}
	}
	if err != nil {
		r.err = err
		return nil, err
	}
	r.held += len(metadata) + len(body)
	return ipc.NewMessage(memory.NewBufferBytes(metadata), memory.NewBufferBytes(body)), nil
}

// allocator is what the library may allocate from: as it decompresses nothing, it needs
// no more than the messages have, to put parts of dictionaries together.
type allocator struct {
	memory.Allocator
	messages *messageReader
}

// spare is for what is rounded up.
const spare = 64 << 10

// refuses says that there is no such memory. The library finds that out when it uses
// what it was given, and panics, which is stopped.
func (a allocator) refuses(size int) bool {
	if size <= 2*a.messages.held+spare {
		return false
	}
	a.messages.err = fmt.Errorf("%d bytes are asked for, by messages of %d", size, a.messages.held)
	return true
}

func (a allocator) Allocate(size int) []byte {
	if a.refuses(size) {
		return nil
	}
	return a.Allocator.Allocate(size)
}

func (a allocator) Reallocate(size int, b []byte) []byte {
	if a.refuses(size) {
		return nil
	}
	return a.Allocator.Reallocate(size, b)
}

// readMessage reads a message, and returns io.EOF at the end of the stream.
func readMessage(in io.Reader) (metadata, body []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, nil, err // io.EOF: a stream may go without its end marker
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n == continuation {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return nil, nil, unexpected(err)
		}
		n = binary.LittleEndian.Uint32(head[:])
	}
	if n == 0 {
		return nil, nil, io.EOF
	}
	if metadata, err = readGrowing(in, int64(n)); err != nil {
		return nil, nil, err
	}
	m, err := parse(metadata)
	if err != nil {
		return nil, nil, err
	}
	body, err = readGrowing(in, int64(m.bodyLength))
	return metadata, body, err
}

// readGrowing reads n bytes into memory that grows as they come.
func readGrowing(in io.Reader, n int64) ([]byte, error) {
	var b bytes.Buffer
	got, err := io.CopyN(&b, in, n)
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("a message with %d more bytes, and %d are there: %w", n, got, io.ErrUnexpectedEOF)
	}
	return b.Bytes(), err
}
