package arrowcheck

import (
	"sort"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

// run is the slots [from, to) of an array.
type run struct{ from, to int }

// what is which values are looked at.
type what uint8

const (
	allValues what = iota
	textAlone
)

// values checks the values in the given slots, which ascend, of an array of which the
// structure was checked. The fault that it returns has a slot.
func (w what) values(d arrow.ArrayData, path string, runs []run) *fault {
	switch t := storage(d.DataType()).(type) {
	case *arrow.StringType:
		return texts(d, path, runs, numbers[int32](d, 1))
	case *arrow.LargeStringType:
		return texts(d, path, runs, numbers[int64](d, 1))
	case *arrow.StringViewType:
		return textViews(d, path, runs)
	case *arrow.DictionaryType:
		if w == textAlone {
			items := d.Dictionary()
			if f := w.values(items, path, []run{{0, items.Len()}}); f != nil {
				return w.firstOf(d, runs, f)
			}
			return nil
		}
		n := int64(d.Dictionary().Len())
		return each(d, runs, func(i int) *fault {
			if k, ok := integer(d, i); !ok || k < 0 || k >= n {
				return faultf(path, i, "index %d into a dictionary of %d values", k, n)
			}
			return nil
		})
	case *arrow.StructType:
		below := seen(d, runs)
		for i, c := range d.Children() {
			if f := w.under(c, t.Field(i), child(d, i, path), shift(below, d.Offset(), 1)); f != nil {
				f.slot -= d.Offset()
				return f
			}
		}
	case *arrow.FixedSizeListType:
		size := int(t.Len())
		if f := w.under(d.Children()[0], t.ElemField(), child(d, 0, path), shift(seen(d, runs), d.Offset(), size)); f != nil {
			f.slot = f.slot/size - d.Offset()
			return f
		}
	case *arrow.ListType:
		return lists(w, d, path, runs, t.ElemField(), numbers[int32](d, 1))
	case *arrow.MapType:
		return lists(w, d, path, runs, t.ElemField(), numbers[int32](d, 1))
	case *arrow.LargeListType:
		return lists(w, d, path, runs, t.ElemField(), numbers[int64](d, 1))
	case *arrow.ListViewType, *arrow.LargeListViewType, arrow.UnionType, *arrow.RunEndEncodedType:
		// Slots share what is below them, so all of that is looked at.
		for i, c := range d.Children() {
			if f := w.values(c, child(d, i, path), []run{{0, c.Len()}}); f != nil {
				f.slot = -1
				return f
			}
		}
	default:
		if check := ranges(t); check != nil && w == allValues {
			return each(d, runs, func(i int) *fault {
				if reason := check(d, i); reason != "" {
					return &fault{path, i, reason}
				}
				return nil
			})
		}
	}
	return nil
}

// firstOf is the first slot that has the value of a dictionary with a fault, nil if none
// has it.
func (w what) firstOf(d arrow.ArrayData, runs []run, f *fault) *fault {
	return each(d, runs, func(i int) *fault {
		if k, _ := integer(d, i); int(k) == f.slot {
			return &fault{f.path, i, f.reason}
		}
		return nil
	})
}

// each calls check for the slots that are not null, until it finds something.
func each(d arrow.ArrayData, runs []run, check func(i int) *fault) *fault {
	for _, r := range runs {
		for i := r.from; i < r.to; i++ {
			if isNull(d, i) {
				continue
			}
			if f := check(i); f != nil {
				return f
			}
		}
	}
	return nil
}

// seen leaves out the slots that are null, which hide what is below them.
func seen(d arrow.ArrayData, runs []run) []run {
	if d.NullN() == 0 {
		return runs
	}
	var out []run
	for _, r := range runs {
		for i := r.from; i < r.to; i++ {
			if isNull(d, i) {
				continue
			}
			if n := len(out); n > 0 && out[n-1].to == i {
				out[n-1].to++
				continue
			}
			out = append(out, run{i, i + 1})
		}
	}
	return out
}

// shift is where slots lie in a child that has size slots for each.
func shift(runs []run, offset, size int) []run {
	if offset == 0 && size == 1 {
		return runs
	}
	out := make([]run, len(runs))
	for i, r := range runs {
		out[i] = run{(offset + r.from) * size, (offset + r.to) * size}
	}
	return out
}

// under checks the slots of a child, which is the field f of its parent.
func (w what) under(c arrow.ArrayData, f arrow.Field, path string, runs []run) *fault {
	if !f.Nullable && c.NullN() != 0 && w == allValues {
		for _, r := range runs {
			for i := r.from; i < r.to; i++ {
				if isNull(c, i) {
					return faultf(path, i, "it is null, and must not be")
				}
			}
		}
	}
	return w.values(c, path, runs)
}

func lists[O int32 | int64](w what, d arrow.ArrayData, path string, runs []run, item arrow.Field, o []O) *fault {
	if d.Len() == 0 {
		return nil
	}
	var below []run
	for _, r := range seen(d, runs) {
		if r.from < r.to {
			below = append(below, run{int(o[r.from]), int(o[r.to])})
		}
	}
	f := w.under(d.Children()[0], item, child(d, 0, path), below)
	if f != nil { // it is of the first list that ends behind it
		f.slot = sort.Search(d.Len(), func(i int) bool { return int(o[i+1]) > f.slot })
	}
	return f
}

// texts checks that text is UTF-8: all of it at once, which is several times faster,
// then one by one if that fails.
func texts[O int32 | int64](d arrow.ArrayData, path string, runs []run, o []O) *fault {
	data := buffer(d, 2)
	for _, r := range runs {
		if r.from == r.to || whole(data, o[r.from:r.to+1]) {
			continue
		}
		f := each(d, []run{r}, func(i int) *fault {
			if v := data[o[i]:o[i+1]]; !utf8.Valid(v) {
				return faultf(path, i, "%s is not UTF-8", quote(v))
			}
			return nil
		})
		if f != nil {
			return f
		}
	}
	return nil
}

// whole says whether all text between offsets is UTF-8, and no offset is amid a
// character.
func whole[O int32 | int64](data []byte, o []O) bool {
	last := o[len(o)-1]
	if !utf8.Valid(data[o[0]:last]) {
		return false
	}
	for _, at := range o {
		if at < last && !utf8.RuneStart(data[at]) {
			return false
		}
	}
	return true
}

func textViews(d arrow.ArrayData, path string, runs []run) *fault {
	headers := arrow.ViewHeaderTraits.CastFromBytes(buffer(d, 1))
	return each(d, runs, func(i int) *fault {
		h := &headers[d.Offset()+i]
		var v []byte
		if h.IsInline() {
			v = h.InlineBytes()
		} else {
			v = buffer(d, 2+int(h.BufferIndex()))[h.BufferOffset():][:h.Len()]
		}
		if !utf8.Valid(v) {
			return faultf(path, i, "%s is not UTF-8", quote(v))
		}
		return nil
	})
}
