package encoding

import (
	"encoding/binary"

	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// rleDecoder repeats each value as often as the length at the same place says.
// In a chunk values and lengths are two buffers; in a block they are one, in
// which a 64-bit size says where the lengths begin.
type rleDecoder struct {
	form            form
	width, runWidth int // bytes
	limit           int
	values, runs    rleChild
}

func compileRLE(c *enc21pb.Rle, e *enc21pb.CompressiveEncoding, bits int, f form, limit int) (*rleDecoder, error) {
	runBits := widthOf(c.GetRunLengths())
	if runBits != 8 && runBits != 16 && runBits != 32 {
		return nil, unsupported(e)
	}
	if bits != 8 && bits != 16 && bits != 32 && bits != 64 {
		return nil, unsupported(e)
	}
	d := &rleDecoder{form: f, width: bits / 8, runWidth: int(runBits) / 8, limit: limit}
	var err error
	if d.values, err = compileRLEChild(c.GetValues(), e, bits, limit); err != nil {
		return nil, err
	}
	if d.runs, err = compileRLEChild(c.GetRunLengths(), e, int(runBits), limit); err != nil {
		return nil, err
	}
	if d.values.counted && d.runs.counted {
		// Neither says how many runs there are.
		return nil, unsupported(e)
	}
	return d, nil
}

// rleChild decodes a buffer whose number of values is known only by its size, or
// (counted) by the other child's.
type rleChild struct {
	decoder fixedDecoder // nil if the bytes are the values
	counted bool
	general *general
	out     []byte
}

func compileRLEChild(c, rle *enc21pb.CompressiveEncoding, bits, limit int) (rleChild, error) {
	var out rleChild
	if g, ok := c.GetCompression().(*enc21pb.CompressiveEncoding_General); ok {
		if err := checkScheme(g.General.GetCompression()); err != nil {
			return out, err
		}
		out.general = &general{scheme: g.General.GetCompression().GetScheme(), limit: limit}
		c = g.General.GetValues()
	}
	switch c := c.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Flat:
		return out, flatWidth(c.Flat, bits)
	case *enc21pb.CompressiveEncoding_OutOfLineBitpacking:
		d, err := compileOutOfLine(c.OutOfLineBitpacking, rle, bits)
		out.decoder, out.counted = d, true
		return out, err
	default:
		return out, unsupported(rle)
	}
}

func (c *rleChild) decode(in []byte, count int) ([]byte, error) {
	if c.general != nil {
		bufs, err := c.general.expand([][]byte{in})
		if err != nil {
			return nil, err
		}
		in = bufs[0]
	}
	if c.decoder == nil {
		return in, nil
	}
	var err error
	c.out, err = c.decoder.decode(c.out[:0], count, [][]byte{in})
	return c.out, err
}

func (d *rleDecoder) buffers() int {
	if d.form == inChunk {
		return 2
	}
	return 1
}

func (d *rleDecoder) decode(dst []byte, n int, bufs [][]byte) ([]byte, error) {
	need, err := bytesFor(n, 8*d.width, d.limit)
	if err != nil {
		return dst, err
	}
	values, runs, err := d.children(bufs)
	if err != nil {
		return dst, err
	}
	have, left := len(dst), n
	dst = extend(grow(dst, need), need)
	out := dst[have:]
	for i := 0; left > 0; i++ {
		if (i+1)*d.width > len(values) || (i+1)*d.runWidth > len(runs) {
			return dst[:have], table.Corruptf("encoding: runs end %d values short of %d", left, n)
		}
		length := int(loadWord(runs[i*d.runWidth:], d.runWidth))
		if length == 0 || length > left && d.form == inBlock {
			return dst[:have], table.Corruptf("encoding: a run of %d values where %d are left", length, left)
		}
		// Some writers let the last run of a chunk reach into the next.
		length = min(length, left)
		repeat(out, values[i*d.width:], d.width, length)
		out = out[length*d.width:]
		left -= length
	}
	return dst, nil
}

func (d *rleDecoder) children(bufs [][]byte) (values, runs []byte, err error) {
	if d.form == inBlock {
		in := bufs[0]
		if len(in) < 8 {
			return nil, nil, table.Corruptf("encoding: runs in %d bytes", len(in))
		}
		size := binary.LittleEndian.Uint64(in)
		if in = in[8:]; size > uint64(len(in)) {
			return nil, nil, table.Corruptf("encoding: the values of runs take %d of %d bytes", size, len(in))
		}
		values, runs = in[:size], in[size:]
	} else {
		values, runs = bufs[0], bufs[1]
	}
	if d.values.counted {
		if runs, err = d.runs.decode(runs, 0); err != nil {
			return nil, nil, err
		}
		values, err = d.values.decode(values, len(runs)/d.runWidth)
		return values, runs, err
	}
	if values, err = d.values.decode(values, 0); err != nil {
		return nil, nil, err
	}
	runs, err = d.runs.decode(runs, len(values)/d.width)
	return values, runs, err
}

// repeat writes the first value of src, width bytes long, n times.
func repeat(dst, src []byte, width, n int) {
	switch width {
	case 1:
		dst = dst[:n]
		for i := range dst {
			dst[i] = src[0]
		}
	case 2:
		v := binary.LittleEndian.Uint16(src)
		for i := range n {
			binary.LittleEndian.PutUint16(dst[2*i:], v)
		}
	case 4:
		v := binary.LittleEndian.Uint32(src)
		for i := range n {
			binary.LittleEndian.PutUint32(dst[4*i:], v)
		}
	default:
		v := binary.LittleEndian.Uint64(src)
		for i := range n {
			binary.LittleEndian.PutUint64(dst[8*i:], v)
		}
	}
}
