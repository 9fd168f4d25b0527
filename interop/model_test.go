package interop_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/interop"
)

// row is one row of the tables that the index scenarios work on. Every column
// carries one family of index kinds.
type row struct {
	id   int64
	n    *int64  // BTree, zone map, Bloom filter
	cat  *string // bitmap: few values
	txt  string  // full text
	sub  string  // substring indexes
	tags []string
	vec  []float32
}

const dim = 16

var words = []string{"alpha", "bravo", "gamma", "delta", "kilo", "zulu", "tango", "theta"}

// newRow makes the row with the given id, always the same one.
func newRow(id int64) row {
	r := row{
		id:  id,
		txt: fmt.Sprintf("%s %s w%d", words[id%8], words[(id/8)%8], id),
		sub: fmt.Sprintf("sub%d", id),
		vec: make([]float32, dim),
	}
	if id%23 != 0 {
		r.n = ptr((id * 7919) % 5003)
	}
	if id%50 != 0 {
		r.cat = ptr(fmt.Sprintf("c%d", id%7))
	}
	if id%60 != 0 {
		r.tags = []string{fmt.Sprintf("t%d", id%5), fmt.Sprintf("u%d", id%3)}
	}
	rng := rand.New(rand.NewPCG(uint64(id), 1))
	for i := range r.vec {
		r.vec[i] = float32(rng.IntN(2048)-1024) / 1024
	}
	return r
}

func ptr[T any](v T) *T { return &v }

func newRows(from, to int64) []row {
	rows := make([]row, 0, to-from)
	for id := from; id < to; id++ {
		rows = append(rows, newRow(id))
	}
	return rows
}

// schema is the tables' schema; the list column is there only if asked for.
func schema(withTags bool) *arrow.Schema {
	fields := []arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "cat", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "txt", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "sub", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "vec", Type: arrow.FixedSizeListOf(dim, arrow.PrimitiveTypes.Float32), Nullable: true},
	}
	if withTags {
		fields = append(fields, arrow.Field{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// record lays rows out in the schema. The caller releases it.
func record(s *arrow.Schema, rows []row) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s)
	defer b.Release()
	for _, r := range rows {
		b.Field(0).(*array.Int64Builder).Append(r.id)
		if r.n == nil {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.Int64Builder).Append(*r.n)
		}
		if r.cat == nil {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.StringBuilder).Append(*r.cat)
		}
		b.Field(3).(*array.StringBuilder).Append(r.txt)
		b.Field(4).(*array.StringBuilder).Append(r.sub)
		v := b.Field(5).(*array.FixedSizeListBuilder)
		v.Append(true)
		v.ValueBuilder().(*array.Float32Builder).AppendValues(r.vec, nil)
		if s.NumFields() < 7 {
			continue
		}
		l := b.Field(6).(*array.ListBuilder)
		if r.tags == nil {
			l.AppendNull()
			continue
		}
		l.Append(true)
		for _, tag := range r.tags {
			l.ValueBuilder().(*array.StringBuilder).Append(tag)
		}
	}
	return b.NewRecordBatch()
}

// model is what a table must hold.
type model struct {
	schema *arrow.Schema
	rows   map[int64]row
	// canon is each row as JSON, to compare with.
	canon map[int64]string
	// dead are ids that were deleted and not added again.
	dead map[int64]row
}

func newModel(withTags bool) *model {
	return &model{schema: schema(withTags), rows: map[int64]row{}, canon: map[int64]string{}, dead: map[int64]row{}}
}

func (m *model) clone() *model {
	return &model{schema: m.schema, rows: maps.Clone(m.rows), canon: maps.Clone(m.canon), dead: maps.Clone(m.dead)}
}

func (m *model) put(rows ...row) {
	rec := record(m.schema, rows)
	defer rec.Release()
	lines, err := rowsOf([]arrow.RecordBatch{rec}, columnNames(m.schema))
	if err != nil {
		panic(err) // the model's own rows
	}
	for i, r := range rows {
		m.rows[r.id] = r
		m.canon[r.id] = lines[i].json
		delete(m.dead, r.id)
	}
}

func (m *model) delete(match func(row) bool) {
	for id, r := range m.rows {
		if match(r) {
			delete(m.rows, id)
			delete(m.canon, id)
			m.dead[id] = r
		}
	}
}

// update replaces the matching rows by what change makes of them.
func (m *model) update(match func(row) bool, change func(*row)) {
	var changed []row
	for _, r := range m.rows {
		if match(r) {
			change(&r)
			changed = append(changed, r)
		}
	}
	if len(changed) > 0 {
		m.put(changed...)
	}
}

// ids returns the ids of the matching rows, ascending.
func (m *model) ids(match func(row) bool) []int64 {
	var out []int64
	for id, r := range m.rows {
		if match(r) {
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return out
}

// nearest returns the k nearest live rows, nearest first, and their distances.
func (m *model) nearest(q []float32, k int) (ids []int64, distances []float64) {
	type hit struct {
		id int64
		d  float64
	}
	hits := make([]hit, 0, len(m.rows))
	for id, r := range m.rows {
		hits = append(hits, hit{id, squaredL2(q, r.vec)})
	}
	slices.SortFunc(hits, func(a, b hit) int {
		if a.d != b.d {
			if a.d < b.d {
				return -1
			}
			return 1
		}
		return int(a.id - b.id)
	})
	for _, h := range hits[:min(k, len(hits))] {
		ids = append(ids, h.id)
		distances = append(distances, h.d)
	}
	return ids, distances
}

func squaredL2(a, b []float32) float64 {
	var d float64
	for i := range a {
		x := float64(a[i]) - float64(b[i])
		d += x * x
	}
	return d
}

// answerRow is a returned row: its id, its columns as JSON, and its distance if
// the answer has any.
type answerRow struct {
	id       int64
	json     string
	distance float64
}

// rowsOf writes the named columns of the batches as JSON, a row each.
func rowsOf(batches []arrow.RecordBatch, columns []string) ([]answerRow, error) {
	var out []answerRow
	for _, b := range batches {
		part, err := rowsOfBatch(b, columns)
		if err != nil {
			return nil, err
		}
		out = append(out, part...)
	}
	return out, nil
}

func rowsOfBatch(b arrow.RecordBatch, columns []string) ([]answerRow, error) {
	fields := make([]arrow.Field, len(columns))
	cols := make([]arrow.Array, len(columns))
	for i, name := range columns {
		at := b.Schema().FieldIndices(name)
		if len(at) != 1 {
			return nil, fmt.Errorf("answer has %d columns %q: %s", len(at), name, b.Schema())
		}
		fields[i], cols[i] = b.Schema().Field(at[0]), b.Column(at[0])
	}
	part := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, b.NumRows())
	defer part.Release()
	enc, err := rowjson.New(part.Schema(), rowjson.Raw)
	if err != nil {
		return nil, err
	}
	ids, ok := part.Column(0).(*array.Int64)
	if !ok {
		return nil, fmt.Errorf("column %q is %s, want int64", columns[0], part.Column(0).DataType())
	}
	out := make([]answerRow, b.NumRows())
	for i := range out {
		line, err := enc.AppendRow(nil, part, i, nil)
		if err != nil {
			return nil, err
		}
		out[i] = answerRow{id: ids.Value(i), json: string(line)}
	}
	if at := b.Schema().FieldIndices("_distance"); len(at) == 1 {
		d, ok := b.Column(at[0]).(*array.Float32)
		if !ok {
			return nil, fmt.Errorf("_distance is %s, want float", b.Column(at[0]).DataType())
		}
		for i := range out {
			out[i].distance = float64(d.Value(i))
		}
	}
	return out, nil
}

func columnNames(s *arrow.Schema) []string {
	names := make([]string, s.NumFields())
	for i, f := range s.Fields() {
		names[i] = f.Name
	}
	return names
}

// columnOf is the column that an index of the kind is built on.
func columnOf(kind interop.IndexKind) string {
	switch kind {
	case interop.BTree, interop.ZoneMap, interop.BloomFilter:
		return "n"
	case interop.Bitmap:
		return "cat"
	case interop.LabelList:
		return "tags"
	case interop.FTS:
		return "txt"
	case interop.FM, interop.NGram:
		return "sub"
	default:
		return "vec"
	}
}
