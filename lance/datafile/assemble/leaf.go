package assemble

import (
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// leafReader takes rows from a source and gathers them.
type leafReader struct {
	leaf    schema.Leaf
	present bool // else the leaf has no source
	next    func() (*level.Block, error, bool)
	stop    func()

	block             *level.Block
	row, entry, value int
	maxRep            uint16
	maxVisible        uint16

	layers []level.Layer // that slots are prepared for
	slots  []slots
	values values
}

func newLeafReader(mem memory.Allocator, leaf schema.Leaf, source Source) *leafReader {
	r := &leafReader{leaf: leaf, stop: func() {}}
	if source == nil {
		return r
	}
	r.present = true
	r.next, r.stop = iter.Pull2(source)
	if leaf.Described {
		leaf.Type = schema.BlobValues
		r.leaf.Type = schema.BlobValues
	}
	r.slots = newSlots(leaf.Layers)
	r.values = newValues(mem, leaf.Type)
	r.maxRep = level.MaxRep(leaf.Layers)
	return r
}

// elastic says that rows of the leaf differ in size, or that their dictionary is
// sure to have room for those of one page only.
func (r *leafReader) elastic() bool {
	return r.maxRep > 0 || r.leaf.Type.Kind == level.Variable || r.leaf.Dictionary != nil
}

// atMost returns how many of the next n rows fit into a batch: of a leaf whose
// rows differ in size only those of the current block, which the block's own
// bound then bounds.
func (r *leafReader) atMost(n int) (int, error) {
	if !r.present {
		return n, nil
	}
	if err := r.fill(); err != nil {
		return 0, err
	}
	if r.elastic() {
		return min(n, r.block.Rows-r.row), nil
	}
	if size := r.leaf.Type.ValueBits() / 8; size > 0 {
		return min(n, max(batchBytes/size, 1)), nil
	}
	return n, nil
}

// fill makes sure that the current block has a row left.
func (r *leafReader) fill() error {
	for r.block == nil || r.row == r.block.Rows {
		b, err, ok := r.next()
		if err != nil {
			return err
		}
		if !ok {
			return table.Corruptf("assemble: column %q ends before the rows that it should have", r.leaf.Path)
		}
		if err := r.begin(b); err != nil {
			return err
		}
	}
	return nil
}

// begin makes b the current block. Blocks of this module's readers are sound;
// checking again keeps a faulty source from reaching into nowhere.
func (r *leafReader) begin(b *level.Block) error {
	if b.Type != r.leaf.Type || len(b.Layers) != len(r.slots) {
		return table.Corruptf("assemble: column %q: a block of %+v, want %+v", r.leaf.Path, b.Type, r.leaf.Type)
	}
	for i := range b.Layers {
		if b.Layers[i].IsList() != r.slots[i].list {
			return table.Corruptf("assemble: column %q: a block with the layers %v", r.leaf.Path, b.Layers)
		}
	}
	if _, err := level.NewCursor(b); err != nil {
		return err
	}
	maxDef := level.MaxDef(b.Layers)
	for _, d := range b.Def {
		if d > maxDef {
			return table.Corruptf("assemble: column %q: definition level %d, the largest is %d", r.leaf.Path, d, maxDef)
		}
	}
	r.block, r.row, r.entry, r.value = b, 0, 0, 0
	r.maxVisible = level.MaxVisibleDef(b.Layers)
	if !slices.Equal(r.layers, b.Layers) {
		r.layers = append(r.layers[:0], b.Layers...)
		interpret(r.slots, b.Layers)
	}
	return nil
}

// take gathers n rows.
func (r *leafReader) take(n int) error {
	for i := range r.slots {
		r.slots[i].reset()
	}
	r.values.reset()
	for n > 0 {
		if err := r.fill(); err != nil {
			return err
		}
		k := min(n, r.block.Rows-r.row)
		if err := r.takeBlock(k); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// takeBlock gathers n rows, which the current block has.
func (r *leafReader) takeBlock(n int) error {
	b := r.block
	entries := n
	if r.maxRep > 0 {
		entries = r.entriesOf(n)
	}
	end := r.entry + entries
	var rep, def []uint16
	if b.Rep != nil {
		rep = b.Rep[r.entry:end]
	}
	visible := entries
	if b.Def != nil {
		def = b.Def[r.entry:end]
		if r.maxRep > 0 {
			visible = 0
			for _, d := range def {
				if d <= r.maxVisible {
					visible++
				}
			}
		}
	}
	if r.value+visible > b.Values.N {
		return table.Corruptf("assemble: column %q: a block of %d values has more visible entries", r.leaf.Path, b.Values.N)
	}
	for i := range r.slots {
		s := &r.slots[i]
		if rep == nil && def != nil {
			s.addItems(def)
		} else {
			s.add(rep, def, entries)
		}
	}
	if err := r.values.add(&b.Values, r.value, r.value+visible); err != nil {
		return err
	}
	r.row, r.entry, r.value = r.row+n, end, r.value+visible
	return nil
}

// entriesOf returns how many entries the next n rows have.
func (r *leafReader) entriesOf(n int) int {
	rep := r.block.Rep[r.entry:]
	if r.row+n == r.block.Rows {
		return len(rep)
	}
	begun := 0
	for i, v := range rep {
		if v == r.maxRep {
			if begun == n {
				return i
			}
			begun++
		}
	}
	return len(rep)
}
