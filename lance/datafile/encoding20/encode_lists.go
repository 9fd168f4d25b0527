package encoding20

import (
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/table"
)

// Lists takes blocks of a leaf apart into the ends of the lists around it, of which
// the values are the items. It gathers the ends until [Lists.Page] is asked for them.
type Lists struct {
	ends [][]uint64 // outermost first
	n    []uint64   // items of each since its page began
}

// isNull marks the end of a null list while it is being gathered.
const isNull = 1 << 63

// Add takes a block apart. It returns which value slots are null, 1 for null, or nil
// for none. That a struct is null is ErrUnsupported: the format cannot store it.
func (l *Lists) Add(b *level.Block) (null []uint16, err error) {
	m := int(level.MaxRep(b.Layers))
	if l.ends == nil {
		l.ends, l.n = make([][]uint64, m), make([]uint64, m)
	}
	of := meanings(b.Layers)
	if m == 0 {
		for _, d := range b.Def {
			if d > 1 || d == 1 && of[1].kind != nullItem {
				return nil, nullStruct()
			}
		}
		return b.Def, nil
	}
	if b.Def != nil {
		null = make([]uint16, 0, b.Values.N)
	}
	for i, rep := range b.Rep {
		var is meaning
		if b.Def != nil {
			d := b.Def[i]
			if int(d) >= len(of) {
				return nil, table.Corruptf("encoding: definition level %d, the largest is %d", d, len(of)-1)
			}
			is = of[d]
			switch is.kind {
			case nullParent:
				return nil, nullStruct()
			case there, nullItem:
				null = append(null, d)
			}
		}
		if int(rep) > m || is.rank > int(rep) {
			return nil, table.Corruptf("encoding: repetition level %d in a path of %d lists", rep, m)
		}
		if k := m - 1 - int(rep); k >= 0 {
			if len(l.ends[k]) == 0 {
				return nil, table.Corruptf("encoding: a block that does not begin with a row")
			}
			l.grow(k)
		}
		for rank := int(rep); rank > 0 && rank >= is.rank; rank-- {
			l.begin(m-rank, rank == is.rank, is.kind == absentNull)
		}
	}
	return null, nil
}

// grow adds an item to the list of a column that is open.
func (l *Lists) grow(k int) {
	l.n[k]++
	l.ends[k][len(l.ends[k])-1] = l.n[k]
}

// begin begins a list in a column: with one item, or absent.
func (l *Lists) begin(k int, absent, null bool) {
	end := l.n[k]
	switch {
	case absent && null:
		end |= isNull
	case !absent:
		l.n[k]++
		end++
	}
	l.ends[k] = append(l.ends[k], end)
}

// Len returns how many lists were gathered of a column, counted from the outermost.
func (l *Lists) Len(k int) int {
	if l.ends == nil {
		return 0
	}
	return len(l.ends[k])
}

// Drop forgets what was gathered of a column.
func (l *Lists) Drop(k int) {
	if l.ends != nil {
		l.ends[k], l.n[k] = l.ends[k][:0], 0
	}
}

// Page makes a page of the lists that were gathered of a column, counted from the
// outermost.
func (l *Lists) Page(k int) Encoded {
	p := &page{}
	null := l.n[k] + 1
	e := &enc20pb.List{Offsets: noNulls(p.flat(64, adjusted(l.ends[k], null))), NullOffsetAdjustment: null, NumItems: l.n[k]}
	return Encoded{Values: uint64(len(l.ends[k])), Buffers: p.buffers,
		Encoding: &enc20pb.ArrayEncoding{ArrayEncoding: &enc20pb.ArrayEncoding_List{List: e}}}
}

// adjusted writes ends as they are stored.
func adjusted(ends []uint64, null uint64) []byte {
	out := make([]byte, 8*len(ends))
	for i, end := range ends {
		if end&isNull != 0 {
			end = end&^isNull + null
		}
		binary.LittleEndian.PutUint64(out[8*i:], end)
	}
	return out
}

// meaning is what a definition level means.
type meaning struct {
	kind absence
	rank int // of the list, 1 for the innermost
}

type absence int

const (
	there absence = iota
	nullItem
	nullParent // a struct
	absentNull
	absentEmpty
)

// meanings returns what the definition levels of layers mean.
func meanings(layers []level.Layer) []meaning {
	out := []meaning{{}}
	rank := 0
	for i, l := range layers {
		if l.IsList() {
			rank++
		}
		switch l {
		case level.NullableItem:
			if i == 0 {
				out = append(out, meaning{kind: nullItem})
			} else {
				out = append(out, meaning{kind: nullParent})
			}
		case level.NullableList:
			out = append(out, meaning{absentNull, rank})
		case level.EmptyableList:
			out = append(out, meaning{absentEmpty, rank})
		case level.NullAndEmptyList:
			out = append(out, meaning{absentNull, rank}, meaning{absentEmpty, rank})
		}
	}
	return out
}

func nullStruct() error {
	return table.Unsupportedf("encoding: a struct is null, which format 2.0 cannot store: only its fields can be")
}
