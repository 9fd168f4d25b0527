package sqlexpr

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/gather"
)

// list binds a list of constants, whose values have their common type.
func (b *binder) list(e *list) (*node, error) {
	elems, err := b.bindAll(e.elems...)
	if err != nil {
		return nil, err
	}
	elems, typ, err := b.commonOf(e.span, elems)
	if err != nil {
		return nil, err
	}
	arrays := []arrow.Array{gather.Nulls(allocator, typ, 0)}
	for _, n := range elems {
		if !n.constant || n.fallible {
			return nil, b.src.unsupportedf(n.at, "a list of anything but constants")
		}
		v, err := n.eval(constantFrame())
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, v.Array)
	}
	values, err := array.Concatenate(arrays, allocator)
	if err != nil {
		return nil, b.src.unsupportedf(e.span, "a list of values of type %s: %w", typeText(typ), err)
	}
	defer values.Release()
	offsets := memory.NewBufferBytes(arrow.GetBytes([]int32{0, int32(len(elems))}))
	data := array.NewData(arrow.ListOf(typ), 1, []*memory.Buffer{nil, offsets}, []arrow.ArrayData{values.Data()}, 0, 0)
	defer data.Release()
	return b.value(e.span, array.NewListData(data)), nil
}

func listFunctions() []*Function {
	list := param("list", KindList)
	return []*Function{
		{Name: "array_has", Aliases: []string{"array_contains", "list_has", "list_contains"}, Params: []Param{list, param("value", KindAny)}, Result: "boolean", Doc: "whether the value is in the list", Differs: "-0.0 is 0 here", bind: (*binder).arrayHas},
		{Name: "array_has_any", Aliases: []string{"list_has_any", "arrays_overlap"}, Params: []Param{list, param("values", KindList)}, Result: "boolean", Doc: "whether one of the values is in the list", bind: (*binder).arrayHasAny},
		{Name: "array_has_all", Aliases: []string{"list_has_all"}, Params: []Param{list, param("values", KindList)}, Result: "boolean", Doc: "whether all of the values are in the list", bind: (*binder).arrayHasAll},
		{Name: "array_element", Aliases: []string{"list_element", "array_extract", "list_extract"}, Params: []Param{list, param("n", KindWhole).like("0", "1", "2", "-1", "5", "n")}, Result: "the type of the values", Doc: "the n-th value, from the end below zero, null beyond the ends; as list[n]",
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.element(e.span, args[0], args[1]) }},
		{Name: "array_length", Aliases: []string{"list_length", "cardinality"}, Params: []Param{list}, Result: "bigint unsigned", Doc: "how many values there are", bind: (*binder).cardinality},
	}
}

// listElement is the type of the values in a list, nil if the node is none.
func listElement(n *node) arrow.DataType {
	if t, ok := n.typ.(arrow.ListLikeType); ok && familyOf(n.typ) == famList {
		return t.Elem()
	}
	return nil
}

// element is list[i]: counted from 1, below zero from the end, null beyond the ends.
func (b *binder) element(at span, of, index *node) (*node, error) {
	elem := listElement(of)
	if elem == nil {
		return nil, b.src.errorf(at, "no element of a value of type %s", typeText(of.typ))
	}
	if !isInteger(index.typ) {
		return nil, b.src.errorf(index.at, "an index is a whole number, and this is of type %s", typeText(index.typ))
	}
	index, err := b.castTo(index, arrow.PrimitiveTypes.Int64)
	if err != nil {
		return nil, err
	}
	return b.make(at, elem, false, func(f *frame, vs []vector) (vector, error) {
		n, one := f.length(vs...)
		l, at := vs[0].Array.(array.ListLike), values[int64](vs[1].Array)
		rows := make([]int, n)
		for i := range rows {
			rows[i] = -1
			li, ii := i*vs[0].step(), i*vs[1].step()
			if l.IsNull(li) || vs[1].IsNull(ii) {
				continue
			}
			from, to := l.ValueOffsets(li)
			pos := at[ii]
			if pos < 0 {
				pos += to - from + 1
			}
			if pos >= 1 && pos <= to-from {
				rows[i] = int(from + pos - 1)
			}
		}
		v, err := take(f, l.ListValues(), rows)
		return vector{v, one}, err
	}, of, index), nil
}

// cardinality is how many values a list has.
func (b *binder) cardinality(e *call, args []*node) (*node, error) {
	if listElement(args[0]) == nil {
		return nil, b.src.errorf(e.span, "%s is for lists, and this is of type %s", e.name, typeText(args[0].typ))
	}
	t := arrow.PrimitiveTypes.Uint64
	return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
		n, one := f.length(vs...)
		valid, nulls := f.validity(n, vs...)
		l, out := vs[0].Array.(array.ListLike), make([]uint64, n)
		for i := range out {
			if from, to := l.ValueOffsets(i); l.IsValid(i) {
				out[i] = uint64(to - from)
			}
		}
		return numbers(f, t, one, out, valid, nulls), nil
	}, args...), nil
}

// sameCells compares two values of one type of a family.
func sameCells(fam family) func(a, b cell) bool {
	switch fam {
	case famFloat:
		return func(a, b cell) bool { return order(a.f, b.f) == 0 }
	case famDecimal:
		return func(a, b cell) bool { return a.d.Cmp(b.d) == 0 }
	}
	return func(a, b cell) bool { return a == b }
}

// members casts what is looked for, values of type n, and what is looked into, a list
// of elements of type elem, to one type.
func (b *binder) members(at span, elem, n arrow.DataType) (arrow.DataType, error) {
	t, err := common(elem, n)
	if err != nil {
		return nil, b.src.errorf(at, "%w", err)
	}
	if !isScalar(t) && familyOf(t) != famNull {
		return nil, b.src.unsupportedf(at, "comparing values of type %s", typeText(t))
	}
	return t, nil
}

// elements are the values of all lists of an array, cast.
func elements(f *frame, l array.ListLike, t arrow.DataType) (arrow.Array, error) {
	all := *f // there are as many rows as values
	all.rows = l.ListValues().Len()
	v, err := castVector(&all, vector{l.ListValues(), false}, t, false)
	return v.Array, err
}

// arrayHas says whether a value is in a list; null if one of them is.
func (b *binder) arrayHas(e *call, args []*node) (*node, error) {
	if familyOf(args[0].typ) == famNull {
		return b.nullOf(e.span, arrow.FixedWidthTypes.Boolean), nil
	}
	elem := listElement(args[0])
	if elem == nil {
		return nil, b.src.errorf(e.span, "%s is for lists, and this is of type %s", e.name, typeText(args[0].typ))
	}
	t, err := b.members(e.span, elem, args[1].typ)
	if err != nil {
		return nil, err
	}
	if args[1], err = b.castTo(args[1], t); err != nil {
		return nil, err
	}
	same := sameCells(familyOf(t))
	return b.make(e.span, arrow.FixedWidthTypes.Boolean, false, func(f *frame, vs []vector) (vector, error) {
		l := vs[0].Array.(array.ListLike)
		in, err := elements(f, l, t)
		if err != nil {
			return vector{}, err
		}
		read, want := cellReader(in), cellReader(vs[1].Array)
		return f.rowBools(func(i int) bool {
			from, to := l.ValueOffsets(i * vs[0].step())
			x := want(i * vs[1].step())
			for j := int(from); j < int(to); j++ {
				if in.IsValid(j) && same(read(j), x) {
					return true
				}
			}
			return false
		}, vs...), nil
	}, args...), nil
}

func (b *binder) arrayHasAny(e *call, args []*node) (*node, error) {
	return b.arrayHasEach(e, args, true)
}

func (b *binder) arrayHasAll(e *call, args []*node) (*node, error) {
	return b.arrayHasEach(e, args, false)
}

// arrayHasEach says whether some, or all, values of the second list are in the first.
// A null is in a list with a null, as in the engine.
func (b *binder) arrayHasEach(e *call, args []*node, some bool) (*node, error) {
	elem, sought := listElement(args[0]), listElement(args[1])
	if elem == nil || sought == nil {
		return nil, b.src.errorf(e.span, "%s is for two lists", e.name)
	}
	t, err := b.members(e.span, elem, sought)
	if err != nil {
		return nil, err
	}
	same := sameCells(familyOf(t))
	return b.make(e.span, arrow.FixedWidthTypes.Boolean, false, func(f *frame, vs []vector) (vector, error) {
		l, r := vs[0].Array.(array.ListLike), vs[1].Array.(array.ListLike)
		in, err := elements(f, l, t)
		if err != nil {
			return vector{}, err
		}
		want, err := elements(f, r, t)
		if err != nil {
			return vector{}, err
		}
		readIn, readWant := cellReader(in), cellReader(want)
		has := func(from, to int64, k int) bool {
			for j := int(from); j < int(to); j++ {
				if want.IsNull(k) || in.IsNull(j) {
					if want.IsNull(k) && in.IsNull(j) {
						return true
					}
				} else if same(readIn(j), readWant(k)) {
					return true
				}
			}
			return false
		}
		return f.rowBools(func(i int) bool {
			from, to := l.ValueOffsets(i * vs[0].step())
			first, end := r.ValueOffsets(i * vs[1].step())
			for k := int(first); k < int(end); k++ {
				if has(from, to, k) == some {
					return some
				}
			}
			return !some
		}, vs...), nil
	}, args...), nil
}
