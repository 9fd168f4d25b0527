package encoding

import (
	"encoding/binary"
	"slices"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
)

const (
	// zstdWidth is the size above which a value is compressed by itself.
	zstdWidth = 32 * 1024
	// maxZstdRatio is what compressing a sample of values has to reach.
	maxZstdRatio = 0.9
)

// fullZip encodes a page of wide values: each behind its levels, found by offset.
func (e *Encoder) fullZip(b *level.Block, l *levels, widest int) (EncodedPage, error) {
	if l.rep != nil {
		var err error
		if l, err = l.declared(e.opts.Layers); err != nil {
			return EncodedPage{}, err
		}
	}
	layout := &enc21pb.FullZipLayout{
		Layers:          layersProto(l.layers),
		NumItems:        uint32(l.entries),
		NumVisibleItems: uint32(b.Values.N),
	}
	z := zipper{l: l}
	if l.rep != nil {
		layout.BitsRep = uint32(levelWidth(l.maxRep))
	}
	if l.def != nil {
		layout.BitsDef = uint32(levelWidth(l.maxDef))
	}
	z.defBits = int(layout.BitsDef)
	z.wordBytes = controlBytes(int(layout.BitsRep + layout.BitsDef))

	page := EncodedPage{Layout: &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_FullZip{FullZip: layout}}}
	if b.Type.Kind == level.Variable {
		values, err := e.zipStrings(b, widest)
		if err != nil {
			return EncodedPage{}, err
		}
		layout.ValueCompression = values.encoding
		layout.Details = &enc21pb.FullZipLayout_BitsPerOffset{BitsPerOffset: uint32(b.Type.Bits)}
		e.data = z.strings(e.data[:0], values)
		page.Buffers = [][]byte{e.data, e.rowOffsets(z.rows, len(e.data))}
		return page, nil
	}
	encoding := describeFlat(b.Type.Bits)
	if b.Type.Parts != "" {
		encoding = describePacked(b.Type)
	}
	valueBits := b.Type.ValueBits()
	if b.Type.Kind == level.FixedList {
		levels, err := e.listLevels(b)
		if err != nil {
			return EncodedPage{}, err
		}
		encoding = describeFixedList(levels, b.Type.Bits)
		valueBits += 8 * validityBytes(levels)
		z.levels = levels
	}
	layout.ValueCompression = encoding
	layout.Details = &enc21pb.FullZipLayout_BitsPerValue{BitsPerValue: uint32(valueBits)}
	if z.wordBytes == 0 && b.Values.ItemValid == nil {
		// Nothing is put between the values: they are the page.
		page.Buffers = [][]byte{b.Values.Data[:b.Values.N*valueBits/8]}
		return page, nil
	}
	e.data = z.fixed(e.data[:0], b)
	page.Buffers = [][]byte{e.data}
	if l.rep != nil {
		page.Buffers = append(page.Buffers, e.rowOffsets(z.rows, len(e.data)))
	}
	return page, nil
}

// declared returns levels that say the same and declare what is nullable in asked.
func (l *levels) declared(asked []level.Layer) (*levels, error) {
	layers := level.Declared(l.layers, asked)
	if slices.Equal(layers, l.layers) {
		return l, nil
	}
	numbers, err := level.Mapping(l.layers, layers)
	if err != nil {
		return nil, err
	}
	out := *l
	out.layers, out.def = layers, make([]uint16, l.entries)
	for i, d := range l.def {
		out.def[i] = numbers[d]
	}
	out.maxDef, out.maxVisible = level.MaxDef(layers), level.MaxVisibleDef(layers)
	return &out, nil
}

// controlBytes returns the size of a control word of so many bits.
func controlBytes(bits int) int {
	switch {
	case bits == 0:
		return 0
	case bits <= 8:
		return 1
	case bits <= 16:
		return 2
	default:
		return 4
	}
}

// zipper puts levels and values together and keeps where rows begin.
type zipper struct {
	l         *levels
	defBits   int
	wordBytes int
	levels    []listLevel // of fixed-size lists
	rows      []uint64
}

// control appends the control word of an entry and returns the entry's definition
// level.
func (z *zipper) control(dst []byte, entry int) ([]byte, uint16) {
	var rep, def uint16
	if z.l.rep != nil {
		rep = z.l.rep[entry]
	}
	if z.l.def != nil {
		def = z.l.def[entry]
	}
	if z.l.rep == nil || rep == z.l.maxRep {
		z.rows = append(z.rows, uint64(len(dst)))
	}
	var word [4]byte
	binary.LittleEndian.PutUint32(word[:], uint32(rep)<<z.defBits|uint32(def))
	return append(dst, word[:z.wordBytes]...), def
}

// strings writes, for every entry, its levels, and if there is a value its length
// and its bytes.
func (z *zipper) strings(dst []byte, v *zipValues) []byte {
	slot := 0
	for entry := range z.l.entries {
		var def uint16
		dst, def = z.control(dst, entry)
		if def > z.l.maxVisible {
			continue
		}
		if def == 0 {
			value := v.data[v.offsets[slot]:v.offsets[slot+1]]
			if v.width == 4 {
				dst = binary.LittleEndian.AppendUint32(dst, uint32(len(value)))
			} else {
				dst = binary.LittleEndian.AppendUint64(dst, uint64(len(value)))
			}
			dst = append(dst, value...)
		}
		slot++
	}
	return dst
}

// fixed writes, for every entry, its levels, and if it has a slot the validity of
// its items, if that is kept, and its bytes.
func (z *zipper) fixed(dst []byte, b *level.Block) []byte {
	v := &b.Values
	w, slot := b.Type.ValueBits()/8, 0
	for entry := range z.l.entries {
		var def uint16
		dst, def = z.control(dst, entry)
		if def > z.l.maxVisible {
			continue
		}
		at := slot * b.Type.ValidBits()
		for _, l := range z.levels {
			if l.validity {
				dst = appendBitRange(dst, v.ItemValid, at, at+l.elements)
			}
			at += l.elements
		}
		dst = append(dst, v.Data[slot*w:(slot+1)*w]...)
		slot++
	}
	return dst
}

// rowOffsets writes where each row begins and where the last ends, in the least
// whole bytes that hold the end.
func (e *Encoder) rowOffsets(rows []uint64, end int) []byte {
	out := e.repIndex[:0]
	for _, r := range append(rows, uint64(end)) {
		switch {
		case end < 1<<8:
			out = append(out, byte(r))
		case end < 1<<16:
			out = binary.LittleEndian.AppendUint16(out, uint16(r))
		case end < 1<<32:
			out = binary.LittleEndian.AppendUint32(out, uint32(r))
		default:
			out = binary.LittleEndian.AppendUint64(out, r)
		}
	}
	e.repIndex = out
	return out
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
