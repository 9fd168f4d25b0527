package sqlexpr

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// listMakers are the functions that make lists, or look for a place in one.
func listMakers() []*Function {
	list, value := param("list", KindList), param("value", KindAny&^KindList&^KindStruct)
	place := func(name string) Param {
		return param(name, KindWhole).like("1", "2", "0", "-1", "-2", "5", "n")
	}
	const same, common = "a list of the same type", "a list of the common type"
	return []*Function{
		{Name: "array_position", Aliases: []string{"list_position", "array_indexof", "list_indexof"}, Params: []Param{list, value}, Result: "bigint unsigned", Nulls: NullSpecial, Doc: "the place of the first such value, or null: of the first null if the value is null", Differs: "-0.0 is 0 here", bind: (*binder).arrayPosition},
		{Name: "array_slice", Aliases: []string{"list_slice"}, Params: []Param{list, place("from"), place("to")}, Result: same, Doc: "the values from one place to another, both with it, counted from the end below zero", bind: (*binder).arraySlice},
		{Name: "array_distinct", Aliases: []string{"list_distinct"}, Params: []Param{list}, Result: same, Doc: "the values, each once, in their order", bind: (*binder).arrayDistinct},
		{Name: "array_sort", Aliases: []string{"list_sort"}, Params: []Param{list}, Result: same, Doc: "the values in ascending order, nulls first", bind: (*binder).arraySort},
		{Name: "array_append", Aliases: []string{"list_append", "array_push_back", "list_push_back"}, Params: []Param{list, value}, Result: common, Nulls: NullSpecial, Doc: "the list with the value behind; a null list is an empty one", Differs: "engines make a null vector one of nulls",
			bind: func(b *binder, e *call, args []*node) (*node, error) {
				return b.arrayWith(e, args[0], args[1], func(values, x []int) []int { return append(values, x...) })
			}},
		{Name: "array_prepend", Aliases: []string{"list_prepend", "array_push_front", "list_push_front"}, Params: []Param{value, list}, Result: common, Nulls: NullSpecial, Doc: "the list with the value before; a null list is an empty one", Differs: "engines make a null vector one of nulls",
			bind: func(b *binder, e *call, args []*node) (*node, error) {
				return b.arrayWith(e, args[1], args[0], func(values, x []int) []int { return append(x, values...) })
			}},
		{Name: "array_concat", Aliases: []string{"array_cat", "list_concat", "list_cat"}, Params: []Param{list}, Variadic: true, Result: common, Nulls: NullIgnored, Doc: "the values of all lists, one after the other", bind: (*binder).arrayConcat},
		{Name: "array_remove", Aliases: []string{"list_remove"}, Params: []Param{list, value}, Result: same, Doc: "the list without the first such value", Differs: "-0.0 is 0 here",
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.arrayRemove(e, args, 1) }},
		{Name: "array_remove_all", Aliases: []string{"list_remove_all"}, Params: []Param{list, value}, Result: same, Doc: "the list without all such values", Differs: "-0.0 is 0 here",
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.arrayRemove(e, args, math.MaxInt) }},
	}
}

// scalarElement is the type of the values of a list, which can be compared.
func (b *binder) scalarElement(e *call, n *node) (arrow.DataType, error) {
	elem := listElement(n)
	if elem == nil {
		return nil, b.src.errorf(n.at, "%s is for lists, and this is of type %s", e.name, typeText(n.typ))
	}
	if !isScalar(elem) {
		return nil, b.src.unsupportedf(n.at, "comparing values of type %s", typeText(elem))
	}
	return elem, nil
}

// pick gives a list as places in a pool of values; not ok makes it null.
type pick func(i int) (places []int, ok bool)

// lists makes a node of lists, of values of type elem that are picked out of a pool.
func (b *binder) lists(e *call, elem arrow.DataType, of func(f *frame, vs []vector) (pool arrow.Array, each pick, err error), args ...*node) *node {
	typ, large := arrow.DataType(arrow.ListOf(elem)), false
	for _, n := range args {
		if n.typ.ID() == arrow.LARGE_LIST {
			typ, large = arrow.LargeListOf(elem), true
		}
	}
	return b.make(e.span, typ, false, func(f *frame, vs []vector) (vector, error) {
		pool, each, err := of(f, vs)
		if err != nil {
			return vector{}, err
		}
		n, one := f.length(vs...)
		valid, nulls := make([]byte, bitutil.BytesForBits(int64(n))), 0
		var rows []int
		short, long := make([]int32, 1, n+1), make([]int64, 1, n+1)
		for i := range n {
			places, ok := each(i)
			if ok {
				rows = append(rows, places...)
				bitutil.SetBit(valid, i)
			} else {
				nulls++
			}
			if large {
				long = append(long, int64(len(rows)))
			} else if len(rows) > math.MaxInt32 {
				return vector{}, fmt.Errorf("lists of more than %d values for one batch of rows", math.MaxInt32)
			} else {
				short = append(short, int32(len(rows)))
			}
		}
		values, err := take(f, pool, rows)
		if err != nil {
			return vector{}, err
		}
		offsets := memory.NewBufferBytes(arrow.GetBytes(short))
		if large {
			offsets = memory.NewBufferBytes(arrow.GetBytes(long))
		}
		data := array.NewData(typ, n, []*memory.Buffer{memory.NewBufferBytes(valid), offsets}, []arrow.ArrayData{values.Data()}, nulls, 0)
		defer data.Release()
		return vector{f.own(array.MakeFromData(data)), one}, nil
	}, args...)
}

// placesOf are the places of the values of a row's list, in the array of all; not ok
// if the list is null.
func placesOf(v vector) pick {
	l := v.Array.(array.ListLike)
	return func(i int) ([]int, bool) {
		i *= v.step()
		if l.IsNull(i) {
			return nil, false
		}
		from, to := l.ValueOffsets(i)
		places := make([]int, 0, to-from+1) // room for one more
		for j := from; j < to; j++ {
			places = append(places, int(j))
		}
		return places, true
	}
}

func (b *binder) arrayPosition(e *call, args []*node) (*node, error) {
	elem, err := b.scalarElement(e, args[0])
	if err != nil {
		return nil, err
	}
	t, err := b.members(e.span, elem, args[1].typ)
	if err != nil {
		return nil, err
	}
	if args[1], err = b.castTo(args[1], t); err != nil {
		return nil, err
	}
	same, out := sameCells(familyOf(t)), arrow.PrimitiveTypes.Uint64
	return b.make(e.span, out, false, func(f *frame, vs []vector) (vector, error) {
		in, err := elements(f, vs[0].Array.(array.ListLike), t)
		if err != nil {
			return vector{}, err
		}
		equal, places := sameValues(in, vs[1].Array, same), placesOf(vs[0])
		n, one := f.length(vs...)
		found, valid, nulls := make([]uint64, n), make([]byte, bitutil.BytesForBits(int64(n))), 0
		for i := range n {
			all, _ := places(i)
			at := slices.IndexFunc(all, func(j int) bool { return equal(j, i*vs[1].step()) })
			if at < 0 {
				nulls++
				continue
			}
			found[i] = uint64(at) + 1
			bitutil.SetBit(valid, i)
		}
		return numbers(f, out, one, found, valid, nulls), nil
	}, args...), nil
}

// sameValues says whether a value of one array is that of another, a null like a null.
func sameValues(a, b arrow.Array, same func(a, b cell) bool) func(i, j int) bool {
	readA, readB := cellReader(a), cellReader(b)
	return func(i, j int) bool {
		if a.IsNull(i) || b.IsNull(j) {
			return a.IsNull(i) && b.IsNull(j)
		}
		return same(readA(i), readB(j))
	}
}

func (b *binder) arraySlice(e *call, args []*node) (*node, error) {
	elem := listElement(args[0])
	if elem == nil {
		return nil, b.src.errorf(args[0].at, "%s is for lists, and this is of type %s", e.name, typeText(args[0].typ))
	}
	if err := b.castEach(args[1:], arrow.PrimitiveTypes.Int64); err != nil {
		return nil, err
	}
	return b.lists(e, elem, func(f *frame, vs []vector) (arrow.Array, pick, error) {
		places, from, to := placesOf(vs[0]), values[int64](vs[1].Array), values[int64](vs[2].Array)
		return vs[0].Array.(array.ListLike).ListValues(), func(i int) ([]int, bool) {
			all, ok := places(i)
			first, last := i*vs[1].step(), i*vs[2].step()
			if !ok || vs[1].IsNull(first) || vs[2].IsNull(last) {
				return nil, false
			}
			n := int64(len(all))
			at := func(p int64) int64 {
				if p < 0 {
					p += n + 1
				}
				return p
			}
			begin, end := max(at(from[first]), 1), min(at(to[last]), n)
			if begin > end {
				return nil, true
			}
			return all[begin-1 : end], true
		}, nil
	}, args...), nil
}

func (b *binder) arrayDistinct(e *call, args []*node) (*node, error) {
	return b.rearranged(e, args, func(in arrow.Array, compare func(i, j int) int, all []int) []int {
		sorted := slices.Clone(all)
		slices.SortStableFunc(sorted, compare)
		// Of values that are the same the first stays.
		sorted = slices.CompactFunc(sorted, func(i, j int) bool { return compare(i, j) == 0 })
		slices.Sort(sorted)
		return sorted
	})
}

func (b *binder) arraySort(e *call, args []*node) (*node, error) {
	return b.rearranged(e, args, func(in arrow.Array, compare func(i, j int) int, all []int) []int {
		slices.SortStableFunc(all, compare)
		return all
	})
}

// rearranged is a list of some of the values of a list, by their order. Nulls come
// first.
func (b *binder) rearranged(e *call, args []*node, of func(in arrow.Array, compare func(i, j int) int, all []int) []int) (*node, error) {
	elem, err := b.scalarElement(e, args[0])
	if err != nil {
		return nil, err
	}
	order := orderOf(familyOf(elem))
	return b.lists(e, elem, func(f *frame, vs []vector) (arrow.Array, pick, error) {
		in, places := vs[0].Array.(array.ListLike).ListValues(), placesOf(vs[0])
		read := cellReader(in)
		compare := func(i, j int) int {
			if in.IsNull(i) || in.IsNull(j) {
				return int(ordinal(in.IsValid(i))) - int(ordinal(in.IsValid(j)))
			}
			return order(read(i), read(j))
		}
		return in, func(i int) ([]int, bool) {
			all, ok := places(i)
			return of(in, compare, all), ok
		}, nil
	}, args...), nil
}

// arrayWith is a list and one value more.
func (b *binder) arrayWith(e *call, list, value *node, join func(values, x []int) []int) (*node, error) {
	elem, err := b.scalarElement(e, list)
	if err != nil {
		return nil, err
	}
	t, err := b.members(e.span, elem, value.typ)
	if err != nil {
		return nil, err
	}
	if value, err = b.castTo(value, t); err != nil {
		return nil, err
	}
	return b.lists(e, t, func(f *frame, vs []vector) (arrow.Array, pick, error) {
		in, err := elements(f, vs[0].Array.(array.ListLike), t)
		if err != nil {
			return nil, nil, err
		}
		pool, err := array.Concatenate([]arrow.Array{in, vs[1].Array}, allocator)
		if err != nil {
			return nil, nil, err
		}
		places := placesOf(vs[0])
		return f.own(pool), func(i int) ([]int, bool) {
			all, _ := places(i)
			return join(all, []int{in.Len() + i*vs[1].step()}), true
		}, nil
	}, list, value), nil
}

func (b *binder) arrayConcat(e *call, args []*node) (*node, error) {
	t, err := b.scalarElement(e, args[0])
	for _, n := range args[1:] {
		if err != nil {
			return nil, err
		}
		var elem arrow.DataType
		if elem, err = b.scalarElement(e, n); err == nil {
			t, err = b.members(e.span, t, elem)
		}
	}
	if err != nil {
		return nil, err
	}
	return b.lists(e, t, func(f *frame, vs []vector) (arrow.Array, pick, error) {
		var parts []arrow.Array
		var before []int // how many values there are before those of a part
		n := 0
		for _, v := range vs {
			in, err := elements(f, v.Array.(array.ListLike), t)
			if err != nil {
				return nil, nil, err
			}
			parts, before = append(parts, in), append(before, n)
			n += in.Len()
		}
		pool, err := array.Concatenate(parts, allocator)
		if err != nil {
			return nil, nil, err
		}
		return f.own(pool), func(i int) (out []int, some bool) {
			for k, v := range vs {
				all, ok := placesOf(v)(i)
				some = some || ok
				for _, p := range all {
					out = append(out, before[k]+p)
				}
			}
			return out, some
		}, nil
	}, args...), nil
}

// arrayRemove is a list without the first so many of a value.
func (b *binder) arrayRemove(e *call, args []*node, most int) (*node, error) {
	elem, err := b.scalarElement(e, args[0])
	if err != nil {
		return nil, err
	}
	t, err := b.members(e.span, elem, args[1].typ)
	if err != nil {
		return nil, err
	}
	if args[1], err = b.castTo(args[1], t); err != nil {
		return nil, err
	}
	same := sameCells(familyOf(t))
	return b.lists(e, elem, func(f *frame, vs []vector) (arrow.Array, pick, error) {
		l := vs[0].Array.(array.ListLike)
		in, err := elements(f, l, t)
		if err != nil {
			return nil, nil, err
		}
		equal, places := sameValues(in, vs[1].Array, same), placesOf(vs[0])
		return l.ListValues(), func(i int) ([]int, bool) {
			all, ok := places(i)
			x, left := i*vs[1].step(), most
			if !ok || vs[1].IsNull(x) {
				return nil, false
			}
			return slices.DeleteFunc(all, func(j int) bool {
				if left == 0 || !equal(j, x) {
					return false
				}
				left--
				return true
			}), true
		}, nil
	}, args...), nil
}
