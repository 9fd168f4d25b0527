package workload

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// state is a version of a table, as a rule for making its rows: nothing that grows with
// them is kept.
type state struct {
	version uint64
	step    string
	rows    int // written, deleted ones included
	columns []*shape
	dead    []func(id int64) bool
}

// shape is a column as it is in some versions. It is immutable: a change makes another.
type shape struct {
	field arrow.Field
	// at gives the values of n rows of whole fragments, as they are written.
	at    func(first, n int) arrow.Array
	shown func(arrow.Array) arrow.Array // nil if as written
	blob  bool
}

func newState(t Table) *state {
	s := &state{columns: []*shape{{field: arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, at: ids}}}
	for i, c := range t.Columns {
		s.columns = append(s.columns, &shape{field: c.field(), shown: c.Shown, blob: c.Blob,
			at: func(first, n int) arrow.Array { return t.values(i, first, n) }})
	}
	return s
}

func (s *state) clone() *state {
	c := *s
	c.columns, c.dead = slices.Clone(s.columns), slices.Clone(s.dead)
	return &c
}

// record is n rows of whole fragments.
func (s *state) record(first, n int) arrow.RecordBatch {
	fields := make([]arrow.Field, len(s.columns))
	values := make([]arrow.Array, len(s.columns))
	for i, c := range s.columns {
		fields[i], values[i] = c.field, c.at(first, n)
		defer values[i].Release()
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), values, int64(n))
}

// replace puts another column into the place of the named one: its values are made of
// the old ones, from the given row on.
func (s *state) replace(name, as string, change func(old arrow.Array, first int) arrow.Array) {
	i := slices.IndexFunc(s.columns, func(c *shape) bool { return c.field.Name == name })
	old := s.columns[i]
	c := *old
	c.field.Name = as
	if change != nil {
		c.at = func(first, n int) arrow.Array {
			before := old.at(first, n)
			defer before.Release()
			return change(before, first)
		}
		none := c.at(0, 0)
		c.field.Type = none.DataType()
		none.Release()
	}
	s.columns[i] = &c
}

func (s *state) isDead(id int64) bool {
	return slices.ContainsFunc(s.dead, func(dead func(int64) bool) bool { return dead(id) })
}

// mapInt64 makes an array of an array of int64, value by value; not ok is null.
func mapInt64(a arrow.Array, f func(i int, v int64, ok bool) (int64, bool)) arrow.Array {
	from := a.(*array.Int64)
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	b.Reserve(from.Len())
	for i := range from.Len() {
		if v, ok := f(i, from.Value(i), from.IsValid(i)); ok {
			b.UnsafeAppend(v)
		} else {
			b.UnsafeAppendBoolToBitmap(false)
		}
	}
	return b.NewArray()
}

func widen(from *array.Int32) arrow.Array {
	b := array.NewInt64Builder(memory.DefaultAllocator)
	defer b.Release()
	for i := range from.Len() {
		if from.IsNull(i) {
			b.AppendNull()
		} else {
			b.Append(int64(from.Value(i)))
		}
	}
	return b.NewArray()
}

func nulls(dt arrow.DataType, n int) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, dt)
	defer b.Release()
	b.AppendNulls(n)
	return b.NewArray()
}
