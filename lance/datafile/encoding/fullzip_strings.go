package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/fsst"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

const (
	// zstdWidth is the size above which a value is compressed by itself.
	zstdWidth = 32 * 1024
	// maxZstdRatio is what compressing a sample of values has to reach.
	maxZstdRatio = 0.9
)

func (z *fullZip) planStrings(l *enc21pb.FullZipLayout, t level.Type, limit int) error {
	e := l.GetValueCompression()
	bits, ok := l.GetDetails().(*enc21pb.FullZipLayout_BitsPerOffset)
	if !ok {
		return unsupported(e)
	}
	if bits.BitsPerOffset != 32 && bits.BitsPerOffset != 64 {
		return table.Corruptf("encoding: lengths of %d bits", bits.BitsPerOffset)
	}
	z.length = int(bits.BitsPerOffset) / 8
	if t.Parts != "" {
		rows, ok := e.GetCompression().(*enc21pb.CompressiveEncoding_VariablePackedStruct)
		if !ok {
			return unsupported(e)
		}
		var err error
		z.packed, err = compilePackedRows(rows.VariablePackedStruct, e, t, limit)
		return err
	}
	var err error
	z.symbols, z.general, err = singleValues(e, e, limit)
	return err
}

// singleValues checks an encoding in which strings are compressed one by one, and
// returns what undoes it: a symbol table, a general scheme, or neither. of is the
// whole encoding, for messages.
func singleValues(values, of *enc21pb.CompressiveEncoding, limit int) (symbols *fsst.Table, scheme *general, err error) {
	inner := values
	switch c := values.GetCompression().(type) {
	case *enc21pb.CompressiveEncoding_Fsst:
		if symbols, err = fsst.ParseTable(c.Fsst.GetSymbolTable()); err != nil {
			return nil, nil, err
		}
		inner = c.Fsst.GetValues()
	case *enc21pb.CompressiveEncoding_General:
		if err := checkScheme(c.General.GetCompression()); err != nil {
			return nil, nil, err
		}
		scheme = &general{scheme: c.General.GetCompression().GetScheme(), limit: limit}
		inner = c.General.GetValues()
	}
	v, ok := inner.GetCompression().(*enc21pb.CompressiveEncoding_Variable)
	if !ok {
		return nil, nil, unsupported(of)
	}
	_, err = offsetBits(v.Variable, of)
	return symbols, scheme, err
}

// zipValues are strings as a full-zip page stores them.
type zipValues struct {
	data     []byte
	offsets  []uint32
	width    int // of a length, in bytes
	encoding *enc21pb.CompressiveEncoding
}

// zipStrings compresses strings one by one: large ones with zstd, others with a
// symbol table, each only if it pays. An empty value, which null is, too, takes no bytes,
// which readers do not take for LZ4.
func (e *Encoder) zipStrings(b *level.Block, widest int) (*zipValues, error) {
	v := &b.Values
	out := &zipValues{data: v.Data, offsets: v.Offsets, width: b.Type.Bits / 8, encoding: describeVariable(b.Type.Bits)}
	asked := e.opts.Compression
	switch {
	case b.Type.Parts != "":
		return out, e.packRows(out, b)
	case asked == "lz4" || asked == "zstd" || asked == "" && widest > zstdWidth && e.zstdPays(v):
		scheme := enc21pb.BufferCompression_ZSTD
		if asked == "lz4" && !hasEmpty(v) {
			scheme = enc21pb.BufferCompression_LZ4
		}
		e.strings, e.ends = e.strings[:0], append(e.ends[:0], 0)
		for i := range v.N {
			if value := v.Data[v.Offsets[i]:v.Offsets[i+1]]; len(value) == 0 {
				// Readers of zstd take no bytes for an empty value.
			} else if scheme == enc21pb.BufferCompression_LZ4 {
				e.strings = e.compress.lz4Block(e.strings, value)
			} else {
				e.strings = e.compress.zstdValue(e.strings, value, e.opts.CompressionLevel)
			}
			e.ends = append(e.ends, uint32(len(e.strings)))
		}
		out.data, out.offsets = e.strings, e.ends
		out.encoding = describeGeneral(&enc21pb.BufferCompression{Scheme: scheme}, out.encoding)
	case e.useSymbols(b):
		out.data, out.offsets = e.encodeStrings(b)
		out.encoding = describeFSST(e.symbols.Table(), out.encoding)
	}
	return out, nil
}

// hasEmpty says whether a slot is empty.
func hasEmpty(v *level.Values) bool {
	for i := range v.N {
		if v.Offsets[i] == v.Offsets[i+1] {
			return true
		}
	}
	return false
}

// zstdPays compresses the first part of some values, spread over the page.
func (e *Encoder) zstdPays(v *level.Values) bool {
	const samples, most = 8, 64 * 1024
	plain, packed := 0, 0
	for k := range samples {
		i := k * v.N / samples
		value := v.Data[v.Offsets[i]:v.Offsets[i+1]]
		value = value[:min(len(value), most)]
		e.compress.buf = e.compress.zstdValue(e.compress.buf[:0], value, e.opts.CompressionLevel)
		plain += len(value)
		packed += len(e.compress.buf)
	}
	return float64(packed) < maxZstdRatio*float64(plain)
}
