package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// keptStrings appends the slots of a chunk of strings with nothing in those that
// nobody wants: looking them up or expanding them is nearly all of the work. It is
// for pages without lists, where a slot is a row.
type keptStrings struct {
	valueDecoder
	// keep are the slots that are wanted of the chunk that is decoded next. They
	// ascend, and may begin before and end after it.
	keep []Range
}

// keepSome makes the plan decode only what is wanted, where that is worth it, and
// returns where to say what that is; nil if it makes no difference.
func (m *miniBlock) keepSome(t level.Type) *keptStrings {
	if m.path.maxRep > 0 || t.Kind != level.Variable {
		return nil
	}
	switch v := m.values.(type) {
	case *keptStrings:
		return v // from the last time
	case *dictionaryValues:
	case *stringValues:
		if _, ok := v.decoder.(*fsstStrings); !ok {
			return nil
		}
	default:
		return nil
	}
	k := &keptStrings{valueDecoder: m.values}
	m.values = k
	return k
}

// want says that the chunk decoded next has the rows from row on, and which rows
// are wanted.
func (k *keptStrings) want(ranges []Range, from, row uint64, n int) {
	k.keep = k.keep[:0]
	for _, r := range ranges {
		if r.From >= row+uint64(n) {
			break
		}
		if low := max(r.From, from, row); low < r.To {
			k.keep = append(k.keep, Range{low - row, min(r.To, row+uint64(n)) - row})
		}
	}
}

func (k *keptStrings) appendTo(s *sink, n int, bufs [][]byte) error {
	v := &s.v
	var some func(from, to int) error
	switch d := k.valueDecoder.(type) {
	case *dictionaryValues:
		var err error
		if d.spare, err = d.indices.decode(d.spare[:0], n, bufs); err != nil {
			return err
		}
		some = func(from, to int) error { return d.appendSome(v, from, to) }
	default:
		f := d.(*stringValues).decoder.(*fsstStrings)
		packed, err := f.inner.decode(n, bufs)
		if err != nil {
			return err
		}
		some = func(from, to int) error { return f.appendSome(v, packed, from, to) }
	}
	at := 0
	for _, r := range k.keep {
		appendEmpty(v, int(r.From)-at)
		if err := some(int(r.From), int(r.To)); err != nil {
			return err
		}
		at = int(r.To)
	}
	appendEmpty(v, n-at)
	v.N += n
	return nil
}

// appendEmpty appends n empty strings, which the caller counts.
func appendEmpty(v *level.Values, n int) {
	end := uint32(len(v.Data))
	for range n {
		v.Offsets = append(v.Offsets, end)
	}
}

// appendSome looks up the strings of the slots [from, to), whose indices are in
// spare.
func (d *dictionaryValues) appendSome(v *level.Values, from, to int) error {
	dict := &d.entries.v
	for i := from; i < to; i++ {
		at := loadWord(d.spare[i*d.width:], d.width)
		if at >= uint64(dict.N) {
			return table.Corruptf("encoding: index %d into a dictionary of %d items", at, dict.N)
		}
		v.Data = append(v.Data, dict.Data[dict.Offsets[at]:dict.Offsets[at+1]]...)
		if len(v.Data) > d.limit || uint64(len(v.Data)) > 1<<32-1 {
			return table.Unsupportedf("encoding: a chunk of dictionary values expands to more than %d bytes", d.limit)
		}
		v.Offsets = append(v.Offsets, uint32(len(v.Data)))
	}
	return nil
}

// appendSome expands the strings [from, to) of packed.
func (d *fsstStrings) appendSome(v *level.Values, packed stringView, from, to int) error {
	if most := maxSymbolGrowth * uint64(packed.offsets[to]-packed.offsets[from]); most > uint64(d.limit) || uint64(len(v.Data))+most > 1<<32-1 {
		return table.Unsupportedf("encoding: %d bytes of compressed strings in one chunk", most/maxSymbolGrowth)
	}
	var err error
	v.Data, v.Offsets, err = d.symbols.AppendAll(v.Data, v.Offsets, packed.data, packed.offsets[from:to+1])
	return err
}
