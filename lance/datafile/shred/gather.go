package shred

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// gather returns the values of a that runs name, as value slots.
func gather(t level.Type, a arrow.Array, runs []run) (level.Values, error) {
	v := level.Values{}
	for _, r := range runs {
		v.N += r.n
	}
	switch x := a.(type) {
	case *array.Dictionary:
		return v, gatherDictionary(&v, t, x, runs)
	case *array.Struct:
		if t == schema.BlobValues {
			return v, gatherBlobs(&v, x, runs)
		}
		if t.Parts != "" {
			return v, gatherPacked(&v, t, x, runs)
		}
	}
	switch t.Kind {
	case level.Nothing:
		return v, nil
	case level.Variable:
		return v, gatherStrings(&v, a, runs)
	case level.FixedList:
		return v, gatherLists(&v, t, a, runs)
	default:
		data := a.Data()
		v.Data = gatherBits(bufferBytes(data, 1), (data.Offset())*t.Bits, t.Bits, v.N, runs)
		return v, nil
	}
}

func bufferBytes(d arrow.ArrayData, i int) []byte {
	if b := d.Buffers()[i]; b != nil {
		return b.Bytes()
	}
	return nil
}

// gatherBits collects values of so many bits each, the first of which begins at
// bit base of src.
func gatherBits(src []byte, base, bits, slots int, runs []run) []byte {
	if len(runs) == 1 && runs[0].from >= 0 && base%8 == 0 && runs[0].from*bits%8 == 0 {
		from := base + runs[0].from*bits
		return src[from/8 : (from+runs[0].n*bits+7)/8]
	}
	out := make([]byte, 0, (slots*bits+7)/8)
	have := 0
	for _, r := range runs {
		if r.from >= 0 {
			out = level.AppendBits(out, have, src, base+r.from*bits, r.n*bits)
		} else {
			out = append(out, make([]byte, (have+r.n*bits+7)/8-len(out))...)
		}
		have += r.n * bits
	}
	return out
}

func gatherStrings(v *level.Values, a arrow.Array, runs []run) error {
	switch x := a.(type) {
	case *array.String:
		return stringRuns(v, a, x.ValueOffsets(), runs)
	case *array.Binary:
		return stringRuns(v, a, x.ValueOffsets(), runs)
	case *array.LargeString:
		return stringRuns(v, a, x.ValueOffsets(), runs)
	case *array.LargeBinary:
		return stringRuns(v, a, x.ValueOffsets(), runs)
	default:
		return table.Unsupportedf("an array of type %s", a.DataType())
	}
}

// stringRuns collects strings; offsets delimit those of a.
func stringRuns[O int32 | int64](v *level.Values, a arrow.Array, offsets []O, runs []run) error {
	total := uint64(0)
	for _, r := range runs {
		if r.from >= 0 && r.n > 0 {
			total += uint64(offsets[r.from+r.n] - offsets[r.from])
		}
	}
	if total > math.MaxUint32 {
		return table.Unsupportedf("%d bytes of values in one batch: at most 4 GiB", total)
	}
	data := bufferBytes(a.Data(), 2)
	if len(runs) == 1 && runs[0].from >= 0 && runs[0].n > 0 {
		part := offsets[runs[0].from : runs[0].from+runs[0].n+1]
		if narrow, ok := any(part).([]int32); ok {
			// Same size and alignment; Arrow offsets are not negative.
			v.Data, v.Offsets = data, unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(narrow))), len(narrow))
			return nil
		}
		v.Data, v.Offsets = data[part[0]:part[len(part)-1]], make([]uint32, len(part))
		for i, o := range part {
			v.Offsets[i] = uint32(o - part[0])
		}
		return nil
	}
	v.Data = make([]byte, 0, total)
	v.Offsets = append(make([]uint32, 0, v.N+1), 0)
	for _, r := range runs {
		end := uint32(len(v.Data))
		if r.from < 0 || r.n == 0 {
			for range r.n {
				v.Offsets = append(v.Offsets, end)
			}
			continue
		}
		base := offsets[r.from]
		for _, o := range offsets[r.from+1 : r.from+r.n+1] {
			v.Offsets = append(v.Offsets, end+uint32(o-base))
		}
		v.Data = append(v.Data, data[base:offsets[r.from+r.n]]...)
	}
	return nil
}
