package dml

import (
	"context"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/table"
)

// Names that a condition may look at as if they were columns, unless the table has
// columns of these names. Both are unsigned numbers of 64 bits, and never null.
const (
	// RowAddrColumn is a row's address, the fragment's id times 2^32 plus the offset.
	RowAddrColumn = "_rowaddr"
	// RowIDColumn is a row's stable id, in a table without such its address.
	RowIDColumn = "_rowid"
)

// Positions makes the records of a scan have the columns [RowAddrColumn] and
// [RowIDColumn] that a condition looks at. The zero value adds none. It is safe for
// concurrent use.
type Positions struct {
	snapshot *table.Snapshot
	names    []string
	from     table.RowIdentifier // nil: the id is the address
}

// NewPositions sorts what a predicate looks at into columns to read and positions. It is
// table.ErrUnsupported if the rows have ids and the engine cannot tell them.
func NewPositions(e table.Engine, s *table.Snapshot, looksAt []string) (Positions, []string, error) {
	p := Positions{snapshot: s}
	var read []string
	for _, name := range looksAt {
		if isPosition(s.Schema, name) {
			p.names = append(p.names, name)
		} else {
			read = append(read, name)
		}
	}
	if s.StableRowIDs && slices.Contains(p.names, RowIDColumn) {
		from, ok := table.As[table.RowIdentifier](e)
		if !ok {
			return p, nil, table.Unsupportedf("dml: table %s version %d has stable row ids, and its engine cannot tell them: a condition cannot look at %s", s.Table, s.Version, RowIDColumn)
		}
		p.from = from
	}
	return p, read, nil
}

// isPosition says whether a name that a predicate looks at is that of no column but of a
// position.
func isPosition(s table.Schema, name string) bool {
	_, column := s.Field(name)
	return !column && (name == RowAddrColumn || name == RowIDColumn)
}

// Any says whether there is a position to add, for which a scan needs the addresses of
// the rows.
func (p Positions) Any() bool { return len(p.names) > 0 }

// Add returns the record of a batch with the positions behind its columns. The caller
// releases it.
func (p Positions) Add(ctx context.Context, b table.Batch) (arrow.RecordBatch, error) {
	if !p.Any() {
		b.Record.Retain()
		return b.Record, nil
	}
	fields, columns := slices.Clone(b.Record.Schema().Fields()), slices.Clone(b.Record.Columns())
	for _, name := range p.names {
		values, err := p.values(ctx, name, b.Addrs)
		if err != nil {
			return nil, err
		}
		builder := array.NewUint64Builder(memory.DefaultAllocator)
		builder.AppendValues(values, nil)
		column := builder.NewArray()
		builder.Release()
		defer column.Release()
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Uint64})
		columns = append(columns, column)
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, b.Record.NumRows()), nil
}

func (p Positions) values(ctx context.Context, name string, addrs []table.RowAddr) ([]uint64, error) {
	out := make([]uint64, len(addrs))
	if name == RowAddrColumn || p.from == nil {
		for i, a := range addrs {
			out[i] = uint64(a)
		}
		return out, nil
	}
	ids, err := p.from.RowIdentities(ctx, p.snapshot, addrs)
	if err != nil {
		return nil, err
	}
	if len(ids) != len(addrs) {
		return nil, table.Corruptf("dml: table %s version %d: %d rows have %d row ids", p.snapshot.Table, p.snapshot.Version, len(addrs), len(ids))
	}
	for i, id := range ids {
		out[i] = uint64(id.ID)
	}
	return out, nil
}

// noPositions refuses a condition that looks at positions where rows have none: of two
// tables side by side, or of rows that come from a file.
func noPositions(s table.Schema, looksAt []string) error {
	for _, name := range looksAt {
		if isPosition(s, name) {
			return table.Unsupportedf("%s in the conditions of a merge", name)
		}
	}
	return nil
}
