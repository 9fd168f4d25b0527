package shred

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// listLevel is the array of one level inside fixed-size lists.
type listLevel struct {
	array arrow.Array
	// first is the element with which the outermost array's first list begins,
	// counted from the array's own first.
	first int
	// elements is how many there are in one value.
	elements int
}

// gatherLists collects fixed-size lists: the items of nested ones lie one after
// the other in the innermost array.
func gatherLists(v *level.Values, t level.Type, a arrow.Array, runs []run) error {
	var levels []listLevel
	first, elements := 0, 1
	nulls := false
	for {
		list, ok := a.(*array.FixedSizeList)
		if !ok {
			break
		}
		n := int(list.DataType().(*arrow.FixedSizeListType).Len())
		first = (first + list.Data().Offset()) * n
		elements *= n
		a = list.ListValues()
		if ext, ok := a.(array.ExtensionArray); ok {
			a = ext.Storage()
		}
		levels = append(levels, listLevel{a, first, elements})
		nulls = nulls || a.NullN() > 0
	}
	if elements != t.Dim || len(levels) == 0 {
		return table.Unsupportedf("lists of %d items where %d belong", elements, t.Dim)
	}
	data := a.Data()
	v.Data = gatherBits(bufferBytes(data, 1), (first+data.Offset())*t.Bits, t.Bits*t.Dim, v.N, runs)
	if nulls {
		v.ItemValid = listValidity(levels, t.ValidBits(), v.N, runs)
	}
	return nil
}

// listValidity collects, value by value, which elements of each level are there.
func listValidity(levels []listLevel, width, slots int, runs []run) []byte {
	out := make([]byte, 0, (slots*width+7)/8)
	have := 0
	for _, r := range runs {
		for i := range r.n {
			for _, l := range levels {
				if r.from < 0 || l.array.NullN() == 0 {
					out = level.AppendOnes(out, have, l.elements)
				} else {
					from := l.array.Data().Offset() + l.first + (r.from+i)*l.elements
					out = level.AppendBits(out, have, l.array.NullBitmapBytes(), from, l.elements)
				}
				have += l.elements
			}
		}
	}
	return out
}
