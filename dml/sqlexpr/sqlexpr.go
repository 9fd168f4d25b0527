package sqlexpr

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
)

var (
	_ dml.Predicate = (*Predicate)(nil)
	_ dml.Decider   = (*Predicate)(nil)
	_ dml.Expr      = (*Expr)(nil)
)

// Predicate is a condition on rows. It is safe for concurrent use.
type Predicate struct{ statement }

// ParsePredicate reads a condition, such as
//
//	price > 10 and (name like 'x%' or name is null)
//
// Only the grammar is checked here; columns and types are when the predicate meets a
// schema, see Columns.
func ParsePredicate(text string, options ...Option) (*Predicate, error) {
	s, err := parseStatement(text, options...)
	if err != nil {
		return nil, err
	}
	s.predicate = true
	return &Predicate{*s}, nil
}

// Columns implements [dml.Predicate]: it checks the predicate against a schema and
// returns the top-level columns that it looks at, in the order of their first use; of
// _rowid and _rowaddr these names, see [dml.Positions].
// An unknown column is table.ErrNotFound, and the message lists those with similar
// names; what is not handled is table.ErrUnsupported.
func (p *Predicate) Columns(s table.Schema) ([]string, error) { return p.columns(s) }

// Matches implements [dml.Predicate]: one slot a row, true, false or null.
func (p *Predicate) Matches(ctx context.Context, rec arrow.RecordBatch) (*array.Boolean, error) {
	out, err := p.eval(ctx, rec)
	if err != nil {
		return nil, err
	}
	return out.(*array.Boolean), nil
}

// Decide implements [dml.Decider]: a condition that looks at no column and has one
// value, such as true, is decided.
func (p *Predicate) Decide(s table.Schema) (matches, decided bool) {
	b, err := p.bind(s.Arrow())
	if err != nil || len(b.columns) > 0 {
		return false, false
	}
	rec := array.NewRecordBatch(arrow.NewSchema(nil, nil), nil, 1)
	defer rec.Release()
	return b.decide(newFrame(context.Background(), rec))
}

func (b *bound) decide(f *frame) (matches, decided bool) {
	defer f.release()
	// One that fails fails where rows are looked at.
	defer func() {
		if recover() != nil {
			matches, decided = false, false
		}
	}()
	v, err := b.root.eval(f)
	if err != nil || !v.one {
		return false, false
	}
	hit := v.Array.(*array.Boolean)
	return hit.IsValid(0) && hit.Value(0), true
}

// Expr makes values out of rows. It is safe for concurrent use.
type Expr struct{ statement }

// ParseExpr reads an expression, such as coalesce(name, 'none') or price * 2.
func ParseExpr(text string, options ...Option) (*Expr, error) {
	s, err := parseStatement(text, options...)
	if err != nil {
		return nil, err
	}
	return &Expr{*s}, nil
}

// Columns implements [dml.Expr], see [Predicate.Columns].
func (x *Expr) Columns(s table.Schema) ([]string, error) { return x.columns(s) }

// Type returns the type of the values for rows of a schema.
func (x *Expr) Type(s table.Schema) (arrow.DataType, error) {
	b, err := x.bind(s.Arrow())
	if err != nil {
		return nil, err
	}
	return b.root.typ, nil
}

// Eval implements [dml.Expr]: one value a row.
func (x *Expr) Eval(ctx context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
	return x.eval(ctx, rec)
}

// statement is a text that was read, and what it came to for the schema of the last
// batch. Batches of one scan have one schema.
type statement struct {
	src       source
	tree      expr
	predicate bool
	// to is the type that the values are cast to, nil for as they are.
	to    arrow.DataType
	bound *atomic.Pointer[bound]
}

// bound is a statement with columns and types.
type bound struct {
	schema  *arrow.Schema
	root    *node
	columns []string
}

func parseStatement(text string, options ...Option) (*statement, error) {
	src, tokens, err := tokenize(text, options...)
	if err != nil {
		return nil, err
	}
	tree, err := parse(src, tokens)
	if err != nil {
		return nil, err
	}
	return &statement{src: src, tree: tree, bound: new(atomic.Pointer[bound])}, nil
}

// String returns the text as it was given.
func (s *statement) String() string { return s.src.sql }

func (s *statement) columns(schema table.Schema) ([]string, error) {
	b, err := s.bind(schema.Arrow())
	if err != nil {
		return nil, err
	}
	return slices.Clone(b.columns), nil
}

// bind finds columns and types. It does not panic.
func (s *statement) bind(schema *arrow.Schema) (b *bound, err error) {
	if b := s.bound.Load(); b != nil && (b.schema == schema || b.schema.Equal(schema)) {
		return b, nil
	}
	defer s.recover(&err)
	bd := &binder{src: s.src, schema: schema, positions: s.predicate}
	r := readings{b: bd}
	if err := r.look(s.tree, s.predicate); err != nil {
		return nil, err
	}
	if b, err = s.bindWith(bd); err != nil {
		return nil, err
	}
	if err := r.sameForAll(); err != nil {
		return nil, err
	}
	s.bound.Store(b)
	return b, nil
}

// bindWith is bind by a binder, without a look at how the text can be read.
func (s *statement) bindWith(bd *binder) (*bound, error) {
	root, err := bd.bindRoot(s.tree)
	if err != nil {
		return nil, err
	}
	if s.predicate && familyOf(root.typ) != famBool && familyOf(root.typ) != famNull {
		return nil, s.src.errorf(s.tree.place(), "a condition is expected, and this is of type %s", typeText(root.typ))
	}
	if s.predicate {
		root, err = bd.castTo(root, arrow.FixedWidthTypes.Boolean)
	} else if s.to != nil {
		root, err = bd.castTo(root, s.to)
	}
	if err != nil {
		return nil, err
	}
	return &bound{schema: bd.schema, root: root, columns: bd.columns}, nil
}

// eval evaluates the statement for the rows of a batch.
func (s *statement) eval(ctx context.Context, rec arrow.RecordBatch) (out arrow.Array, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := s.bind(rec.Schema())
	if err != nil {
		return nil, err
	}
	defer s.recover(&err)
	f := newFrame(ctx, rec)
	defer f.release()
	v, err := b.root.eval(f)
	if err != nil {
		return nil, err
	}
	if v.one {
		// One value for all rows: repeat it.
		if v.Array, err = take(f, v.Array, make([]int, f.rows)); err != nil {
			return nil, err
		}
	}
	v.Array.Retain()
	return v.Array, nil
}

// recover makes an error of a panic. Arrays come from anywhere, and ones that
// contradict their type panic when they are read.
func (s *statement) recover(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("sqlexpr: %q failed: %v", s.src.sql, p)
	}
}

// Assignment is a column and the value that it shall have.
type Assignment struct {
	// Column is the column's name as it was written, without quotes.
	Column string
	// Value computes the value from the row as it was.
	Value *Expr

	at     span
	quoted bool
}

// ParseAssignment reads "column = expression". The column is a top-level one.
func ParseAssignment(text string, options ...Option) (*Assignment, error) {
	src, tokens, err := tokenize(text, options...)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 || tokens[0].kind != word && tokens[0].kind != quoted {
		return nil, src.errorf(span{0, len(text)}, "column = expression is expected")
	}
	name := tokens[0]
	if len(tokens) > 1 && (tokens[1].is(".") || tokens[1].is("[")) {
		return nil, src.unsupportedf(name.at.until(tokens[1].at), "assigning to a part of a column")
	}
	if len(tokens) < 2 || !tokens[1].is("=") {
		return nil, src.errorf(span{name.at.to, len(text)}, "= is expected after the column")
	}
	tree, err := parse(src, tokens[2:])
	if err != nil {
		return nil, err
	}
	s := statement{src: src, tree: tree, bound: new(atomic.Pointer[bound])}
	return &Assignment{Column: name.val, Value: &Expr{s}, at: name.at, quoted: name.kind == quoted}, nil
}

// For returns the name of the column in a schema and an expression whose values have
// the column's type. Values are cast as by CAST: text is read as numbers and dates
// too, fractions are cut off, and a value that does not fit is an error when it is
// met.
func (a *Assignment) For(s table.Schema) (column string, value dml.Expr, err error) {
	schema := s.Arrow()
	b := binder{src: a.Value.src, schema: schema}
	i, err := b.find(a.Column, a.quoted, a.at)
	if err != nil {
		return "", nil, err
	}
	f := schema.Field(i)
	typed := *a.Value
	typed.to, typed.bound = f.Type, new(atomic.Pointer[bound])
	if _, err := typed.bind(schema); err != nil {
		return "", nil, err
	}
	return f.Name, &typed, nil
}
