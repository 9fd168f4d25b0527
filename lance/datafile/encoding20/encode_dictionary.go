package encoding20

import (
	"encoding/binary"
	"math"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/table"
)

// dictionary encodes the values of an Arrow dictionary. Null is a value of its own.
func (p *page) dictionary(t level.Type, v *level.Values, null []uint16, opts Options) (*enc20pb.ArrayEncoding, error) {
	most := uint64(math.MaxUint32)
	if opts.IndexBits < 32 {
		most = 1 << opts.IndexBits
	}
	if opts.IndexSigned {
		most /= 2
	}
	d := newDistinct(t, v, int(min(most, math.MaxInt32))+1)
	indices, ok := d.indices(null, 0)
	if opts.Seen != nil && ok {
		for i := range d.values.N {
			key := "null"
			if i != d.null {
				key = "=" + string(distinctValue(t, &d.values, i))
			}
			opts.Seen[key] = struct{}{}
		}
	}
	if !ok || uint64(max(d.values.N, len(opts.Seen))) > most {
		return nil, table.Unsupportedf("encoding: more than %d distinct values in one file, which indices of %d bits cannot tell apart", most, opts.IndexBits)
	}
	w := opts.IndexBits / 8
	data := make([]byte, 0, w*len(indices))
	for _, at := range indices {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(at))
		data = append(data, b[:w]...)
	}
	var nullItem []uint16
	if d.null >= 0 {
		nullItem = make([]uint16, d.values.N)
		nullItem[d.null] = 1
	}
	opts = Options{}
	if t.Kind == level.Variable {
		return p.dictionaryOf(8*w, data, &d.values, nullItem, opts)
	}
	indicesOf := noNulls(p.flat(8*w, data))
	items := p.fixed(t, &d.values, opts)
	switch {
	case nullItem == nil:
		items = noNulls(items)
	case d.values.N == 1:
		p.buffers = p.buffers[:1]
		items = allNulls()
	default:
		items = someNulls(p.flat(1, validity(d.values.N, nullItem)), items)
	}
	return dictionaryProto(indicesOf, items, d.values.N), nil
}

func (p *page) dictionaryOf(bits int, indices []byte, v *level.Values, null []uint16, opts Options) (*enc20pb.ArrayEncoding, error) {
	at := noNulls(p.flat(bits, indices))
	items, err := p.binary(v, null, opts)
	return dictionaryProto(at, items, v.N), err
}

func dictionaryProto(indices, items *enc20pb.ArrayEncoding, n int) *enc20pb.ArrayEncoding {
	return &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_Dictionary{Dictionary: &enc20pb.Dictionary{
		Indices: indices, Items: items, NumDictionaryItems: uint32(n)}}}
}

// distinct finds the distinct values of slots, in the order in which they come.
type distinct struct {
	typ    level.Type
	in     *level.Values
	most   int
	values level.Values
	null   int // the number of the null value, -1 for none
}

// newDistinct gives up at most values.
func newDistinct(t level.Type, v *level.Values, most int) *distinct {
	d := &distinct{typ: t, in: v, most: most, null: -1}
	if t.Kind == level.Variable {
		d.values.Offsets = []uint32{0}
	}
	return d
}

// indices returns the number of each slot's value, counted from base; that of a null
// is 0 if base is 1, else that of a value that stands for null. It is false if there
// are too many.
func (d *distinct) indices(null []uint16, base uint32) ([]uint32, bool) {
	out := make([]uint32, d.in.N)
	seen := map[string]uint32{}
	var nulls []int
	for i := range out {
		if null != nil && null[i] != 0 {
			nulls = append(nulls, i)
			continue
		}
		value := distinctValue(d.typ, d.in, i)
		at, ok := seen[string(value)]
		if !ok {
			at = uint32(d.values.N)
			seen[string(value)] = at
			d.add(value)
		}
		if d.values.N >= d.most {
			return nil, false
		}
		out[i] = at + base
	}
	if base == 0 && len(nulls) > 0 {
		// The last one: versions of Lance before 1.0 read what follows it wrong.
		d.null = d.values.N
		d.add(nil)
		for _, i := range nulls {
			out[i] = uint32(d.null)
		}
	}
	return out, true
}

// distinctValue is the bytes of a slot.
func distinctValue(t level.Type, v *level.Values, i int) []byte {
	if t.Kind == level.Variable {
		return v.Data[v.Offsets[i]:v.Offsets[i+1]]
	}
	w := t.ValueBits()
	if w%8 == 0 {
		return v.Data[i*w/8 : (i+1)*w/8]
	}
	return level.AppendBits(nil, 0, v.Data, i*w, w)
}

// add appends a value, nil for null.
func (d *distinct) add(b []byte) {
	v, w := &d.values, d.typ.ValueBits()
	switch {
	case d.typ.Kind == level.Variable:
		v.Data = append(v.Data, b...)
		v.Offsets = append(v.Offsets, uint32(len(v.Data)))
	case w%8 != 0:
		if b == nil {
			b = make([]byte, (w+7)/8)
		}
		v.Data = level.AppendBits(v.Data, v.N*w, b, 0, w)
	case b == nil:
		v.Data = append(v.Data, make([]byte, w/8)...)
	default:
		v.Data = append(v.Data, b...)
	}
	v.N++
}
