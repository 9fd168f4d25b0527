package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/fsst"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// stringView is some strings: string i is data[offsets[i]:offsets[i+1]].
type stringView struct {
	data    []byte
	offsets []uint32
}

// stringDecoder decodes byte strings.
type stringDecoder interface {
	buffers() int
	// decode returns n strings whose offsets were checked. They are valid until
	// the next call, and as long as bufs are.
	decode(n int, bufs [][]byte) (stringView, error)
}

// compileStrings checks the encoding of strings.
func compileStrings(e *enc21pb.CompressiveEncoding, f form, limit, depth int) (stringDecoder, error) {
	if depth > maxEncodingDepth {
		return nil, table.Corruptf("encoding: encodings are nested more than %d deep", maxEncodingDepth)
	}
	switch c := e.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Variable:
		if _, flat := c.Variable.GetOffsets().GetCompression().(*enc21pb.CompressiveEncoding_Flat); !flat && f == inChunk {
			return compileOffsetStrings(c.Variable, e, limit)
		}
		width, err := offsetBits(c.Variable, e)
		if err != nil {
			return nil, err
		}
		if f == inBlock {
			return &blockStrings{}, nil
		}
		return &chunkStrings{width: width / 8}, nil
	case *enc21pb.CompressiveEncoding_Fsst:
		symbols, err := fsst.ParseTable(c.Fsst.GetSymbolTable())
		if err != nil {
			return nil, err
		}
		inner, err := compileStrings(c.Fsst.GetValues(), f, limit, depth+1)
		if err != nil {
			return nil, err
		}
		if symbols.Off() {
			return inner, nil
		}
		return &fsstStrings{symbols: symbols, inner: inner, limit: limit}, nil
	case *enc21pb.CompressiveEncoding_General:
		if err := checkScheme(c.General.GetCompression()); err != nil {
			return nil, err
		}
		inner, err := compileStrings(c.General.GetValues(), f, limit, depth+1)
		if err != nil {
			return nil, err
		}
		return &generalStrings{general{scheme: c.General.GetCompression().GetScheme(), limit: limit}, inner}, nil
	default:
		return nil, unsupported(e)
	}
}

// offsetBits returns the width of a variable encoding's offsets.
func offsetBits(v *enc21pb.Variable, e *enc21pb.CompressiveEncoding) (int, error) {
	flat, ok := v.GetOffsets().GetCompression().(*enc21pb.CompressiveEncoding_Flat)
	if !ok || flat.Flat.GetData() != nil || v.GetValues() != nil {
		return 0, unsupported(e)
	}
	switch bits := flat.Flat.GetBitsPerValue(); bits {
	case 32, 64:
		return int(bits), nil
	default:
		return 0, table.Corruptf("encoding: offsets of %d bits", bits)
	}
}

// offsetStrings is offsets, as a sequence of its own that may need no bytes, and the
// bytes. Format 2.3 has them.
type offsetStrings struct {
	codec   sequenceCodec
	offsets []uint32
}

func compileOffsetStrings(v *enc21pb.Variable, e *enc21pb.CompressiveEncoding, limit int) (*offsetStrings, error) {
	width := sequenceWidth(v.GetOffsets())
	if v.GetValues() != nil || width != 32 && width != 64 {
		return nil, unsupported(e)
	}
	codec, err := compileSequence(v.GetOffsets(), width, limit, false)
	return &offsetStrings{codec: codec}, err
}

func (d *offsetStrings) buffers() int {
	if d.codec.payload() {
		return 2
	}
	return 1
}

func (d *offsetStrings) decode(n int, bufs [][]byte) (stringView, error) {
	var in []byte
	data := bufs[0]
	if d.codec.payload() {
		in, data = bufs[0], bufs[1]
	}
	offsets, err := d.codec.load(uint64(n)+1, in)
	if err != nil {
		return stringView{}, err
	}
	if uint64(len(data)) > 1<<32-1 {
		return stringView{}, table.Unsupportedf("encoding: more than 4 GiB of strings in one buffer")
	}
	d.offsets = d.offsets[:0]
	prev := uint64(0)
	for i := range offsets.n {
		o := offsets.at(i)
		if o < prev || i == 0 && o != 0 || o > uint64(len(data)) {
			return stringView{}, table.Corruptf("encoding: offset %d is %d, after %d, in %d bytes", i, o, prev, len(data))
		}
		prev = o
		d.offsets = append(d.offsets, uint32(o))
	}
	return stringView{data, d.offsets}, nil
}

// chunkStrings is offsets from the buffer's start, then the bytes; the end of the
// buffer may be filler.
type chunkStrings struct {
	width   int
	offsets []uint32
}

func (*chunkStrings) buffers() int { return 1 }

func (d *chunkStrings) decode(n int, bufs [][]byte) (stringView, error) {
	in := bufs[0]
	if n == 0 {
		d.offsets = append(d.offsets[:0], 0)
		return stringView{offsets: d.offsets}, nil
	}
	if n >= len(in)/d.width {
		return stringView{}, table.Corruptf("encoding: %d offsets in %d bytes", n+1, len(in))
	}
	first := loadWord(in, d.width)
	if first > uint64(len(in)) {
		return stringView{}, table.Corruptf("encoding: strings begin at %d of %d bytes", first, len(in))
	}
	data := in[first:]
	var err error
	d.offsets, err = readOffsets(d.offsets[:0], in, d.width, n, first, len(data))
	return stringView{data, d.offsets}, err
}

// readOffsets appends n+1 offsets less base, which the first must not be below,
// and checks that they do not decrease and stay within size bytes.
func readOffsets(dst []uint32, in []byte, width, n int, base uint64, size int) ([]uint32, error) {
	if uint64(size) > 1<<32-1 {
		return nil, table.Unsupportedf("encoding: more than 4 GiB of strings in one buffer")
	}
	prev := base
	for i := range n + 1 {
		o := loadWord(in[i*width:], width)
		if o < prev || o-base > uint64(size) {
			return nil, table.Corruptf("encoding: offset %d is %d, after %d, in %d bytes", i, o, prev, size)
		}
		prev = o
		dst = append(dst, uint32(o-base))
	}
	return dst, nil
}

// blockStrings is a header (the offsets' width in bits, where the bytes begin),
// offsets from there, and the bytes. Header words are as wide as the offsets.
type blockStrings struct{ offsets []uint32 }

func (*blockStrings) buffers() int { return 1 }

func (d *blockStrings) decode(n int, bufs [][]byte) (stringView, error) {
	in := bufs[0]
	if len(in) < 8 {
		return stringView{}, table.Corruptf("encoding: a block of strings of %d bytes", len(in))
	}
	bits := binary.LittleEndian.Uint32(in)
	if bits != 32 && bits != 64 {
		return stringView{}, table.Corruptf("encoding: offsets of %d bits", bits)
	}
	width := int(bits / 8)
	if len(in) < 2*width || n >= (len(in)-2*width)/width {
		return stringView{}, table.Corruptf("encoding: %d offsets in %d bytes", n+1, len(in))
	}
	start := loadWord(in[width:], width)
	if start > uint64(len(in)) || start < uint64(2*width+(n+1)*width) {
		return stringView{}, table.Corruptf("encoding: strings begin at %d of %d bytes", start, len(in))
	}
	data := in[start:]
	var err error
	d.offsets, err = readOffsets(d.offsets[:0], in[2*width:], width, n, 0, len(data))
	return stringView{data, d.offsets}, err
}

type generalStrings struct {
	general
	inner stringDecoder
}

func (d *generalStrings) buffers() int { return d.inner.buffers() }

func (d *generalStrings) decode(n int, bufs [][]byte) (stringView, error) {
	bufs, err := d.expand(bufs)
	if err != nil {
		return stringView{}, err
	}
	return d.inner.decode(n, bufs)
}

type fsstStrings struct {
	symbols *fsst.Table
	inner   stringDecoder
	limit   int
	out     stringView
}

func (d *fsstStrings) buffers() int { return d.inner.buffers() }

func (d *fsstStrings) decode(n int, bufs [][]byte) (stringView, error) {
	d.out.data, d.out.offsets = d.out.data[:0], append(d.out.offsets[:0], 0)
	var err error
	d.out.data, d.out.offsets, err = d.appendTo(d.out.data, d.out.offsets, n, bufs)
	return d.out, err
}

// appendTo expands straight into the place where the strings are wanted.
func (d *fsstStrings) appendTo(data []byte, offsets []uint32, n int, bufs [][]byte) ([]byte, []uint32, error) {
	packed, err := d.inner.decode(n, bufs)
	if err != nil {
		return data, offsets, err
	}
	// Eight bytes a byte is the most that symbols give.
	if most := 8 * uint64(packed.offsets[n]-packed.offsets[0]); most > uint64(d.limit) || uint64(len(data))+most > 1<<32-1 {
		return data, offsets, table.Unsupportedf("encoding: %d bytes of compressed strings in one chunk", most/8)
	}
	return d.symbols.AppendAll(data, offsets, packed.data, packed.offsets[:n+1])
}
