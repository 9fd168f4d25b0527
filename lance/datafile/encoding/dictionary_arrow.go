package encoding

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// A column of Arrow dictionaries has a dictionary in every page: that is what
// tells readers to make one. Blocks hold the values, so pages of different
// dictionaries are merged like any others, and what no row uses is left behind.
//
// Readers put the dictionaries of all pages that a batch takes rows from into one,
// and fail if its indices have no room for it. So no column may have more distinct
// values in the whole file than indices can tell apart.

// maxIndexes returns how many values an index of the column can tell apart.
func (e *Encoder) maxIndexes() int {
	bits := min(e.opts.IndexBits, 32)
	if e.opts.IndexSigned {
		bits--
	}
	return 1 << bits
}

// valueKey returns something that equals that of another slot if the values do.
// It is valid until the next call.
func (e *Encoder) valueKey(b *level.Block, slot int) []byte {
	v := &b.Values
	if b.Type.Kind == level.Variable {
		return v.Data[v.Offsets[slot]:v.Offsets[slot+1]]
	}
	if b.Type.Bits%8 != 0 {
		e.key = level.AppendBits(e.key[:0], 0, v.Data, slot*b.Type.Bits, b.Type.Bits)
		return e.key
	}
	w := b.Type.Bits / 8
	return v.Data[slot*w : (slot+1)*w]
}

// addDistinct counts the column's distinct values, of which these are some. Wide
// indices need no counting: a file with 2^31 values is not written.
func (e *Encoder) addDistinct(items []string) error {
	if e.opts.IndexBits > 16 {
		return nil
	}
	if e.distinct == nil {
		e.distinct = make(map[string]struct{})
	}
	for _, item := range items {
		e.distinct[item] = struct{}{}
	}
	if most := e.maxIndexes(); len(e.distinct) > most {
		return table.Unsupportedf("encoding: a dictionary column with more than %d distinct values in one file, which indices of %d bits cannot tell apart", most, e.opts.IndexBits)
	}
	return nil
}

// arrowDictionary returns a codec of indices, and the dictionary. Null slots have
// the index of whatever came before.
func (e *Encoder) arrowDictionary(b *level.Block, l *levels) (valueEncoder, *dictionaryPage, error) {
	if e.indexOf == nil {
		e.indexOf = make(map[string]uint32)
	}
	clear(e.indexOf)
	width := e.opts.IndexBits / 8
	n := b.Values.N
	e.indices = append(e.indices[:0], make([]byte, n*width)...)
	var items []string
	put := func(slot int, index uint64) {
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], index)
		copy(e.indices[slot*width:], word[:width])
	}
	next, last := 0, uint64(0)
	valid := func(to int) {
		for ; next < to; next++ {
			key := e.valueKey(b, next)
			k, ok := e.indexOf[string(key)]
			if !ok {
				k = uint32(len(items))
				item := string(key)
				items = append(items, item)
				e.indexOf[item] = k
			}
			last = uint64(k)
			put(next, last)
		}
	}
	l.nullSlots(n, func(slot int) {
		valid(slot)
		put(slot, last)
		next++
	})
	valid(n)
	if err := e.addDistinct(items); err != nil {
		return nil, nil, err
	}
	return e.wrap(e.fixedEncoder(e.indices, n, e.opts.IndexBits)), e.dictionaryPage(b.Type, items), nil
}
