package sqlexpr

import (
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// literal makes a constant with the type that DataFusion gives it: bigint, bigint
// unsigned, double, string, binary, boolean or null.
func (b *binder) literal(e *literal) (*node, error) {
	t, c := literalType(e)
	if t.ID() == arrow.NULL {
		return b.value(e.span, array.NewNull(1)), nil
	}
	a, err := constantOf(t, c)
	if err != nil {
		return nil, b.src.errorf(e.span, "%w", err)
	}
	return b.value(e.span, a), nil
}

func literalType(e *literal) (arrow.DataType, cell) {
	switch v := e.value.(type) {
	case bool:
		return arrow.FixedWidthTypes.Boolean, cell{i: int64(ordinal(v))}
	case int64:
		return arrow.PrimitiveTypes.Int64, cell{i: v}
	case uint64:
		return arrow.PrimitiveTypes.Uint64, cell{u: v}
	case float64:
		return arrow.PrimitiveTypes.Float64, cell{f: v}
	case string:
		return arrow.BinaryTypes.String, cell{s: v}
	case []byte:
		return arrow.BinaryTypes.Binary, cell{s: string(v)}
	}
	return arrow.Null, cell{}
}

// fit makes a constant of a literal that is used together with a value of type t, of
// a column or something else: of that type, if the literal has a value there. It is
// what makes x = 0.1 true for the 0.1 of a column of floats. The rules are Lance's, and
// beyond them: a number with a fraction meets decimals digit by digit, and a string
// meets what it can be read as.
func (b *binder) fit(e *literal, t arrow.DataType, column bool) (*node, error) {
	if d, ok := t.(*arrow.DictionaryType); ok {
		t = d.ValueType
	}
	plain, err := b.literal(e)
	if err != nil {
		return nil, err
	}
	switch to := familyOf(t); v := e.value.(type) {
	case int64, uint64:
		switch to {
		case famInt, famUint, famDecimal:
			from, c := literalType(e)
			if a, err := converted(from, c, t); err == nil {
				return b.value(e.span, a), nil
			}
		case famFloat:
			return b.castTo(plain, t)
		}
	case float64:
		switch {
		case to == famFloat && column:
			return b.castTo(plain, t)
		case to == famDecimal && !math.IsInf(v, 0):
			if a, err := exactDecimal(e.digits); err == nil {
				return b.value(e.span, a), nil
			}
		}
	case string:
		switch to {
		case famBool, famInt, famUint, famFloat, famDecimal, famDate, famTimestamp, famTime, famDuration:
			return b.cast(e.span, plain, t, false)
		case famBinary:
			return nil, b.src.errorf(e.span, "a string beside a value of type %s (write bytes x'…')", typeText(t))
		}
	}
	return plain, nil
}

// converted is a constant cast to a type.
func converted(from arrow.DataType, c cell, to arrow.DataType) (arrow.Array, error) {
	convert, err := conversionOf(from, to)
	if err != nil {
		return nil, err
	}
	if c, err = convert(c); err != nil {
		return nil, err
	}
	return constantOf(to, c)
}

// exactDecimal is a number as it is written, with as many digits as it has.
func exactDecimal(digits string) (arrow.Array, error) {
	d, scale, err := parseDecimal(digits)
	if err != nil {
		return nil, err
	}
	precision := max(scale, int32(len(new(big.Int).Abs(d).String())))
	if precision > maxPrecision128 {
		return nil, errOverflow
	}
	return constantOf(newDecimalType(precision, scale, false), cell{d: d})
}

// operands binds two operands, and fits one that is a literal to the other's type.
func (b *binder) operands(le, re expr) (l, r *node, err error) {
	_, leftLiteral := le.(*literal)
	_, leftInterval := le.(*interval)
	if !leftLiteral && !leftInterval {
		if l, err = b.bind(le); err != nil {
			return nil, nil, err
		}
		r, err = b.beside(re, l, isColumn(le))
		return l, r, err
	}
	if r, err = b.bind(re); err != nil {
		return nil, nil, err
	}
	l, err = b.beside(le, r, isColumn(re))
	return l, r, err
}

// isColumn says whether an expression is a column or a field of one.
func isColumn(e expr) bool {
	switch e := e.(type) {
	case *column:
		return true
	case *field:
		return e.elem == nil && isColumn(e.of)
	}
	return false
}

// beside binds an operand that stands beside another one. What is fitted to the
// other's type is a literal, and literals in arithmetic beside a column: n = 1 + 4.
func (b *binder) beside(e expr, other *node, column bool) (*node, error) {
	switch e := e.(type) {
	case *literal:
		return b.fit(e, other.typ, column)
	case *interval:
		return b.interval(e, other.typ)
	case *binary:
		if arithmeticOperator(e.op) && column {
			l, err := b.beside(e.l, other, column)
			if err != nil {
				return nil, err
			}
			r, err := b.beside(e.r, other, column)
			if err != nil {
				return nil, err
			}
			return b.arithmetic(e, l, r)
		}
	}
	return b.bind(e)
}

// compare compares two nodes in their common type.
func (b *binder) compare(at span, op string, l, r *node, nullsEqual bool) (*node, error) {
	l, r = b.plain(l), b.plain(r)
	l, r, err := b.comparable(at, l, r)
	if err != nil {
		return nil, err
	}
	not := op == "!="
	boolean := arrow.FixedWidthTypes.Boolean
	if !nullsEqual {
		return b.make(at, boolean, false, func(f *frame, vs []vector) (vector, error) { return compareVectors(f, op, vs[0], vs[1]) }, l, r), nil
	}
	return b.make(at, boolean, false, func(f *frame, vs []vector) (vector, error) {
		equal, err := compareVectors(f, "=", vs[0], vs[1])
		if err != nil {
			return vector{}, err
		}
		return nullSafe(f, equal, vs[0], vs[1], not), nil
	}, l, r), nil
}

// comparable casts two nodes so that their values can be compared.
func (b *binder) comparable(at span, l, r *node) (*node, *node, error) {
	lf, rf := familyOf(l.typ), familyOf(r.typ)
	switch {
	case lf == famNull && rf == famNull:
		return l, r, nil
	case lf != famNull && !isScalar(l.typ) || rf != famNull && !isScalar(r.typ):
		bad := l.typ
		if lf == famNull || isScalar(l.typ) {
			bad = r.typ
		}
		return nil, nil, b.src.unsupportedf(at, "comparing values of type %s", typeText(bad))
	case lf == famString && rf == famString, lf == famBinary && rf == famBinary:
		return l, r, nil // compared byte by byte, whatever the layout
	case lf == famDecimal && rf == famDecimal:
		return l, r, nil // compared whatever the scale
	case (lf == famDecimal || rf == famDecimal) && (isInteger(l.typ) || isInteger(r.typ)):
		l, err := b.castTo(l, decimalOf(l.typ))
		if err != nil {
			return nil, nil, err
		}
		r, err := b.castTo(r, decimalOf(r.typ))
		return l, r, err
	case lf == famDecimal && rf == famFloat, lf == famFloat && rf == famDecimal:
		return l, r, nil // see compareDecimalFloat
	case (lf == famString) != (rf == famString) && lf != famNull && rf != famNull:
		return nil, nil, b.src.errorf(at, "%s and %s cannot be compared: cast one of them", typeText(l.typ), typeText(r.typ))
	}
	t, err := common(l.typ, r.typ)
	if err != nil {
		return nil, nil, b.src.errorf(at, "%w", err)
	}
	if ts, ok := t.(*arrow.TimestampType); ok && ts.TimeZone != "" && (lf == famDate || rf == famDate) {
		// Beside an instant a day begins at midnight in UTC, whatever the zone of the
		// column; CAST alone makes it midnight there.
		t = &arrow.TimestampType{Unit: ts.Unit, TimeZone: "UTC"}
	}
	if l, err = b.castTo(l, t); err != nil {
		return nil, nil, err
	}
	r, err = b.castTo(r, t)
	return l, r, err
}

func (b *binder) between(e *between) (*node, error) {
	x, err := b.bind(e.x)
	if err != nil {
		return nil, err
	}
	x = share(x)
	low, err := b.beside(e.low, x, isColumn(e.x))
	if err != nil {
		return nil, err
	}
	high, err := b.beside(e.high, x, isColumn(e.x))
	if err != nil {
		return nil, err
	}
	from, err := b.compare(e.span, ">=", x, low, false)
	if err != nil {
		return nil, err
	}
	to, err := b.compare(e.span, "<=", x, high, false)
	if err != nil {
		return nil, err
	}
	n := b.combine(e.span, true, from, to)
	if e.not {
		n = b.not(n)
	}
	return n, nil
}

func (b *binder) not(n *node) *node {
	return b.make(n.at, n.typ, false, func(f *frame, vs []vector) (vector, error) { return negation(f, vs[0]), nil }, n)
}

// in is x = a OR x = b OR …, which a list of constants answers with one look at a
// set.
func (b *binder) in(e *in) (*node, error) {
	x, err := b.bind(e.x)
	if err != nil {
		return nil, err
	}
	x = b.plain(x)
	elems := make([]*node, len(e.list))
	same := true
	for i, el := range e.list {
		if elems[i], err = b.beside(el, x, isColumn(e.x)); err != nil {
			return nil, err
		}
		elems[i] = b.plain(elems[i])
		same = same && elems[i].constant && !elems[i].fallible && (arrow.TypeEqual(elems[i].typ, x.typ) || familyOf(elems[i].typ) == famNull ||
			familyOf(elems[i].typ) == famString && familyOf(x.typ) == famString || familyOf(elems[i].typ) == famBinary && familyOf(x.typ) == famBinary)
	}
	var n *node
	if f := familyOf(x.typ); same && isScalar(x.typ) && f != famFloat && f != famDecimal {
		n, err = b.inSet(e.span, x, elems)
	} else {
		n, err = b.inAny(e.span, x, elems)
	}
	if err != nil || !e.not {
		return n, err
	}
	return b.not(n), nil
}

func (b *binder) inAny(at span, x *node, elems []*node) (*node, error) {
	var n *node
	x = share(x)
	for _, el := range elems {
		eq, err := b.compare(at, "=", x, el, false)
		if err != nil {
			return nil, err
		}
		if n == nil {
			n = eq
		} else {
			n = b.combine(at, false, n, eq)
		}
	}
	return n, nil
}

// inSet looks values up in a set of constants of the same type.
func (b *binder) inSet(at span, x *node, elems []*node) (*node, error) {
	ints, texts, null := map[int64]struct{}{}, map[string]struct{}{}, false
	isText := familyOf(x.typ) == famString || familyOf(x.typ) == famBinary
	for _, el := range elems {
		v, err := el.eval(constantFrame())
		switch {
		case err != nil:
			return nil, err
		case v.IsNull(0):
			null = true
		case isText:
			texts[stringsOf(v.Array).Value(0)] = struct{}{}
		default:
			c := cellReader(v.Array)(0)
			ints[c.i|int64(c.u)] = struct{}{} // one of them is zero
		}
	}
	return b.make(at, arrow.FixedWidthTypes.Boolean, false, func(f *frame, vs []vector) (vector, error) {
		var found vector
		if isText {
			s := stringsOf(vs[0].Array)
			found = f.rowBools(func(i int) bool { _, ok := texts[s.Value(i)]; return ok }, vs...)
		} else {
			read := cellReader(vs[0].Array)
			found = f.rowBools(func(i int) bool { c := read(i); _, ok := ints[c.i|int64(c.u)]; return ok }, vs...)
		}
		if !null {
			return found, nil
		}
		// What is not in a list with a null might be the null: unknown.
		n, one := f.length(found)
		isTrue, _ := truths(n, vector{found.Array, false})
		return f.bools(n, one, isTrue, isTrue), nil
	}, x), nil
}
