package encoding

import (
	"encoding/binary"
	"math/bits"

	"github.com/rehome-db/rehome/lance/datafile/level"
)

const (
	minDictionarySlots = 100
	maxDictionaryItems = 100_000
	// indexBits is the width of indices before they are packed: what Lance
	// writes for every dictionary of its own choice.
	indexBits = 32

	// A sample decides whether the values are worth the hashing.
	sampleBlocks      = 32
	samplePerBlock    = 128
	maxSampleDistinct = 0.98
)

// dictionary returns a codec of indices and the dictionary that they point into,
// or nil if the values of b do not repeat enough.
func (e *Encoder) dictionary(b *level.Block) (valueCodec, *dictionaryPage) {
	d := dictionaryBuilder{b: b, width: b.Type.Bits / 8}
	switch {
	case b.Values.N < minDictionarySlots:
		return nil, nil
	case b.Type.Kind == level.Variable:
	case b.Type.Kind == level.Fixed && b.Type.Bits == 128:
	case b.Type.Kind == level.Fixed && b.Type.Bits == 64 && e.opts.Version.wideWords():
	case b.Type.Kind == level.FixedList && b.Type.Bits%8 == 0 && e.opts.Version.Planar():
		d.width = b.Type.ValueBits() / 8
		if b.Values.ItemValid != nil {
			var err error
			if d.b, err = e.wholeLists(b); err != nil {
				return nil, nil // for whoever encodes the lists to say
			}
			d.width = d.b.Type.Dim
		}
	default:
		return nil, nil
	}
	if e.indexOf == nil {
		e.indexOf = make(map[string]uint32)
	}
	n := b.Values.N
	limit := min(n/e.divisor(), maxDictionaryItems)
	if !e.sampleRepeats(&d, limit) {
		return nil, nil
	}
	plain := len(d.bytes(0, n))
	if b.Type.Kind == level.Variable {
		plain += n * d.width
	}
	maxItemBytes := int(float64(plain) * e.dictionaryRatio())
	clear(e.indexOf)
	e.indices = e.indices[:0]
	var items []string
	itemBytes := 0
	for i := range n {
		value := d.bytes(i, i+1)
		k, ok := e.indexOf[string(value)]
		if !ok {
			k = uint32(len(items))
			item := string(value)
			items = append(items, item)
			e.indexOf[item] = k
			itemBytes += len(item) + 4
			if len(items) > limit || itemBytes > maxItemBytes {
				return nil, nil
			}
		}
		e.indices = binary.LittleEndian.AppendUint32(e.indices, k)
	}
	if indexed := itemBytes + n*bits.Len(uint(len(items)-1))/8; float64(indexed) > float64(e.plainSize(&d, plain))*e.dictionaryRatio() {
		return nil, nil
	}
	page := e.dictionaryPage(b.Type, items)
	if b.Type.Kind == level.FixedList {
		if err := e.describeListItems(b, page); err != nil {
			return nil, nil
		}
	}
	return e.wrap(e.fixedCodec(e.indices, n, indexBits)), page
}

// divisor and dictionaryRatio return what options say, or the defaults.
func (e *Encoder) divisor() int {
	if e.opts.DictionaryDivisor > 0 {
		return e.opts.DictionaryDivisor
	}
	return 2
}

func (e *Encoder) dictionaryRatio() float64 {
	if e.opts.DictionaryRatio > 0 {
		return e.opts.DictionaryRatio
	}
	return 0.8
}

// plainSize estimates what the values take without a dictionary.
func (e *Encoder) plainSize(d *dictionaryBuilder, plain int) int {
	v := &d.b.Values
	switch {
	case d.b.Type.Kind == level.Variable && e.useSymbols(d.b):
		return int(float64(v.Offsets[v.N]-v.Offsets[0])*e.symbols.Ratio()) + v.N*d.width
	case d.b.Type.Kind == level.Fixed && d.b.Type.Bits == 64:
		size := 0
		switch c := e.fixedCodec(v.Data, v.N, 64).(type) {
		case *runCodec:
			size = c.size(0, v.N)
		case *bitpackCodec:
			for i := 0; i < v.N; i += 1024 {
				size += c.size(i, min(i+1024, v.N))
			}
		default:
			size = plain
		}
		return size
	default:
		return plain
	}
}

// sampleRepeats looks at blocks of values from all over the page and says whether
// a dictionary of at most limit items is likely enough.
func (e *Encoder) sampleRepeats(d *dictionaryBuilder, limit int) bool {
	n := d.b.Values.N
	if n <= sampleBlocks*samplePerBlock {
		return true // all of it is no more than the sample
	}
	clear(e.indexOf)
	for block := range sampleBlocks {
		at := block * n / sampleBlocks
		for i := range samplePerBlock {
			value := d.bytes(at+i, at+i+1)
			if _, ok := e.indexOf[string(value)]; !ok {
				e.indexOf[string(value)] = 0
			}
		}
	}
	distinct := float64(len(e.indexOf)) / (sampleBlocks * samplePerBlock)
	// Distinct values of a sample underestimate those of the page only if they
	// come in clusters; a page with too many is noticed while indexing.
	return distinct < maxSampleDistinct && len(e.indexOf) <= limit
}

type dictionaryBuilder struct {
	b     *level.Block
	width int // of a value, or of an offset
}

// bytes returns the values [from, to) of the block.
func (d *dictionaryBuilder) bytes(from, to int) []byte {
	v := &d.b.Values
	if d.b.Type.Kind == level.Variable {
		return v.Data[v.Offsets[from]:v.Offsets[to]]
	}
	return v.Data[from*d.width : to*d.width]
}
