package fsst

import (
	"cmp"
	"slices"
)

const (
	sampleClusters = 64
	clusterBytes   = 256
	rounds         = 5
	// minCount is how often a pair must follow each other to be worth a symbol.
	minCount = 4
	// codes while training: 0-255 is a byte that has to be escaped, the rest are
	// the symbols.
	trainCodes = 256 + maxSymbols
)

// Trainer finds symbol tables. It holds half a megabyte of counters, so keep one
// and use it again; it is not safe for concurrent use.
type Trainer struct {
	single [trainCodes]uint16
	pairs  [trainCodes][trainCodes]uint16
	// seen lists the pairs that are not zero.
	seen       []uint32
	sample     []byte
	ends       []int
	candidates map[symbol]uint32
	ranked     []candidate
}

type candidate struct {
	symbol symbol
	gain   uint32
}

// Train finds a table for values like those of data, value i being
// data[offsets[i]:offsets[i+1]]. Equal input gives an equal table.
//
// The method is that of the paper (Boncz, Neumann, Leis: "FSST: Fast Random
// Access String Compression", VLDB 2020): start with no symbols, encode a sample,
// count which codes and which pairs of neighbouring codes occur, make the symbols
// and their concatenations that save most the new table, and do it again; the
// best of a few rounds is kept.
func (t *Trainer) Train(data []byte, offsets []uint32) *Encoder {
	t.draw(data, offsets)
	best, next := newEncoder(), newEncoder()
	bestSize := 2 * len(t.sample)
	for round := range rounds {
		size := t.count(next)
		if size < bestSize || round == 0 {
			bestSize = size
			best, next = next, best
			t.rebuild(next, best)
			continue
		}
		// The counts belong to next, which was no better: building on it again
		// rarely recovers, and there are few rounds.
		t.rebuild(next, next)
	}
	if size := t.count(next); size < bestSize {
		best, bestSize = next, size
	}
	if len(t.sample) > 0 {
		best.gain = 1 - float64(bestSize)/float64(len(t.sample))
	}
	return best
}

// Measure returns the encoded size over the plain size of a sample of data, for
// an encoder that was trained on other data.
func (t *Trainer) Measure(e *Encoder, data []byte, offsets []uint32) float64 {
	t.draw(data, offsets)
	if len(t.sample) == 0 {
		return 1
	}
	size, start := 0, 0
	for _, end := range t.ends {
		for pos := start; pos < end; {
			_, n, esc := e.match(tailWord(t.sample[pos:end]), end-pos)
			size++
			if esc {
				size++
			}
			pos += n
		}
		start = end
	}
	return float64(size) / float64(len(t.sample))
}

// draw takes clusters of neighbouring values from all over data.
func (t *Trainer) draw(data []byte, offsets []uint32) {
	t.sample, t.ends = t.sample[:0], t.ends[:0]
	if len(offsets) < 2 {
		return
	}
	first, total := uint64(offsets[0]), uint64(offsets[len(offsets)-1]-offsets[0])
	value := 0
	for cluster := range uint64(sampleClusters) {
		at := uint32(first + total*cluster/sampleClusters)
		for value < len(offsets)-2 && offsets[value+1] <= at {
			value++
		}
		for left := clusterBytes; left > 0 && value < len(offsets)-1; value++ {
			from, to := offsets[value], offsets[value+1]
			if from < at && to-from > clusterBytes {
				from = at // the middle of a long value
			}
			n := min(int(to-from), left)
			if n > 0 {
				t.sample = append(t.sample, data[from:int(from)+n]...)
				t.ends = append(t.ends, len(t.sample))
			}
			if left -= n; left == 0 && int(to-from) > n {
				break // the next cluster may begin in this value too
			}
		}
	}
}

// count encodes the sample and counts codes and pairs of codes. It returns the
// encoded size.
func (t *Trainer) count(e *Encoder) int {
	t.single = [trainCodes]uint16{}
	for _, p := range t.seen {
		t.pairs[p/trainCodes][p%trainCodes] = 0
	}
	t.seen = t.seen[:0]
	size, start := 0, 0
	for _, end := range t.ends {
		prev := -1
		for pos := start; pos < end; {
			c, n, esc := e.match(tailWord(t.sample[pos:end]), end-pos)
			code := int(c)
			size++
			if esc {
				size++
			} else {
				code += 256
			}
			t.single[code]++
			if prev >= 0 {
				t.countPair(prev, code)
			}
			if n > 1 {
				// A longer symbol hides its first byte; let that be found too.
				first := int(t.sample[pos])
				t.single[first]++
				if prev >= 0 {
					t.countPair(prev, first)
				}
			}
			prev = code
			pos += n
		}
		start = end
	}
	return size
}

func (t *Trainer) countPair(a, b int) {
	p := &t.pairs[a][b]
	if *p == 0 {
		t.seen = append(t.seen, uint32(a*trainCodes+b))
	}
	*p++
}

// rebuild fills next with the symbols that the counts, made with old, speak for.
// next may be old.
func (t *Trainer) rebuild(next, old *Encoder) {
	if t.candidates == nil {
		t.candidates = make(map[symbol]uint32)
	}
	clear(t.candidates)
	symbolOf := func(code int) symbol {
		if code < 256 {
			return symbol{val: uint64(code), len: 1}
		}
		return old.symbols[code-256]
	}
	for code, n := range t.single[:256+len(old.symbols)] {
		if n == 0 {
			continue
		}
		s := symbolOf(code)
		// An escaped byte costs two; favouring single bytes keeps escapes, which
		// are also slow, rare.
		weight := uint32(s.len)
		if s.len == 1 {
			weight = 8
		}
		t.candidates[s] += uint32(n) * weight
	}
	for _, p := range t.seen {
		a, b := int(p/trainCodes), int(p%trainCodes)
		n := t.pairs[a][b]
		left := symbolOf(a)
		if n < minCount || left.len == maxSymbol {
			continue
		}
		right := symbolOf(b)
		s := symbol{val: left.val | right.val<<(8*left.len), len: min(left.len+right.len, maxSymbol)}
		t.candidates[s] += uint32(n) * uint32(s.len)
	}
	t.ranked = t.ranked[:0]
	for s, gain := range t.candidates {
		t.ranked = append(t.ranked, candidate{s, gain})
	}
	// Ties are broken by the symbol, so that the table does not depend on the
	// order of the map.
	slices.SortFunc(t.ranked, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.gain, a.gain), cmp.Compare(a.symbol.len, b.symbol.len), cmp.Compare(a.symbol.val, b.symbol.val))
	})
	next.clear()
	for _, c := range t.ranked {
		if len(next.symbols) == maxSymbols {
			break
		}
		next.add(c.symbol)
	}
}
