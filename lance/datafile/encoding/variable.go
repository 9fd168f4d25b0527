package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/fsst"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// Strings are offsets and bytes. In a chunk offsets count from the beginning of the buffer,
// which ends at a whole offset. "ab", "" and "c" with offsets of 32 bits:
//
//	10 00 00 00  12 00 00 00  12 00 00 00  13 00 00 00
//	61 62 63
//	48           filler
//
// In a block, that is a dictionary, they count from where the bytes begin, and the width of
// offsets and that place come first:
//
//	20 00 00 00  18 00 00 00
//	00 00 00 00  02 00 00 00  02 00 00 00  03 00 00 00
//	61 62 63
//
// Format 2.3 may have offsets as a sequence instead ([offsetStrings]).

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

type stringValues struct{ decoder stringDecoder }

func (d *stringValues) buffers() int { return d.decoder.buffers() }

func (d *stringValues) appendTo(s *sink, n int, bufs [][]byte) error {
	s.v.N += n
	if f, ok := d.decoder.(*fsstStrings); ok {
		var err error
		s.v.Data, s.v.Offsets, err = f.appendTo(s.v.Data, s.v.Offsets, n, bufs)
		return err
	}
	in, err := d.decoder.decode(n, bufs)
	if err != nil {
		return err
	}
	first, end := in.offsets[0], in.offsets[n]
	if err := s.tooLong(int(end - first)); err != nil {
		return err
	}
	base := uint32(len(s.v.Data)) - first
	have := len(s.v.Offsets)
	s.v.Offsets = append(s.v.Offsets, in.offsets[1:n+1]...)
	added := s.v.Offsets[have:]
	for i := range added {
		added[i] += base
	}
	s.v.Data = append(s.v.Data, in.data[first:end]...)
	return nil
}

func describeVariable(offsetBits int) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Variable{
		Variable: &enc21pb.Variable{Offsets: describeFlat(offsetBits)}}}
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

// stringEncoder returns the encoder of b's strings, which compresses them with a symbol table if that pays.
func (e *Encoder) stringEncoder(b *level.Block) *stringEncoder {
	c := &stringEncoder{data: b.Values.Data, offsets: b.Values.Offsets, width: b.Type.Bits / 8, chunk: stringChunkBytes}
	if n := e.opts.ChunkBytes; n > 0 {
		c.chunk = min(max(n, minChunkBytes), maxChunkBytes)
	}
	c.encoding = describeVariable(b.Type.Bits)
	if e.useSymbols(b) {
		c.data, c.offsets = e.encodeStrings(b)
		c.encoding = describeFSST(e.symbols.Table(), c.encoding)
	}
	return c
}

// stringEncoder stores offsets from the beginning of the buffer, then the bytes.
type stringEncoder struct {
	data     []byte
	offsets  []uint32
	width    int // of an offset, in bytes
	chunk    int // bytes to keep below
	encoding *enc21pb.CompressiveEncoding
}

const (
	// stringChunkBytes is what chunks of strings are kept below, as the stock engine does.
	stringChunkBytes = 4 * 1024
	// minChunkBytes is the least that a column may ask for instead; the most is what still
	// leaves room in a chunk for levels and lengths.
	minChunkBytes = 256
	maxChunkBytes = hardChunk / 2
	// offsetsPad fills strings up to whole offsets. Readers look at it as little as at
	// chunkPad; it is what the stock engine writes.
	offsetsPad = 0x48
)

func (c *stringEncoder) describe() (*enc21pb.CompressiveEncoding, int) { return c.encoding, 1 }

func (c *stringEncoder) limits() (int, int) { return maxChunkSlots, c.chunk }

// size includes the filler up to a whole offset, without which readers panic.
func (c *stringEncoder) size(from, to int) int {
	n := (to-from+1)*c.width + int(c.offsets[to]-c.offsets[from])
	return (n + c.width - 1) / c.width * c.width
}

func (c *stringEncoder) append(dst []byte, sizes []int, from, to int) ([]byte, []int) {
	start := len(dst)
	first := (to - from + 1) * c.width
	dst = append(dst, make([]byte, first)...)
	table := dst[start:]
	base := uint32(first) - c.offsets[from]
	for i, o := range c.offsets[from : to+1] {
		storeWord(table[c.width*i:], c.width, uint64(o+base))
	}
	dst = append(dst, c.data[c.offsets[from]:c.offsets[to]]...)
	dst = padTo(dst, c.width, offsetsPad)
	sizes = append(sizes, len(dst)-start)
	return padTo(dst, alignment, chunkPad), sizes
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

// appendStringBlock writes strings in block form: the width of offsets in bits
// and where the bytes begin, in words of that width, then the offsets, then the
// bytes.
func appendStringBlock(dst []byte, width int, items []string) []byte {
	word := func(v uint64) {
		if width == 4 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(v))
		} else {
			dst = binary.LittleEndian.AppendUint64(dst, v)
		}
	}
	word(uint64(8 * width))
	word(uint64((2 + len(items) + 1) * width))
	end := uint64(0)
	word(end)
	for _, item := range items {
		end += uint64(len(item))
		word(end)
	}
	for _, item := range items {
		dst = append(dst, item...)
	}
	return dst
}

// offsetStrings is offsets, as a sequence of its own that may need no bytes, and the
// bytes. Format 2.3 has them.
type offsetStrings struct {
	codec   sequenceDecoder
	offsets []uint32
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

func compileOffsetStrings(v *enc21pb.Variable, e *enc21pb.CompressiveEncoding, limit int) (*offsetStrings, error) {
	width := sequenceWidth(v.GetOffsets())
	if v.GetValues() != nil || width != 32 && width != 64 {
		return nil, unsupported(e)
	}
	codec, err := compileSequence(v.GetOffsets(), width, limit, false)
	return &offsetStrings{codec: codec}, err
}
