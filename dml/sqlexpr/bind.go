package sqlexpr

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
)

// node is an expression with its type, ready to be evaluated.
type node struct {
	at  span
	typ arrow.DataType
	// constant says that the value is the same for every row.
	constant bool
	// fallible says that the evaluation can fail for some values, so that it must
	// only see the rows that need it.
	fallible bool
	eval     func(f *frame) (vector, error)
}

// binder gives expressions their types, for one schema.
type binder struct {
	src     source
	schema  *arrow.Schema
	columns []string // that were used, in order
	// positions says that _rowid and _rowaddr can be looked at, too.
	positions bool
}

// bindRoot binds a whole statement. Its outermost arithmetic is special, as in Lance:
// SET n = n + 1 computes in the type of n, so the 1 is one of that.
func (b *binder) bindRoot(e expr) (*node, error) {
	if x, ok := e.(*binary); ok && arithmeticOperator(x.op) && (isColumn(x.l) || isColumn(x.r)) {
		l, r, err := b.operands(x.l, x.r)
		if err != nil {
			return nil, err
		}
		return b.arithmetic(x, l, r)
	}
	return b.bind(e)
}

func (b *binder) bind(e expr) (*node, error) {
	switch e := e.(type) {
	case *literal:
		return b.literal(e)
	case *interval:
		return b.interval(e, nil)
	case *column:
		return b.column(e)
	case *field:
		return b.field(e)
	case *unary:
		return b.unary(e)
	case *binary:
		return b.binary(e)
	case *test:
		return b.test(e)
	case *in:
		return b.in(e)
	case *between:
		return b.between(e)
	case *like:
		return b.like(e)
	case *caseOf:
		return b.caseOf(e)
	case *cast:
		x, err := b.bind(e.x)
		if err != nil {
			return nil, err
		}
		return b.cast(e.span, x, e.to, e.try)
	case *call:
		return b.call(e)
	case *list:
		return b.list(e)
	}
	return nil, b.src.unsupportedf(e.place(), "this kind of expression")
}

func (b *binder) bindAll(es ...expr) ([]*node, error) {
	out := make([]*node, len(es))
	for i, e := range es {
		n, err := b.bind(e)
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}

// make makes a node of its inputs and a function of their values. A node of constants
// is evaluated at once, unless that fails: it may be in a branch that no row takes.
func (b *binder) make(at span, typ arrow.DataType, fallible bool, of func(f *frame, vs []vector) (vector, error), inputs ...*node) *node {
	n := b.lazy(at, typ, fallible, of, inputs...)
	if !n.constant {
		return n
	}
	f := constantFrame()
	if v, err := n.eval(f); err == nil && v.one {
		a := v.Array
		a.Retain()
		f.release()
		n.eval = func(*frame) (vector, error) { return vector{a, true}, nil }
		n.fallible = false
	}
	return n
}

// constantFrame is what constants are evaluated over.
func constantFrame() *frame {
	return &frame{rows: 1, owned: new([]arrow.Array), ctx: context.Background()}
}

// lazy is make without the evaluation.
func (b *binder) lazy(at span, typ arrow.DataType, fallible bool, of func(f *frame, vs []vector) (vector, error), inputs ...*node) *node {
	n := &node{at: at, typ: typ, fallible: fallible, constant: true}
	for _, in := range inputs {
		n.constant = n.constant && in.constant
		n.fallible = n.fallible || in.fallible
	}
	src := b.src
	n.eval = func(f *frame) (vector, error) {
		vs := make([]vector, len(inputs))
		for i, in := range inputs {
			v, err := in.eval(f)
			if err != nil {
				return vector{}, err
			}
			vs[i] = v
		}
		v, err := of(f, vs)
		if err != nil && !errors.Is(err, errPlaced) {
			return vector{}, placedError{src.errorf(at, "%w", err)}
		}
		return v, err
	}
	return n
}

// share makes a node that is evaluated once, however often it is used. Without it a text
// could make an evaluation take a time exponential in its length.
func share(n *node) *node {
	if n.constant && !n.fallible {
		return n
	}
	s := &node{at: n.at, typ: n.typ, constant: n.constant, fallible: n.fallible}
	s.eval = func(f *frame) (vector, error) {
		v, ok, err := f.known(s)
		if ok || err != nil {
			return v, err
		}
		if v, err = n.eval(f); err == nil {
			f.remember(s, v)
		}
		return v, err
	}
	return s
}

// placedError is an error that names its place already.
type placedError struct{ error }

var errPlaced = errors.New("placed")

func (p placedError) Unwrap() error     { return p.error }
func (p placedError) Is(err error) bool { return err == errPlaced }

// value makes a constant.
func (b *binder) value(at span, a arrow.Array) *node {
	return &node{at: at, typ: a.DataType(), constant: true, eval: func(*frame) (vector, error) { return vector{a, true}, nil }}
}

// find finds a column by its name. A name without quotes may differ in case from the
// column's, as in Lance, if there is none that has it exactly.
func (b *binder) find(name string, quoted bool, at span) (int, error) {
	fields := b.schema.Fields()
	if i := slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Name == name }); i >= 0 {
		return i, nil
	}
	if !quoted {
		if i := slices.IndexFunc(fields, func(f arrow.Field) bool { return strings.EqualFold(f.Name, name) }); i >= 0 {
			return i, nil
		}
	}
	return 0, notFound{b.src.errorf(at, "no column %q%s", name, similar(name, fields))}
}

func (b *binder) column(e *column) (*node, error) {
	i, err := b.find(e.name, e.quoted, e.span)
	if name, ok := position(e); err != nil && b.positions && ok {
		return b.position(e.span, name), nil
	}
	if err != nil {
		return nil, err
	}
	f := b.schema.Field(i)
	if !slices.Contains(b.columns, f.Name) {
		b.columns = append(b.columns, f.Name)
	}
	n := &node{at: e.span, typ: f.Type, eval: func(f *frame) (vector, error) {
		a, err := f.column(i)
		return vector{a, false}, err
	}}
	return n, nil
}

// position says whether a name is that of a row's position, unless a column has it.
func position(e *column) (string, bool) {
	for _, name := range []string{dml.RowIDColumn, dml.RowAddrColumn} {
		if e.name == name || !e.quoted && strings.EqualFold(e.name, name) {
			return name, true
		}
	}
	return "", false
}

// position is a column that the table does not have. The records that the condition is
// asked about do, so that it is bound again, and found.
func (b *binder) position(at span, name string) *node {
	if !slices.Contains(b.columns, name) {
		b.columns = append(b.columns, name)
	}
	return &node{at: at, typ: arrow.PrimitiveTypes.Uint64, eval: func(*frame) (vector, error) {
		return vector{}, fmt.Errorf("the rows have no %s", name)
	}}
}

// plain unpacks dictionaries, which nothing but a bare column keeps.
func (b *binder) plain(n *node) *node {
	d, ok := n.typ.(*arrow.DictionaryType)
	if !ok {
		return n
	}
	return b.make(n.at, d.ValueType, false, func(f *frame, vs []vector) (vector, error) {
		dict, ok := vs[0].Array.(*array.Dictionary)
		if !ok {
			return f.nullsOf(d.ValueType), nil
		}
		rows := make([]int, dict.Len())
		for i := range rows {
			if rows[i] = -1; dict.IsValid(i) {
				rows[i] = dict.GetValueIndex(i)
			}
		}
		v, err := take(f, dict.Dictionary(), rows)
		return vector{v, vs[0].one}, err
	}, n)
}

func (b *binder) field(e *field) (*node, error) {
	// Two tables side by side, as a merge has them, are one schema whose columns are
	// named "source.x" and "target.x".
	if c, ok := e.of.(*column); ok && e.elem == nil {
		if i := slices.IndexFunc(b.schema.Fields(), func(f arrow.Field) bool { return f.Name == c.name+"."+e.name }); i >= 0 {
			return b.column(&column{at: e.at, name: c.name + "." + e.name, quoted: true})
		}
	}
	of, err := b.bind(e.of)
	if err != nil {
		return nil, err
	}
	if e.elem != nil {
		i, err := b.bind(e.elem)
		if err != nil {
			return nil, err
		}
		return b.element(e.span, of, i)
	}
	t, ok := of.typ.(*arrow.StructType)
	if !ok {
		return nil, b.src.errorf(e.span, "no field %q in a value of type %s", e.name, typeText(of.typ))
	}
	i, ok := t.FieldIdx(e.name)
	if !ok {
		return nil, notFound{b.src.errorf(e.span, "no field %q%s", e.name, similar(e.name, t.Fields()))}
	}
	return b.make(e.span, t.Field(i).Type, false, func(f *frame, vs []vector) (vector, error) {
		s := vs[0].Array.(*array.Struct)
		child := s.Field(i)
		if s.NullN() == 0 {
			return vector{child, vs[0].one}, nil
		}
		// Under a null struct there may be a value, which does not count.
		rows := make([]int, s.Len())
		for i := range rows {
			if rows[i] = i; s.IsNull(i) {
				rows[i] = -1
			}
		}
		v, err := take(f, child, rows)
		return vector{v, vs[0].one}, err
	}, of), nil
}

func (b *binder) unary(e *unary) (*node, error) {
	x, err := b.bind(e.x)
	if err != nil {
		return nil, err
	}
	if e.op == "NOT" {
		if x, err = b.boolean(x); err != nil {
			return nil, err
		}
		return b.make(e.span, x.typ, false, func(f *frame, vs []vector) (vector, error) { return negation(f, vs[0]), nil }, x), nil
	}
	if x = b.plain(x); familyOf(x.typ) == famUint || !isNumeric(x.typ) && familyOf(x.typ) != famNull {
		return nil, b.src.errorf(e.span, "a value of type %s has no negative", typeText(x.typ))
	}
	return b.make(e.span, x.typ, false, func(f *frame, vs []vector) (vector, error) { return negate(f, vs[0]) }, x), nil
}

// boolean checks that a node is a condition.
func (b *binder) boolean(n *node) (*node, error) {
	switch familyOf(n.typ) {
	case famBool:
		return n, nil
	case famNull:
		return b.castTo(n, arrow.FixedWidthTypes.Boolean)
	}
	return nil, b.src.errorf(n.at, "a condition is expected, and this is of type %s", typeText(n.typ))
}

func (b *binder) binary(e *binary) (*node, error) {
	switch e.op {
	case "AND", "OR":
		return b.logical(e)
	case "=", "!=", "<", "<=", ">", ">=":
		l, r, err := b.operands(e.l, e.r)
		if err != nil {
			return nil, err
		}
		return b.compare(e.span, e.op, l, r, e.nullsEqual)
	case "||":
		ns, err := b.bindAll(e.l, e.r)
		if err != nil {
			return nil, err
		}
		return b.concatOperator(e.span, ns[0], ns[1])
	}
	ns, err := b.bindAll(e.l, e.r)
	if err != nil {
		return nil, err
	}
	return b.arithmetic(e, ns[0], ns[1])
}

func (b *binder) logical(e *binary) (*node, error) {
	// A chain leans to the left, and may be long.
	var operands []expr
	var first expr = e
	for {
		x, ok := first.(*binary)
		if !ok || x.op != e.op {
			break
		}
		operands, first = append(operands, x.r), x.l
	}
	slices.Reverse(operands)
	bindOne := func(x expr) (*node, error) {
		n, err := b.bind(x)
		if err != nil {
			return nil, err
		}
		return b.boolean(n)
	}
	l, err := bindOne(first)
	if err != nil {
		return nil, err
	}
	for _, x := range operands {
		r, err := bindOne(x)
		if err != nil {
			return nil, err
		}
		l = b.combine(span{l.at.from, r.at.to}, e.op == "AND", l, r)
	}
	return l, nil
}

// combine is l AND r, or l OR r. A right side that may fail sees only the rows that
// the left one does not decide.
func (b *binder) combine(at span, and bool, l, r *node) *node {
	if !r.fallible {
		return b.make(at, l.typ, false, func(f *frame, vs []vector) (vector, error) { return logical(f, and, vs[0], vs[1]), nil }, l, r)
	}
	n := b.lazy(at, l.typ, true, func(f *frame, vs []vector) (vector, error) {
		right, err := decided(f, and, vs[0], r)
		if err != nil {
			return vector{}, err
		}
		return logical(f, and, vs[0], right), nil
	}, l)
	n.constant = n.constant && r.constant
	return n
}

func (b *binder) test(e *test) (*node, error) {
	x, err := b.bind(e.x)
	if err != nil {
		return nil, err
	}
	if e.is == "NULL" {
		// What regexp_match found is null where there is no match, as SQL has it, and
		// true or false as a condition: those who ask which want to know of a match.
		if c, ok := e.x.(*call); ok && c.name == "regexp_match" {
			return nil, b.src.unsupportedf(e.span, "IS NULL of regexp_match (use regexp_like, without IS NULL)")
		}
		return b.make(e.span, arrow.FixedWidthTypes.Boolean, false, func(f *frame, vs []vector) (vector, error) { return isNull(f, vs[0], e.not), nil }, x), nil
	}
	if x, err = b.boolean(x); err != nil {
		return nil, err
	}
	return b.make(e.span, x.typ, false, func(f *frame, vs []vector) (vector, error) { return isBool(f, vs[0], e.is == "TRUE", e.not), nil }, x), nil
}

// castTo casts without being asked to, which leaves the place and a value that has
// the type alone.
func (b *binder) castTo(n *node, to arrow.DataType) (*node, error) {
	if arrow.TypeEqual(n.typ, to) {
		return n, nil
	}
	return b.cast(n.at, n, to, false)
}

func (b *binder) cast(at span, x *node, to arrow.DataType, try bool) (*node, error) {
	x = b.plain(x)
	from := x.typ
	if arrow.TypeEqual(from, to) {
		return x, nil
	}
	if familyOf(from) != famNull && !widens(from, to) {
		if d, ok := to.(*arrow.DictionaryType); ok {
			return b.cast(at, x, d.ValueType, try)
		}
		if _, err := conversionOf(from, to); err != nil {
			return nil, b.src.unsupportedf(at, "%w", err)
		}
	}
	fallible := !try && !widens(from, to) && familyOf(to) != famString && familyOf(from) != famNull
	n := b.make(at, to, fallible, func(f *frame, vs []vector) (vector, error) { return castVector(f, vs[0], to, try) }, x)
	if n.constant && n.fallible && !x.fallible {
		// A constant that is none of the type is a mistake in the text.
		_, err := n.eval(constantFrame())
		return nil, err
	}
	return n, nil
}

// notFound is an error that says by itself what was not found.
type notFound struct{ error }

func (n notFound) Is(err error) bool { return err == table.ErrNotFound }

// similar lists the names most like one that was not found.
func similar(name string, fields []arrow.Field) string {
	const most, longest = 3, 200
	if len(name) > longest {
		return ""
	}
	type candidate struct {
		name string
		far  int
	}
	var all []candidate
	lower := strings.ToLower(name)
	for _, f := range fields {
		other := strings.ToLower(f.Name)
		far := distance(lower, other)
		if far <= (len(name)+1)/3 || len(name) > 2 && strings.Contains(other, lower) || len(other) > 2 && strings.Contains(lower, other) {
			all = append(all, candidate{f.Name, far})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.far - b.far })
	var names []string
	for _, c := range all[:min(len(all), most)] {
		names = append(names, fmt.Sprintf("%q", c.name))
	}
	switch {
	case len(names) > 0:
		return ", similar are " + strings.Join(names, ", ")
	case len(fields) == 0:
		return ""
	}
	for _, f := range fields[:min(len(fields), 20)] {
		names = append(names, fmt.Sprintf("%q", f.Name))
	}
	return ", there are " + strings.Join(names, ", ")
}

// distance is how many insertions, deletions and changes of a byte lead from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := before
			if a[i] != b[j] {
				cost++
			}
			before = row[j+1]
			row[j+1] = min(cost, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
