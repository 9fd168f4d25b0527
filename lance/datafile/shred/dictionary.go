package shred

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// gatherDictionary looks the values up.
func gatherDictionary(v *level.Values, t level.Type, a *array.Dictionary, runs []run) error {
	items := a.Dictionary()
	all, err := gather(t, items, []run{{0, items.Len()}})
	if err != nil {
		return err
	}
	if t.Kind == level.Variable {
		v.Offsets = append(make([]uint32, 0, v.N+1), 0)
	}
	have := 0
	for _, r := range runs {
		for i := range r.n {
			k := -1
			if r.from >= 0 && a.IsValid(r.from+i) {
				if k = a.GetValueIndex(r.from + i); k < 0 || k >= items.Len() {
					return table.Corruptf("index %d into a dictionary of %d values", k, items.Len())
				}
			}
			switch {
			case t.Kind == level.Variable:
				if k >= 0 {
					v.Data = append(v.Data, all.Data[all.Offsets[k]:all.Offsets[k+1]]...)
				}
				if len(v.Data) > math.MaxUint32 {
					return table.Unsupportedf("%d bytes of values in one batch: at most 4 GiB", len(v.Data))
				}
				v.Offsets = append(v.Offsets, uint32(len(v.Data)))
			case k >= 0:
				v.Data = level.AppendBits(v.Data, have, all.Data, k*t.Bits, t.Bits)
			default:
				v.Data = append(v.Data, make([]byte, (have+t.Bits+7)/8-len(v.Data))...)
			}
			have += t.Bits
		}
	}
	return nil
}
