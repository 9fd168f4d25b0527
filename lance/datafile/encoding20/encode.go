package encoding20

import (
	"sync"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/fsst"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/table"
)

// Encoded is a page that is to be written.
type Encoded struct {
	Values   uint64
	Encoding *enc20pb.ArrayEncoding
	// Buffers are valid until what they were made of changes.
	Buffers [][]byte
}

// Options says what a leaf's pages have to be like.
type Options struct {
	// Dims are the dimensions of a fixed-size list, outermost first.
	Dims []int
	// IndexBits is the width of the indices of an Arrow dictionary and IndexSigned
	// whether they are signed; 0 for no dictionary.
	IndexBits   int
	IndexSigned bool
	// Seen, for indices of at most 16 bits, gathers the values of all pages: stock
	// engines put the dictionaries that they read together, and fail if indices do
	// not tell the values apart.
	Seen map[string]struct{}
	// Text says that the values are text with 32-bit offsets, for which readers
	// know dictionaries.
	Text bool
	// Scheme is what compresses the bytes of strings, "" for nothing.
	Scheme string
	Level  int
	// Symbols says that strings are stored with a symbol table (package fsst), where
	// that is shorter. Readers do so for 32-bit offsets only.
	Symbols bool
}

// page collects the buffers of an encoded page.
type page struct{ buffers [][]byte }

func (p *page) flat(bits int, data []byte) *enc20pb.ArrayEncoding {
	p.buffers = append(p.buffers, data)
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Flat{Flat: &enc20pb.Flat{
		BitsPerValue: uint64(bits), Buffer: &enc20pb.Buffer{BufferIndex: uint32(len(p.buffers) - 1)}}}}
}

func noNulls(e *enc20pb.ArrayEncoding) *enc20pb.ArrayEncoding {
	return nullability(&enc20pb.Nullable{Nullability: &enc20pb.Nullable_NoNulls{NoNulls: &enc20pb.Nullable_NoNull{Values: e}}})
}

func someNulls(valid, e *enc20pb.ArrayEncoding) *enc20pb.ArrayEncoding {
	return nullability(&enc20pb.Nullable{Nullability: &enc20pb.Nullable_SomeNulls{
		SomeNulls: &enc20pb.Nullable_SomeNull{Validity: valid, Values: e}}})
}

func allNulls() *enc20pb.ArrayEncoding {
	return nullability(&enc20pb.Nullable{Nullability: &enc20pb.Nullable_AllNulls{AllNulls: &enc20pb.Nullable_AllNull{}}})
}

func nullability(n *enc20pb.Nullable) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Nullable{Nullable: n}}
}

// EncodeValues makes a page of value slots; null has 1 for each that is null, or is
// nil. A value that the format cannot store is ErrUnsupported.
func EncodeValues(t level.Type, v *level.Values, null []uint16, opts Options) (Encoded, error) {
	p := &page{}
	out := Encoded{Values: uint64(v.N)}
	nulls := 0
	for _, d := range null {
		nulls += int(d)
	}
	var err error
	switch {
	case t.Kind == level.Nothing:
		out.Encoding = allNulls()
	case t.Parts != "":
		out.Encoding, err = p.packed(t, v, nulls)
	case opts.IndexBits > 0:
		out.Encoding, err = p.dictionary(t, v, null, opts)
	case t.Kind == level.Variable:
		out.Encoding, err = p.strings(v, null, opts)
	case nulls == v.N:
		out.Encoding = allNulls()
	case nulls > 0:
		valid := p.flat(1, validity(v.N, null))
		out.Encoding = someNulls(valid, p.fixed(t, v, opts))
	default:
		out.Encoding = noNulls(p.fixed(t, v, opts))
	}
	out.Buffers = p.buffers
	return out, err
}

// validity is a bitmap of the slots that are there.
func validity(n int, null []uint16) []byte {
	out := make([]byte, (n+7)/8)
	for i, d := range null {
		if d == 0 {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

// fixed encodes values of one width, or fixed-size lists of them.
func (p *page) fixed(t level.Type, v *level.Values, opts Options) *enc20pb.ArrayEncoding {
	data := v.Data[:(v.N*t.ValueBits()+7)/8]
	if t.Kind == level.Fixed {
		return p.flat(t.Bits, data)
	}
	dims := opts.Dims
	if len(dims) == 0 {
		dims = []int{t.Dim}
	}
	// Buffers of validity come before those of what is inside.
	valid := make([]*enc20pb.ArrayEncoding, len(dims))
	elements, at := 1, 0
	for i, dim := range dims {
		elements *= dim
		if bits, some := levelValidity(t, v, at, elements); some {
			valid[i] = p.flat(1, bits)
		}
		at += elements
	}
	e := p.flat(t.Bits, data)
	for i := len(dims) - 1; i >= 0; i-- {
		if valid[i] != nil {
			e = someNulls(valid[i], e)
		} else {
			e = noNulls(e)
		}
		e = &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_FixedSizeList{
			FixedSizeList: &enc20pb.FixedSizeList{Dimension: uint32(dims[i]), Items: e}}}
	}
	return e
}

// levelValidity returns the validity of one level of fixed-size lists, n bits from
// bit at on of each value's, and whether any is null.
func levelValidity(t level.Type, v *level.Values, at, n int) ([]byte, bool) {
	if v.ItemValid == nil {
		return nil, false
	}
	var bits []byte
	for i := range v.N {
		bits = level.AppendBits(bits, i*n, v.ItemValid, i*t.ValidBits()+at, n)
	}
	for i := range v.N * n {
		if bits[i/8]>>(i%8)&1 == 0 {
			return bits, true
		}
	}
	return nil, false
}

// packed encodes rows of fields.
func (p *page) packed(t level.Type, v *level.Values, nulls int) (*enc20pb.ArrayEncoding, error) {
	if nulls > 0 {
		return nil, nullStruct()
	}
	out := &enc20pb.PackedStruct{}
	for _, part := range t.Parts.List() {
		bits := part.Bits / max(part.Items, 1)
		e := noNulls((&page{}).flat(bits, nil))
		if part.Items > 0 {
			e = noNulls(&enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_FixedSizeList{
				FixedSizeList: &enc20pb.FixedSizeList{Dimension: uint32(part.Items), Items: e}}})
		}
		if part.Variable {
			return nil, table.Unsupportedf("encoding: format 2.0 has no packed structs of variable width")
		}
		out.Inner = append(out.Inner, e)
	}
	data := v.Data
	if t.Kind == level.Variable {
		data = data[v.Offsets[0]:v.Offsets[v.N]]
	} else {
		data = data[:v.N*t.Bits/8]
	}
	p.flat(8, data)
	out.Buffer = &enc20pb.Buffer{}
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_PackedStruct{PackedStruct: out}}, nil
}

// BlobPage makes the page of a column of blobs: where, a position and a size of 64
// bits each, for each of n values. Both are 0 for a value without bytes, 1 and 0 for a
// null.
func BlobPage(where []byte) (Encoded, error) {
	t := level.Type{Kind: level.Fixed, Bits: 128, Parts: level.NewParts([]level.Part{{Bits: 64}, {Bits: 64}})}
	return EncodeValues(t, &level.Values{N: len(where) / 16, Data: where}, nil, Options{})
}

// StructPage makes the page of a column of n structs.
func StructPage(n uint64) Encoded {
	return Encoded{Values: n, Encoding: &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Struct{Struct: &enc20pb.Struct{}}}}
}

// strings encodes strings; few distinct ones of text as a dictionary.
func (p *page) strings(v *level.Values, null []uint16, opts Options) (*enc20pb.ArrayEncoding, error) {
	if opts.Text && v.N >= dictionaryValues {
		d := newDistinct(level.Type{Kind: level.Variable, Bits: 32}, v, dictionaryItems)
		if indices, ok := d.indices(null, 1); ok {
			data := make([]byte, len(indices))
			for i, at := range indices {
				data[i] = byte(at)
			}
			var nullItem []uint16
			if d.values.N == 0 {
				d.add(nil) // no dictionary is empty, even if all is null
				nullItem = []uint16{1}
			}
			return p.dictionaryOf(8, data, &d.values, nullItem, Options{})
		}
	}
	if opts.Symbols {
		if e, ok, err := p.symbols(v, null); ok || err != nil {
			return e, err
		}
	}
	return p.binary(v, null, opts)
}

const (
	// dictionaryValues is how many values a page has at least for which the stock
	// engine considers a dictionary, and dictionaryItems how many distinct ones are
	// too many for it.
	dictionaryValues = 100
	dictionaryItems  = 100
)

const (
	// symbolTableBytes is the size of a symbol table, and symbolBytes that of values
	// up to which they are tried: offsets of encoded ones fit, too.
	symbolTableBytes = 2312
	symbolBytes      = 1 << 30
)

// trainers keeps memory of half a megabyte each.
var trainers = sync.Pool{New: func() any { return new(fsst.Trainer) }}

// symbols encodes strings with a symbol table, or returns false if that is not shorter.
func (p *page) symbols(v *level.Values, null []uint16) (*enc20pb.ArrayEncoding, bool, error) {
	plain := v.Offsets[v.N] - v.Offsets[0]
	if plain <= symbolTableBytes || plain > symbolBytes {
		return nil, false, nil
	}
	t := trainers.Get().(*fsst.Trainer)
	defer trainers.Put(t)
	encoder := t.Train(v.Data, v.Offsets[:v.N+1])
	data, offsets := encoder.Append(nil, nil, v.Data, v.Offsets[:v.N+1])
	if len(data)+symbolTableBytes >= int(plain) {
		return nil, false, nil
	}
	e, err := p.binary(&level.Values{N: v.N, Data: data, Offsets: offsets}, null, Options{})
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Fsst{Fsst: &enc20pb.Fsst{
		Binary: e, SymbolTable: encoder.Table()}}}, true, err
}

// binary encodes strings as ends and bytes. Nulls have no bytes.
func (p *page) binary(v *level.Values, null []uint16, opts Options) (*enc20pb.ArrayEncoding, error) {
	ends := make([]uint64, v.N)
	var data []byte
	total := uint64(0)
	if null == nil && v.N > 0 {
		base := v.Offsets[0]
		data = v.Data[base:v.Offsets[v.N]]
		for i := range ends {
			ends[i] = uint64(v.Offsets[i+1] - base)
		}
		total = uint64(len(data))
	} else {
		for i := range ends {
			if null != nil && null[i] != 0 {
				ends[i] = total | isNull
				continue
			}
			data = append(data, v.Data[v.Offsets[i]:v.Offsets[i+1]]...)
			total = uint64(len(data))
			ends[i] = total
		}
	}
	adjustment := total + 1
	indices := noNulls(p.flat(64, adjusted(ends, adjustment)))
	if opts.Scheme != "" && total > 0 {
		var err error
		if data, err = encoding.Compress(opts.Scheme, opts.Level, nil, data); err != nil {
			return nil, err
		}
	}
	bytes := p.flat(8, data)
	if opts.Scheme != "" && total > 0 {
		bytes.GetFlat().Compression = &enc20pb.Compression{Scheme: opts.Scheme}
	}
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Binary{Binary: &enc20pb.Binary{
		Indices: indices, Bytes: bytes, NullAdjustment: adjustment}}}, nil
}
