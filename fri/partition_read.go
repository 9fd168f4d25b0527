package fri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rehome-db/rehome/table"
)

const (
	// maxLabelBlocks is how many blocks of labels of one partition are held, at
	// about 390 KiB each: a batch of addresses in any order meets blocks again.
	maxLabelBlocks = 32
	// maxLabelRun bounds how far a lookup looks for rows that share its fate.
	maxLabelRun = 64
)

// labels is the rowMap of a stable partition. It opens the label file when the first
// row is asked for, and reads one block for a row, which it holds until others have
// taken its place. Errors are not held: the next lookup tries again.
type labels struct {
	sources      []Digest
	destinations []Digest
	ref          PartitionRef
	from         *labelSource

	opened atomic.Pointer[openedLabels]
	mu     sync.Mutex // held while opening or reading a block
	held   []int      // blocks in memory, the oldest first
}

type openedLabels struct {
	file   PartitionMap
	counts *Counts
	blocks []atomic.Pointer[ranked]
}

// ranked is a block of labels that was checked. places[i] is the offset of row i in
// its destination.
type ranked struct {
	LabelBlock
	places []uint32
}

func newLabels(from *labelSource, t *Transition) *labels {
	return &labels{sources: t.sources, destinations: t.destinations, ref: t.partition, from: from}
}

func (l *labels) isOf(t *Transition) bool {
	return l.ref == t.partition && slices.Equal(l.sources, t.sources) && slices.Equal(l.destinations, t.destinations)
}

func (l *labels) row(k uint64) (addr table.RowAddr, live bool, n uint64, err error) {
	o := l.opened.Load()
	if o == nil {
		if o, err = l.load(); err != nil {
			return 0, false, 1, err
		}
	}
	i := int(k / o.counts.blockRows)
	b := o.blocks[i].Load()
	if b == nil {
		if b, err = l.read(o, i); err != nil {
			return 0, false, 1, err
		}
	}
	at := int(k % o.counts.blockRows)
	live = b.live(at)
	end := min(at+maxLabelRun, len(b.Labels))
	next := at + 1
	if !live {
		for next < end && !b.live(next) {
			next++
		}
		return 0, false, uint64(next - at), nil
	}
	label := b.Labels[at]
	for next < end && b.Labels[next] == label && b.live(next) {
		next++
	}
	return table.NewRowAddr(l.destinations[label].ID, b.places[at]), true, uint64(next - at), nil
}

// load opens the file and checks its counts.
func (l *labels) load() (*openedLabels, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if o := l.opened.Load(); o != nil {
		return o, nil
	}
	file, err := l.from.open(l.from.ctx, l.ref)
	if err != nil {
		return nil, l.failed(err)
	}
	counts, err := file.Counts(l.from.ctx)
	if err != nil {
		return nil, l.failed(err)
	}
	if err := counts.agree(l.sources, l.destinations); err != nil {
		return nil, l.failed(err)
	}
	o := &openedLabels{file: file, counts: counts, blocks: make([]atomic.Pointer[ranked], counts.Blocks())}
	l.opened.Store(o)
	return o, nil
}

// read gets a block and checks it.
func (l *labels) read(o *openedLabels, i int) (*ranked, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := o.blocks[i].Load(); b != nil {
		return b, nil
	}
	from, to := o.counts.Block(i)
	block, err := o.file.Labels(l.from.ctx, from, to)
	if err != nil {
		return nil, l.failed(fmt.Errorf("block %d: %w", i, err))
	}
	b, err := rank(o.counts, i, block)
	if err != nil {
		return nil, l.failed(err)
	}
	if len(l.held) == maxLabelBlocks {
		o.blocks[l.held[0]].Store(nil)
		l.held = l.held[1:]
	}
	l.held = append(l.held, i)
	o.blocks[i].Store(b)
	return b, nil
}

// CheckLabels reads all labels of a stable partition and checks them as a lookup
// does; nothing is kept. Of any other transition it checks nothing. An error is a
// [*TransitionError], also if reading failed.
func (t *Transition) CheckLabels(ctx context.Context, open PartitionSource) error {
	if t.mapping != StablePartition {
		return nil
	}
	l := newLabels(&labelSource{ctx, open}, t)
	o, err := l.load()
	if err != nil {
		return err
	}
	physical := uint64(0) // rows before the source
	source, live := 0, uint64(0)
	for i := range o.counts.Blocks() {
		from, to := o.counts.Block(i)
		block, err := o.file.Labels(ctx, from, to)
		if err != nil {
			return l.failed(fmt.Errorf("block %d: %w", i, err))
		}
		if _, err := rank(o.counts, i, block); err != nil {
			return l.failed(err)
		}
		for k := range block.Labels {
			if block.live(k) {
				live++
			}
			if s := t.sources[source]; from+uint64(k)+1 == physical+s.PhysicalRows {
				if live != s.LiveRows() {
					return l.failed(broken(RuleSurvivors, "%d rows of fragment %d have labels, its digest says %d", live, s.ID, s.LiveRows()))
				}
				source, physical, live = source+1, physical+s.PhysicalRows, 0
			}
		}
	}
	return nil
}

// failed makes a TransitionError of whatever it is, which callers place.
func (l *labels) failed(err error) error {
	var te *TransitionError
	if errors.As(err, &te) {
		named := *te
		named.err = fmt.Errorf("label file %s: %w", l.ref.MapID, te.err)
		return &named
	}
	return &TransitionError{Index: -1, Rule: RuleReadable, err: fmt.Errorf("label file %s: %w", l.ref.MapID, err)}
}

// rank places the rows of a block and checks that they are as many for each
// destination as the counts say.
func rank(c *Counts, i int, block LabelBlock) (*ranked, error) {
	from, to := c.Block(i)
	n := int(to - from)
	if len(block.Labels) != n {
		return nil, broken(RuleLabels, "block %d has %d labels and should have %d", i, len(block.Labels), n)
	}
	if block.Live != nil && len(block.Live) < (n+wordBits-1)/wordBits {
		return nil, broken(RuleLabels, "block %d has %d words that say which of %d rows are live", i, len(block.Live), n)
	}
	next := make([]uint32, c.destinations)
	copy(next, c.before(i))
	out := &ranked{LabelBlock: block, places: make([]uint32, n)}
	for k, label := range block.Labels {
		if !block.live(k) {
			continue
		}
		if int(label) >= len(next) {
			return nil, broken(RuleLabels, "row %d has label %d, and there are %d destinations", from+uint64(k), label, len(next))
		}
		out.places[k] = next[label]
		next[label]++
	}
	for d, through := range c.before(i + 1) {
		if next[d] != through {
			return nil, broken(RuleLabels, "after block %d destination %d has %d rows by the labels and %d by the counts", i, d, next[d], through)
		}
	}
	return out, nil
}

// noLabels is the rowMap of a stable partition in a history without a way to open its
// label file.
type noLabels struct{ ref PartitionRef }

func (m noLabels) row(uint64) (table.RowAddr, bool, uint64, error) {
	return 0, false, 1, &TransitionError{Index: -1, Rule: RuleReadable, err: fmt.Errorf("label file %s: the history was opened without a way to read it", m.ref.MapID)}
}
