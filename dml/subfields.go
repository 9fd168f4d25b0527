package dml

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/gather"
)

// Rows to be written may have structs without some of the subfields that the table's
// have, or with these in another order, also in structs and lists. As in the stock
// engine, rows that are updated keep the values of subfields that their source does
// not have, and new rows have nulls. Of lists the items are paired by position, and so
// have to be as many as in the row that is updated.

// fits says whether values of one type can be made such of another by putting
// subfields in order and adding those that lack.
func fits(from, to arrow.DataType) bool {
	if arrow.TypeEqual(from, to) {
		return true
	}
	switch to := to.(type) {
	case *arrow.StructType:
		from, ok := from.(*arrow.StructType)
		if !ok || from.NumFields() == 0 {
			return false
		}
		seen := map[string]bool{}
		for _, f := range from.Fields() {
			at, ok := to.FieldIdx(f.Name)
			if !ok || seen[f.Name] || !fits(f.Type, to.Field(at).Type) {
				return false
			}
			seen[f.Name] = true
		}
		return true
	case *arrow.ListType, *arrow.LargeListType:
		return from.ID() == to.ID() && fits(from.(arrow.ListLikeType).Elem(), to.(arrow.ListLikeType).Elem())
	}
	return false
}

// lacking are the subfields of to that from, which fits, does not have; those that
// must not be null, if only these are asked for.
func lacking(from, to arrow.DataType, path string, notNull bool) (out []string) {
	switch to := to.(type) {
	case *arrow.StructType:
		from := from.(*arrow.StructType)
		for _, f := range to.Fields() {
			at, ok := from.FieldIdx(f.Name)
			switch name := path + "." + f.Name; {
			case ok:
				out = append(out, lacking(from.Field(at).Type, f.Type, name, notNull)...)
			case !notNull || !f.Nullable:
				out = append(out, name)
			}
		}
	case *arrow.ListType, *arrow.LargeListType:
		out = lacking(from.(arrow.ListLikeType).Elem(), to.(arrow.ListLikeType).Elem(), path, notNull)
	}
	return out
}

// complete makes values of type to, which they fit. What they lack comes from target,
// values of type to that are parallel, or is null if target is nil. The caller
// releases the result.
func complete(values, target arrow.Array, to arrow.DataType, path string) (arrow.Array, error) {
	if arrow.TypeEqual(values.DataType(), to) {
		values.Retain()
		return values, nil
	}
	if len(lacking(values.DataType(), to, path, false)) == 0 {
		target = nil // there is nothing to keep
	}
	if to, ok := to.(*arrow.StructType); ok {
		from, keep := values.(*array.Struct), (*array.Struct)(nil)
		if target != nil {
			keep = target.(*array.Struct)
		}
		return completeStruct(from, keep, to, path)
	}
	return completeList(values.(array.ListLike), target, to, path)
}

// completeStruct is complete for structs. One that is null in values is not if there is
// one to be kept in target: then the subfields that values have are null.
func completeStruct(values, target *array.Struct, to *arrow.StructType, path string) (arrow.Array, error) {
	n := values.Len()
	valid := func(i int) bool { return values.IsValid(i) || target != nil && target.IsValid(i) }
	validity, nulls := validityOf(n, valid)
	children := make([]arrow.ArrayData, to.NumFields())
	defer func() {
		for _, c := range children {
			if c != nil {
				c.Release()
			}
		}
	}()
	for k, f := range to.Fields() {
		name := path + "." + f.Name
		var kept arrow.Array
		if target != nil {
			kept = within(target.Field(k), target)
			defer kept.Release()
		}
		at, has := values.DataType().(*arrow.StructType).FieldIdx(f.Name)
		var child arrow.Array
		switch {
		case has:
			own := within(values.Field(at), values)
			var err error
			child, err = complete(own, kept, f.Type, name)
			own.Release()
			if err != nil {
				return nil, err
			}
		case kept != nil:
			kept.Retain()
			child = kept
		default:
			child = gather.Nulls(memory.DefaultAllocator, f.Type, n)
		}
		children[k] = child.Data()
		if f.Nullable {
			continue
		}
		for i := range n {
			if valid(i) && child.IsNull(i) {
				return nil, fmt.Errorf("column %q must not be null, and a row to be written has no value for it", name)
			}
		}
	}
	data := array.NewData(to, n, []*memory.Buffer{validity}, children, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// completeList is complete for lists.
func completeList(values array.ListLike, target arrow.Array, to arrow.DataType, path string) (arrow.Array, error) {
	n := values.Len()
	var items, kept []int // of the values, by row
	ends := make([]int, 0, n+1)
	ends = append(ends, 0)
	for i := range n {
		own := itemsOf(values, i)
		items = append(items, own...)
		ends = append(ends, len(items))
		if target == nil {
			continue
		}
		theirs := itemsOf(target.(array.ListLike), i)
		if len(own) != len(theirs) {
			return nil, fmt.Errorf("column %q: a row to be updated has %d items and its source %d, which lack subfields: whose to keep is not said", path, len(theirs), len(own))
		}
		kept = append(kept, theirs...)
	}
	own, err := gather.Take(memory.DefaultAllocator, values.ListValues(), items)
	if err != nil {
		return nil, err
	}
	defer own.Release()
	var theirs arrow.Array
	if target != nil {
		if theirs, err = gather.Take(memory.DefaultAllocator, target.(array.ListLike).ListValues(), kept); err != nil {
			return nil, err
		}
		defer theirs.Release()
	}
	done, err := complete(own, theirs, to.(arrow.ListLikeType).Elem(), path)
	if err != nil {
		return nil, err
	}
	defer done.Release()
	if f := to.(arrow.ListLikeType).ElemField(); !f.Nullable && done.NullN() > 0 {
		return nil, fmt.Errorf("column %q: an item of a row to be written is null, and must not be", path)
	}
	validity, nulls := validityOf(n, values.IsValid)
	data := array.NewData(to, n, []*memory.Buffer{validity, offsetsOf(to, ends)}, []arrow.ArrayData{done.Data()}, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// itemsOf are the numbers of row i's items among the list's values; none if it is null.
func itemsOf(list array.ListLike, i int) (out []int) {
	if list.IsNull(i) {
		return nil
	}
	from, end := list.ValueOffsets(i)
	for ; from < end; from++ {
		out = append(out, int(from))
	}
	return out
}

func offsetsOf(list arrow.DataType, ends []int) *memory.Buffer {
	if list.ID() == arrow.LARGE_LIST {
		out := make([]int64, len(ends))
		for i, e := range ends {
			out[i] = int64(e)
		}
		return memory.NewBufferBytes(arrow.Int64Traits.CastToBytes(out))
	}
	out := make([]int32, len(ends))
	for i, e := range ends {
		out[i] = int32(e)
	}
	return memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(out))
}

// within is a column of structs with nulls also where the structs are null. The caller
// releases it.
func within(child arrow.Array, parent *array.Struct) arrow.Array {
	d := child.Data()
	if parent.NullN() == 0 || child.DataType().ID() == arrow.NULL {
		child.Retain()
		return child
	}
	validity, nulls := validityOf(d.Offset()+child.Len(), func(i int) bool {
		return i < d.Offset() || parent.IsValid(i-d.Offset()) && child.IsValid(i-d.Offset())
	})
	buffers := append([]*memory.Buffer{validity}, d.Buffers()[1:]...)
	var out arrow.ArrayData
	if dict := d.Dictionary(); child.DataType().ID() == arrow.DICTIONARY {
		out = array.NewDataWithDictionary(child.DataType(), child.Len(), buffers, nulls, d.Offset(), dict.(*array.Data))
	} else {
		out = array.NewData(child.DataType(), child.Len(), buffers, d.Children(), nulls, d.Offset())
	}
	defer out.Release()
	return array.MakeFromData(out)
}

func validityOf(n int, valid func(i int) bool) (*memory.Buffer, int) {
	bits := make([]byte, bitutil.BytesForBits(int64(n)))
	nulls := 0
	for i := range n {
		if valid(i) {
			bitutil.SetBit(bits, i)
		} else {
			nulls++
		}
	}
	return memory.NewBufferBytes(bits), nulls
}
