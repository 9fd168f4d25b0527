package encoding

import (
	"errors"

	"github.com/rehome-db/rehome/lance/datafile/level"
)

// errStop says that the consumer wants no more blocks.
var errStop = errors.New("stop")

// emitter hands out blocks, cut to the rows that are wanted.
type emitter struct {
	from, to uint64 // wanted, in rows of the page
	row      uint64 // of the next block
	yield    func(*level.Block) bool

	cut *level.Builder
}

// done says whether all rows that are wanted were handed out.
func (e *emitter) done() bool { return e.row >= e.to }

// emit passes on what is wanted of b, which follows what was passed before.
func (e *emitter) emit(b *level.Block) error {
	start, end := e.row, e.row+uint64(b.Rows)
	e.row = end
	if end <= e.from || start >= e.to || b.Rows == 0 {
		return nil
	}
	if start < e.from || end > e.to {
		var err error
		if b, err = e.slice(b, int(max(e.from, start)-start), int(min(e.to, end)-start)); err != nil {
			return err
		}
	}
	if !e.yield(b) {
		return errStop
	}
	return nil
}

// slice copies the rows [from, to) of b. It happens at most twice a page, at the
// edges of a range.
func (e *emitter) slice(b *level.Block, from, to int) (*level.Block, error) {
	if e.cut == nil {
		var err error
		if e.cut, err = level.NewBuilder(b.Type, b.Layers); err != nil {
			return nil, err
		}
	}
	e.cut.Reset()
	c, err := level.NewCursor(b)
	if err != nil {
		return nil, err
	}
	if err := c.Skip(from); err != nil {
		return nil, err
	}
	if err := e.cut.Take(c, to-from); err != nil {
		return nil, err
	}
	return e.cut.Block(), nil
}
