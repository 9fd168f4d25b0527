package encoding

import (
	"github.com/rehome-db/rehome/lance/datafile/fsst"
	"github.com/rehome-db/rehome/lance/datafile/level"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// A symbol table (package fsst) makes strings shorter one by one: they are stored like others,
// only that a byte stands for up to eight. The table is in the description.

const (
	// Strings are worth a symbol table if they are so many bytes in all and the longest of
	// them so many: below that the stock engines do not try, either.
	minSymbolBytes = 32 * 1024
	minSymbolWidth = 5
	// A symbol table costs 2312 bytes and time: it has to save this much.
	maxSymbolRatio = 0.95
	// maxSymbolDecay is how much more room than on the page that it was made for the
	// symbol table may take on the next one before a new one is made. Making one costs as
	// much as encoding the page; two percent are less than tables of alike pages differ.
	maxSymbolDecay = 1.02
	// maxSymbolGrowth is the most bytes that stand for one byte of symbols.
	maxSymbolGrowth = 8
)

func describeFSST(table []byte, values *enc21pb.CompressiveEncoding) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Fsst{
		Fsst: &enc21pb.Fsst{SymbolTable: table, Values: values}}}
}

// fsstStrings expands strings that are symbols.
type fsstStrings struct {
	symbols *fsst.Table
	inner   stringDecoder
	limit   int
	out     stringView
}

func (d *fsstStrings) buffers() int { return d.inner.buffers() }

func (d *fsstStrings) decode(n int, bufs [][]byte) (stringView, error) {
	d.out.data, d.out.offsets = d.out.data[:0], append(d.out.offsets[:0], 0)
	var err error
	d.out.data, d.out.offsets, err = d.appendTo(d.out.data, d.out.offsets, n, bufs)
	return d.out, err
}

// appendTo expands straight into the place where the strings are wanted.
func (d *fsstStrings) appendTo(data []byte, offsets []uint32, n int, bufs [][]byte) ([]byte, []uint32, error) {
	packed, err := d.inner.decode(n, bufs)
	if err != nil {
		return data, offsets, err
	}
	if most := maxSymbolGrowth * uint64(packed.offsets[n]-packed.offsets[0]); most > uint64(d.limit) || uint64(len(data))+most > 1<<32-1 {
		return data, offsets, table.Unsupportedf("encoding: %d bytes of compressed strings in one chunk", most/maxSymbolGrowth)
	}
	return d.symbols.AppendAll(data, offsets, packed.data, packed.offsets[:n+1])
}

// useSymbols says whether b's strings are to be compressed with e.symbols, which
// it prepares.
func (e *Encoder) useSymbols(b *level.Block) bool {
	if e.opts.Compression != "" && e.opts.Compression != "fsst" {
		return false
	}
	v := &b.Values
	total := int(v.Offsets[v.N] - v.Offsets[0])
	if total < minSymbolBytes || widestValue(b) < minSymbolWidth {
		return false
	}
	return e.symbolRatio(b) < maxSymbolRatio
}

// symbolRatio sets e.symbols and returns the size that it makes of b's strings,
// as a fraction. The table of the page before is kept while it still does as well
// as it did there: neighbouring pages are mostly alike.
func (e *Encoder) symbolRatio(b *level.Block) float64 {
	v := &b.Values
	if e.symbols != nil {
		if r := e.trainer.Measure(e.symbols, v.Data, v.Offsets); r <= e.symbols.Ratio()*maxSymbolDecay {
			return r
		}
	}
	e.symbols = e.trainer.Train(v.Data, v.Offsets)
	return e.symbols.Ratio()
}

func (e *Encoder) encodeStrings(b *level.Block) ([]byte, []uint32) {
	v := &b.Values
	e.strings, e.ends = e.symbols.Append(e.strings[:0], e.ends[:0], v.Data, v.Offsets[:v.N+1])
	return e.strings, e.ends
}
