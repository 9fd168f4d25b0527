package dml_test

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// TestSpecification runs the files in testdata/spec, which say what changes do, by
// example. The commands are
//
//	table                the columns, "name:type" or "name:type!" for one without
//	                     nulls, and the rows of the table that later commands change
//	merge KEY...         a merge of the rows that follow, each time into a fresh copy
//	                     of the table
//	delete, update       likewise
//
// and every change answers with the rows of the table and what it did.
func TestSpecification(t *testing.T) {
	datadriven.Walk(t, "testdata/spec", func(t *testing.T, path string) {
		var s spec
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "table":
				s.rows = nil
				s.schema = parseColumns(t, strings.Split(d.Input, "\n")[0])
				if rec := parseRows(t, s.schema, d.Input); rec.NumRows() > 0 {
					s.rows = append(s.rows, rec)
				}
				return show(t, s.table(t))
			case "merge":
				return s.run(t, d, s.merge(t, d))
			case "delete":
				return s.run(t, d, dml.Delete{Where: condition(t, argument(d, "where"))})
			case "update":
				return s.run(t, d, dml.Update{Where: condition(t, argument(d, "where")), Set: s.set(t, d)})
			default:
				t.Fatalf("no command %q", d.Cmd)
				return ""
			}
		})
	})
}

type spec struct {
	schema table.Schema
	rows   []arrow.RecordBatch
}

func (s spec) table(t *testing.T) *memengine.Engine {
	e := memengine.New("t", s.schema)
	_, err := dml.Execute(t.Context(), e, dml.Append{Rows: dml.Records(s.rows...)}, dml.Options{})
	require.NoError(t, err)
	return e
}

func (s spec) run(t *testing.T, _ *datadriven.TestData, c change) string {
	e := s.table(t)
	before := snapshot(t, e, 0).Version
	out, err := dml.Execute(t.Context(), e, c, dml.Options{})
	after := snapshot(t, e, 0).Version
	if err != nil {
		require.Equal(t, before, after)
		return "error: " + strings.TrimPrefix(err.Error(), fmt.Sprintf("dml: table t version %d: ", before)) + "\n"
	}
	require.Equal(t, out.Version, after)
	require.Equal(t, out.Committed, after > before)
	did := "nothing to change"
	if out.Committed {
		did = fmt.Sprintf("updated %d, inserted %d, deleted %d", out.Updated, out.Inserted, out.Deleted)
	}
	if out.SkippedDuplicates > 0 {
		did += fmt.Sprintf(", duplicates left out %d", out.SkippedDuplicates)
	}
	return show(t, e) + did + "\n"
}

func (s spec) merge(t *testing.T, d *datadriven.TestData) dml.MergeInsert {
	m := dml.MergeInsert{WhenNotMatched: dml.NotMatchedSkip}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "on":
			m.On = a.Vals
		case "matched":
			m.WhenMatched = map[string]dml.WhenMatched{"keep": dml.MatchedKeep, "update": dml.MatchedUpdate, "delete": dml.MatchedDelete, "fail": dml.MatchedFail}[a.Vals[0]]
		case "update-if":
			m.UpdateIf = condition(t, a.Vals[0])
		case "not-matched":
			m.WhenNotMatched = map[string]dml.WhenNotMatched{"insert": dml.NotMatchedInsert, "skip": dml.NotMatchedSkip}[a.Vals[0]]
		case "by-source":
			m.WhenNotMatchedBySource = map[string]dml.WhenNotMatchedBySource{"keep": dml.BySourceKeep, "delete": dml.BySourceDelete}[a.Vals[0]]
		case "delete-if":
			m.DeleteIf = condition(t, a.Vals[0])
		case "duplicates":
			m.Duplicates = map[string]dml.Duplicates{"fail": dml.DuplicatesFail, "first": dml.DuplicatesFirst}[a.Vals[0]]
		default:
			t.Fatalf("no clause %q", a.Key)
		}
	}
	m.Source = s.source(t, d.Input)
	return m
}

// source has columns of the table by their names; one with a type is what it says.
func (s spec) source(t *testing.T, input string) iter.Seq2[arrow.RecordBatch, error] {
	var columns table.Schema
	for _, word := range strings.Fields(strings.Split(input, "\n")[0]) {
		f, ok := s.schema.Field(word)
		if !ok {
			f = parseColumns(t, word).Fields[0]
		}
		f.Nullable = true
		columns.Fields = append(columns.Fields, f)
	}
	return dml.Records(parseRows(t, columns, input))
}

func (s spec) set(t *testing.T, d *datadriven.TestData) map[string]dml.Expr {
	out := map[string]dml.Expr{}
	for _, a := range d.CmdArgs {
		if a.Key != "set" {
			continue
		}
		for _, v := range a.Vals {
			name, value, _ := strings.Cut(v, ":=")
			out[name] = operand(value)
		}
	}
	return out
}

func argument(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals[0]
		}
	}
	return ""
}

var types = map[string]arrow.DataType{
	"int64": arrow.PrimitiveTypes.Int64, "int32": arrow.PrimitiveTypes.Int32, "float": arrow.PrimitiveTypes.Float64,
	"string": arrow.BinaryTypes.String, "bool": arrow.FixedWidthTypes.Boolean, "list": arrow.ListOf(arrow.PrimitiveTypes.Int64),
	"decimal": &arrow.Decimal128Type{Precision: 10, Scale: 2}, "date": arrow.FixedWidthTypes.Date32, "binary": arrow.BinaryTypes.Binary,
	"dictionary": &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
}

// parseColumns reads "name:type", with "!" for one without nulls and "*" for a part
// of the declared primary key.
func parseColumns(t *testing.T, line string) (s table.Schema) {
	for i, word := range strings.Fields(line) {
		name, kind, ok := strings.Cut(word, ":")
		require.True(t, ok, "%q is no name:type", word)
		f := table.Field{ID: int32(i), Name: name}
		if kind, ok = strings.CutSuffix(kind, "*"); ok {
			f.Metadata = map[string]string{"lance-schema:unenforced-primary-key": "true"}
		}
		kind, ok = strings.CutSuffix(kind, "!")
		f.Nullable = !ok
		f.Type, ok = types[kind]
		require.True(t, ok, "no type %q", kind)
		s.Fields = append(s.Fields, f)
	}
	return s
}

// parseRows reads the rows after the first line.
func parseRows(t *testing.T, s table.Schema, input string) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, s.Arrow())
	defer b.Release()
	for _, line := range strings.Split(input, "\n")[1:] {
		words := strings.Fields(line)
		require.Len(t, words, len(s.Fields), "%q", line)
		for i, w := range words {
			if w == "null" {
				b.Field(i).AppendNull()
			} else {
				require.NoError(t, b.Field(i).AppendValueFromString(strings.Trim(w, `"`)))
			}
		}
	}
	return b.NewRecordBatch()
}

// show prints the rows in table order.
func show(t *testing.T, e table.Engine) string {
	var out strings.Builder
	s := snapshot(t, e, 0)
	var ids []table.FragmentID
	for _, f := range s.Fragments {
		ids = append(ids, f.ID)
	}
	for b, err := range e.Rows(t.Context(), s, ids, table.ReadOptions{}) {
		require.NoError(t, err)
		for i := range int(b.Record.NumRows()) {
			for c, col := range b.Record.Columns() {
				if c > 0 {
					out.WriteByte(' ')
				}
				switch v := col.ValueStr(i); {
				case col.IsNull(i):
					out.WriteString("null")
				case v == "":
					out.WriteString(`""`)
				default:
					out.WriteString(v)
				}
			}
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// condition reads "a<b", "a>b" or "a=b" of columns and literals; "" is no condition.
func condition(t *testing.T, text string) dml.Predicate {
	if text == "" {
		return nil
	}
	at := strings.IndexAny(text, "<>=")
	require.Positive(t, at, "%q is no condition", text)
	left, right, op := operand(text[:at]), operand(text[at+1:]), text[at]
	return conditionOf{left, right, op}
}

type conditionOf struct {
	left, right dml.Expr
	op          byte
}

func (c conditionOf) Columns(s table.Schema) (out []string, err error) {
	for _, x := range []dml.Expr{c.left, c.right} {
		names, err := x.Columns(s)
		if err != nil {
			return nil, err
		}
		out = append(out, names...)
	}
	return out, nil
}

func (c conditionOf) Matches(ctx context.Context, rec arrow.RecordBatch) (*array.Boolean, error) {
	left, err := c.left.Eval(ctx, rec)
	if err != nil {
		return nil, err
	}
	right, err := c.right.Eval(ctx, rec)
	if err != nil {
		return nil, err
	}
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	for i := range int(rec.NumRows()) {
		if left.IsNull(i) || right.IsNull(i) {
			b.AppendNull()
			continue
		}
		x, y := left.ValueStr(i), right.ValueStr(i)
		fx, errX := strconv.ParseFloat(x, 64)
		fy, errY := strconv.ParseFloat(y, 64)
		switch {
		case c.op == '=':
			b.Append(x == y)
		case errX == nil && errY == nil:
			b.Append(c.op == '<' && fx < fy || c.op == '>' && fx > fy)
		default:
			b.Append(c.op == '<' && x < y || c.op == '>' && x > y)
		}
	}
	return b.NewBooleanArray(), nil
}

// operand is a column if its name is one, else text; "null" is null.
func operand(word string) dml.Expr { return operandOf(word) }

type operandOf string

func (o operandOf) Columns(s table.Schema) ([]string, error) {
	if _, ok := s.Field(string(o)); ok {
		return []string{string(o)}, nil
	}
	if strings.Contains(string(o), ".") {
		return nil, fmt.Errorf("no column %q: %w", string(o), table.ErrNotFound)
	}
	return nil, nil
}

func (o operandOf) Eval(_ context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
	if at := rec.Schema().FieldIndices(string(o)); len(at) > 0 {
		rec.Column(at[0]).Retain()
		return rec.Column(at[0]), nil
	}
	if o == "null" {
		return array.NewNull(int(rec.NumRows())), nil
	}
	b := array.NewStringBuilder(memory.DefaultAllocator)
	for range rec.NumRows() {
		b.Append(string(o))
	}
	return b.NewArray(), nil
}
