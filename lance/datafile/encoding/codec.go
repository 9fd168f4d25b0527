package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// form says where an encoding stands: some are laid out differently, or exist
// only, in one of the two places.
type form int

const (
	// inChunk: the values of a mini-block chunk, in one or more buffers.
	inChunk form = iota
	// inBlock: levels and dictionaries, in one buffer.
	inBlock
)

// fixedDecoder decodes values of a fixed number of bits.
type fixedDecoder interface {
	// buffers is the number of buffers that decode takes.
	buffers() int
	// decode appends n values, back to back and filled up to whole bytes.
	decode(dst []byte, n int, bufs [][]byte) ([]byte, error)
}

// valueDecoder appends the values of a chunk to a sink.
type valueDecoder interface {
	buffers() int
	appendTo(s *sink, n int, bufs [][]byte) error
}

// valueEncoder encodes the value slots of a page chunk by chunk.
type valueEncoder interface {
	// describe returns the encoding and how many buffers a chunk has.
	describe() (*enc21pb.CompressiveEncoding, int)
	// limits returns the most slots of a chunk, and the bytes to stay below if
	// more than two slots remain.
	limits() (slots, bytes int)
	// size returns the bytes of the buffers for the slots [from, to), or an
	// upper bound.
	size(from, to int) int
	// append appends the buffers for the slots [from, to) to dst, each padded,
	// and their sizes without padding to sizes. dst is aligned.
	append(dst []byte, sizes []int, from, to int) ([]byte, []int)
}

// compileValues checks the encoding of a leaf's values in mini-block chunks, or
// in the block of a dictionary.
func compileValues(e *enc21pb.CompressiveEncoding, t level.Type, f form, limit int) (valueDecoder, error) {
	switch {
	case t.Kind == level.Fixed && t.Parts != "":
		d, err := compilePacked(e, t, f, limit)
		return &fixedValues{decoder: d, bits: t.Bits}, err
	case t.Kind == level.Fixed:
		d, err := compileFixed(e, t.Bits, f, limit, 0)
		return &fixedValues{decoder: d, bits: t.Bits}, err
	case t.Kind == level.Variable && t.Parts == "":
		d, err := compileStrings(e, f, limit, 0)
		return &stringValues{decoder: d}, err
	case t.Kind == level.FixedList:
		d, err := compileLists(e, t, limit)
		if err == nil && d.noItems {
			return nil, unsupported(e) // writers do so in full-zip pages only
		}
		return d, err
	case t.Kind == level.Variable:
		return nil, unsupported(e)
	default:
		return nil, table.Corruptf("encoding: %s values for a column without values", Name(e))
	}
}

// compileFixed checks the encoding of values of the given width.
func compileFixed(e *enc21pb.CompressiveEncoding, bits int, f form, limit, depth int) (fixedDecoder, error) {
	if depth > maxEncodingDepth {
		return nil, table.Corruptf("encoding: encodings are nested more than %d deep", maxEncodingDepth)
	}
	switch c := e.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Flat:
		if err := flatWidth(c.Flat, bits); err != nil {
			return nil, err
		}
		return flatDecoder{bits}, nil
	case *enc21pb.CompressiveEncoding_InlineBitpacking:
		if c.InlineBitpacking.GetValues() != nil {
			return nil, unsupported(e)
		}
		if err := packedWidth(c.InlineBitpacking.GetUncompressedBitsPerValue(), bits); err != nil {
			return nil, err
		}
		return &inlineDecoder{bits: bits}, nil
	case *enc21pb.CompressiveEncoding_OutOfLineBitpacking:
		if f != inBlock {
			return nil, unsupported(e)
		}
		return compileOutOfLine(c.OutOfLineBitpacking, e, bits)
	case *enc21pb.CompressiveEncoding_Rle:
		return compileRLE(c.Rle, e, bits, f, limit)
	case *enc21pb.CompressiveEncoding_ByteStreamSplit:
		if bits%8 != 0 {
			return nil, unsupported(e)
		}
		flat, ok := c.ByteStreamSplit.GetValues().GetCompression().(*enc21pb.CompressiveEncoding_Flat)
		if !ok {
			return nil, unsupported(e)
		}
		if err := flatWidth(flat.Flat, bits); err != nil {
			return nil, err
		}
		return byteStreamSplitDecoder{bits / 8}, nil
	case *enc21pb.CompressiveEncoding_General:
		if err := checkScheme(c.General.GetCompression()); err != nil {
			return nil, err
		}
		inner, err := compileFixed(c.General.GetValues(), bits, f, limit, depth+1)
		if err != nil {
			return nil, err
		}
		if inner.buffers() == 0 {
			return nil, unsupported(e)
		}
		return &generalFixed{general{scheme: c.General.GetCompression().GetScheme(), limit: limit}, inner}, nil
	case *enc21pb.CompressiveEncoding_Constant:
		value := c.Constant.GetValue()
		if f != inBlock || bits%8 != 0 {
			return nil, unsupported(e)
		}
		if len(value)*8 != bits {
			return nil, table.Corruptf("encoding: a constant of %d bytes for values of %d bits", len(value), bits)
		}
		return constantDecoder{value, limit}, nil
	default:
		return nil, unsupported(e)
	}
}

func unsupported(e *enc21pb.CompressiveEncoding) error {
	return table.Unsupportedf("encoding: %s is not supported here", Name(e))
}

// widthOf returns the width of the values that an encoding gives, for the
// indices of a dictionary, whose type says nothing of it.
func widthOf(e *enc21pb.CompressiveEncoding) uint64 {
	for range maxEncodingDepth {
		switch c := e.GetCompression().(type) {
		case *enc21pb.CompressiveEncoding_Flat:
			return c.Flat.GetBitsPerValue()
		case *enc21pb.CompressiveEncoding_InlineBitpacking:
			return c.InlineBitpacking.GetUncompressedBitsPerValue()
		case *enc21pb.CompressiveEncoding_OutOfLineBitpacking:
			return c.OutOfLineBitpacking.GetUncompressedBitsPerValue()
		case *enc21pb.CompressiveEncoding_Rle:
			e = c.Rle.GetValues()
		case *enc21pb.CompressiveEncoding_ByteStreamSplit:
			e = c.ByteStreamSplit.GetValues()
		case *enc21pb.CompressiveEncoding_General:
			e = c.General.GetValues()
		default:
			return 0
		}
	}
	return 0
}

type fixedValues struct {
	decoder fixedDecoder
	bits    int
	spare   []byte
}

func (d *fixedValues) buffers() int { return d.decoder.buffers() }

func (d *fixedValues) appendTo(s *sink, n int, bufs [][]byte) error {
	var err error
	if d.bits%8 == 0 {
		s.v.Data, err = d.decoder.decode(s.v.Data, n, bufs)
	} else if d.spare, err = d.decoder.decode(d.spare[:0], n, bufs); err == nil {
		s.v.Data = level.AppendBits(s.v.Data, s.v.N*d.bits, d.spare, 0, n*d.bits)
	}
	s.v.N += n
	return err
}

// chooseEncoder returns the codec that makes the values of b smallest.
func (e *Encoder) chooseEncoder(b *level.Block) (valueEncoder, error) {
	v := &b.Values
	switch b.Type.Kind {
	case level.Variable:
		return e.wrap(e.stringEncoder(b)), nil
	case level.FixedList:
		levels, err := e.listLevels(b)
		if err != nil {
			return nil, err
		}
		return e.wrap(&fixedListEncoder{levels: levels, typ: b.Type, data: v.Data, valid: v.ItemValid}), nil
	default:
		return e.wrap(e.fixedEncoder(v.Data, v.N, b.Type.Bits)), nil
	}
}

// fixedEncoder chooses between storing values as they are, packing them to the bits
// that each block of them needs, and storing runs.
func (e *Encoder) fixedEncoder(data []byte, n, bits int) valueEncoder {
	flat := &flatEncoder{data: data, bits: bits}
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 || e.opts.Compression == "none" {
		return flat
	}
	w := bits / 8
	data = data[:n*w]
	packed := inlineBytes(data, bits)
	// A run takes its value and a byte for its length.
	mostRuns := min(packed, len(data)) * maxRunPercent / 100 / (w + 1)
	if most := e.opts.RunThreshold; most > 0 {
		mostRuns = min(mostRuns, int(float64(n)*most))
	}
	if e.opts.SplitBytes && (bits == 32 || bits == 64) && (e.opts.Compression == "lz4" || e.opts.Compression == "zstd") {
		return &byteStreamSplitEncoder{flatEncoder{data: data, bits: bits}}
	}
	switch {
	case countRuns(data, w, mostRuns)+moreRuns(n) < mostRuns:
		return &rleEncoder{data: data, bits: bits}
	case packed < len(data):
		return &inlineEncoder{data: data, bits: bits, scratch: &e.scratch}
	default:
		return flat
	}
}
