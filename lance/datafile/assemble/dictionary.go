package assemble

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// dictionary builds a dictionary array: the distinct values in the order in which
// they come, and indices into them.
func (v *values) dictionary(mem memory.Allocator, leaf schema.Leaf, s *slots) (arrow.ArrayData, error) {
	t := leaf.Dictionary
	index := t.IndexType.(arrow.FixedWidthDataType)
	width := index.Bytes()
	most := uint64(1) << min(index.BitWidth(), 32)
	if arrow.IsSignedInteger(index.ID()) {
		most /= 2
	}
	indices := growing{mem: mem}
	defer indices.release()
	distinct := newValues(mem, v.typ)
	defer distinct.reset()
	seen := map[string]uint64{}
	value := v.value()
	for i := range v.n {
		at := uint64(0)
		if s.nulls == 0 || s.valid[i/8]>>(i%8)&1 == 1 {
			key := value(i)
			var ok bool
			if at, ok = seen[string(key)]; !ok {
				if at = uint64(len(seen)); at >= most {
					return nil, table.Unsupportedf("assemble: column %q: more than %d distinct values in one batch, indices are %s", leaf.Path, most, t.IndexType)
				}
				seen[string(key)] = at
				distinct.addValue(key)
			}
		}
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], at)
		indices.append(word[:width])
	}
	buffers := append([]*memory.Buffer{nil}, distinct.buffers(mem)...)
	items := array.NewData(t.ValueType, distinct.n, buffers, nil, 0, 0)
	release(buffers)
	defer items.Release()
	buffers = []*memory.Buffer{s.validity(mem), indices.take()}
	defer release(buffers)
	return array.NewDataWithDictionary(t, s.n, buffers, s.nulls, 0, items), nil
}

// value returns a function that returns value i, valid until its next call.
func (v *values) value() func(i int) []byte {
	if v.typ.Kind == level.Variable {
		offset, data := v.offsetsAs64(), v.data.bytes()
		return func(i int) []byte { return data[offset(i):offset(i+1)] }
	}
	if v.typ.Bits%8 != 0 {
		var bit []byte
		return func(i int) []byte {
			bit = level.AppendBits(bit[:0], 0, v.bits, i*v.typ.Bits, v.typ.Bits)
			return bit
		}
	}
	w, data := v.typ.Bits/8, v.data.bytes()
	return func(i int) []byte { return data[i*w : (i+1)*w] }
}

// addValue appends one value as value returns it. Its bytes are a part of those of
// a whole batch, so that there is no question of their number.
func (v *values) addValue(b []byte) {
	switch {
	case v.typ.Kind == level.Variable:
		if v.offsets.n == 0 {
			clear(v.offsets.extend(v.typ.Bits / 8))
		}
		v.data.append(b)
		if v.typ.Bits == 32 {
			binary.LittleEndian.PutUint32(v.offsets.extend(4), uint32(v.data.n))
		} else {
			binary.LittleEndian.PutUint64(v.offsets.extend(8), uint64(v.data.n))
		}
	case v.typ.Bits%8 != 0:
		v.bits = level.AppendBits(v.bits, v.n*v.typ.Bits, b, 0, v.typ.Bits)
	default:
		v.data.append(b)
	}
	v.n++
}
