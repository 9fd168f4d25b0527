package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/rehome-db/rehome/lance/datafile/level"
)

// The bounds of dictionaries are the stock engine's. The columns that it and this package
// write agree then on what has one.
const (
	// minDictionarySlots is the least number of values: fewer are no burden.
	minDictionarySlots = 100
	// maxDictionaryItems is the most items, since readers load a dictionary whole.
	maxDictionaryItems = 100_000
	// minRepeats is how often a value occurs on average at least, and maxIndexedRatio what
	// fraction of the plain values dictionary and indices may take, unless the options say
	// something else.
	minRepeats      = 2
	maxIndexedRatio = 0.8
	// indexBits is the width of indices before they are packed, for every dictionary that
	// is not an Arrow dictionary.
	indexBits = 32
	// offsetBytes is what an item takes in a dictionary besides its bytes.
	offsetBytes = 4

	// A sample decides whether the values are worth the hashing: blocks of neighbours from
	// all over the page. If nearly each of its values is distinct they are not.
	sampleBlocks      = 32
	samplePerBlock    = 128
	maxSampleDistinct = 0.98
)

// dictionary returns an encoder of indices and the dictionary that they point into,
// or nil if the values of b do not repeat enough.
func (e *Encoder) dictionary(b *level.Block) (valueEncoder, *dictionaryPage) {
	values := e.indexable(b)
	if values == nil || !e.sampleRepeats(values) {
		return nil, nil
	}
	items, itemBytes := e.indexValues(values)
	if items == nil || !e.indexedPays(values, len(items), itemBytes) {
		return nil, nil
	}
	page := e.dictionaryPage(b.Type, items)
	if b.Type.Kind == level.FixedList {
		if err := e.describeListItems(b, page); err != nil {
			return nil, nil
		}
	}
	return e.wrap(e.fixedEncoder(e.indices, b.Values.N, indexBits)), page
}

// repeatable is values that may be worth a dictionary, as bytes.
type repeatable struct {
	*level.Block
	width int // of a value, or of an offset
	// maxItems is the most items that their dictionary may have.
	maxItems int
}

// indexable returns the values of b as bytes, or nil if they are of a type of which no
// reader knows a dictionary, or too few.
func (e *Encoder) indexable(b *level.Block) *repeatable {
	out := &repeatable{Block: b, width: b.Type.Bits / 8, maxItems: min(b.Values.N/e.minRepeats(), maxDictionaryItems)}
	switch {
	case b.Values.N < minDictionarySlots:
		return nil
	case b.Type.Kind == level.Variable:
	case b.Type.Kind == level.Fixed && b.Type.Bits == 128:
	case b.Type.Kind == level.Fixed && b.Type.Bits == 64 && e.opts.Version.wideWords():
	case b.Type.Kind == level.FixedList && b.Type.Bits%8 == 0 && e.opts.Version.Planar():
		out.width = b.Type.ValueBits() / 8
		if b.Values.ItemValid != nil {
			var err error
			if out.Block, err = e.wholeLists(b); err != nil {
				return nil // for whoever encodes the lists to say
			}
			out.width = out.Type.Dim
		}
	default:
		return nil
	}
	if e.indexOf == nil {
		e.indexOf = make(map[string]uint32)
	}
	return out
}

// bytes returns the values [from, to).
func (r *repeatable) bytes(from, to int) []byte {
	v := &r.Values
	if r.Type.Kind == level.Variable {
		return v.Data[v.Offsets[from]:v.Offsets[to]]
	}
	return v.Data[from*r.width : to*r.width]
}

// plainBytes returns what the values take as they are.
func (r *repeatable) plainBytes() int {
	n := len(r.bytes(0, r.Values.N))
	if r.Type.Kind == level.Variable {
		n += r.Values.N * r.width
	}
	return n
}

// sampleRepeats looks at blocks of values from all over the page and says whether
// a dictionary is likely enough.
func (e *Encoder) sampleRepeats(r *repeatable) bool {
	n := r.Values.N
	if n <= sampleBlocks*samplePerBlock {
		return true // all of it is no more than the sample
	}
	clear(e.indexOf)
	for block := range sampleBlocks {
		at := block * n / sampleBlocks
		for i := range samplePerBlock {
			value := r.bytes(at+i, at+i+1)
			if _, ok := e.indexOf[string(value)]; !ok {
				e.indexOf[string(value)] = 0
			}
		}
	}
	distinct := float64(len(e.indexOf)) / (sampleBlocks * samplePerBlock)
	// Distinct values of a sample underestimate those of the page only if they
	// come in clusters; a page with too many is noticed while indexing.
	return distinct < maxSampleDistinct && len(e.indexOf) <= r.maxItems
}

// indexValues sets e.indices and returns the distinct values, in the order in which they
// come, and what they take; or nil as soon as they are too many.
func (e *Encoder) indexValues(r *repeatable) (items []string, itemBytes int) {
	maxItemBytes := int(float64(r.plainBytes()) * e.maxIndexedRatio())
	clear(e.indexOf)
	e.indices = e.indices[:0]
	for i := range r.Values.N {
		value := r.bytes(i, i+1)
		k, ok := e.indexOf[string(value)]
		if !ok {
			k = uint32(len(items))
			item := string(value)
			items = append(items, item)
			e.indexOf[item] = k
			itemBytes += len(item) + offsetBytes
			if len(items) > r.maxItems || itemBytes > maxItemBytes {
				return nil, 0
			}
		}
		e.indices = binary.LittleEndian.AppendUint32(e.indices, k)
	}
	return items, itemBytes
}

// indexedPays says whether items and indices, each of the bits that the largest takes, are
// smaller by enough than the values encoded without a dictionary.
func (e *Encoder) indexedPays(r *repeatable, items, itemBytes int) bool {
	indexed := itemBytes + r.Values.N*bits.Len(uint(items-1))/8
	return float64(indexed) <= float64(e.plainSize(r))*e.maxIndexedRatio()
}

// minRepeats and maxIndexedRatio return what options say, or the defaults.
func (e *Encoder) minRepeats() int {
	if e.opts.DictionaryDivisor > 0 {
		return e.opts.DictionaryDivisor
	}
	return minRepeats
}

func (e *Encoder) maxIndexedRatio() float64 {
	if e.opts.DictionaryRatio > 0 {
		return e.opts.DictionaryRatio
	}
	return maxIndexedRatio
}

// plainSize estimates what the values take without a dictionary.
func (e *Encoder) plainSize(r *repeatable) int {
	v := &r.Values
	switch {
	case r.Type.Kind == level.Variable && e.useSymbols(r.Block):
		return int(float64(v.Offsets[v.N]-v.Offsets[0])*e.symbols.Ratio()) + v.N*r.width
	case r.Type.Kind == level.Fixed && r.Type.Bits == 64:
		switch c := e.fixedEncoder(v.Data, v.N, 64).(type) {
		case *rleEncoder:
			return c.size(0, v.N)
		case *inlineEncoder:
			return inlineBytes(v.Data[:8*v.N], 64)
		}
	}
	return r.plainBytes()
}
