package sqlexpr

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/internal/gather"
)

func arithmeticOperator(op string) bool {
	switch op {
	case "+", "-", "*", "/", "%", "<<", ">>":
		return true
	}
	return false
}

// arithmetic binds an operator between numbers, or dates and times.
func (b *binder) arithmetic(e *binary, l, r *node) (*node, error) {
	l, r = b.plain(l), b.plain(r)
	lf, rf := familyOf(l.typ), familyOf(r.typ)
	switch {
	case lf == famNull && rf == famNull:
		return l, nil
	case lf == famNull && isNumeric(r.typ):
		return b.nullOf(e.span, r.typ), nil
	case rf == famNull && isNumeric(l.typ):
		return b.nullOf(e.span, l.typ), nil
	case !isNumeric(l.typ) || !isNumeric(r.typ):
		return b.temporalArithmetic(e, l, r)
	case (e.op == "<<" || e.op == ">>") && (!isInteger(l.typ) || !isInteger(r.typ)):
		return nil, b.src.errorf(e.span, "%s is for whole numbers, not %s and %s", e.op, typeText(l.typ), typeText(r.typ))
	}
	typ := commonNumber(l.typ, r.typ)
	operand := typ
	if familyOf(typ) == famDecimal {
		operand = nil
	}
	var err error
	for _, n := range []**node{&l, &r} {
		to := operand
		if to == nil {
			if to = decimalOf((*n).typ); isInteger(l.typ) && isInteger(r.typ) {
				to = typ // bigint with bigint unsigned
			}
		}
		if *n, err = b.castTo(*n, to); err != nil {
			return nil, err
		}
	}
	// Only what can fail needs to be kept from rows that do not want it.
	fallible := e.op == "/" || e.op == "%"
	if operand == nil {
		typ = decimalResult(e.op, l.typ, r.typ)
		fallible = true
	} else if familyOf(typ) == famFloat {
		fallible = false
	}
	return b.make(e.span, typ, fallible, func(f *frame, vs []vector) (vector, error) {
		return arithmeticVectors(f, e.op, vs[0], vs[1], typ)
	}, l, r), nil
}

func (b *binder) nullOf(at span, t arrow.DataType) *node {
	return b.value(at, gather.Nulls(allocator, t, 1))
}

// temporalArithmetic binds what there is for dates and times:
//
//	date ± whole number of days      a date
//	date - date                      a whole number of days
//	timestamp - timestamp            a duration
//	timestamp ± duration             a timestamp
//	date or timestamp ± interval     one of the same type
func (b *binder) temporalArithmetic(e *binary, l, r *node) (*node, error) {
	int64s, int32s := arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int32
	lf, rf := familyOf(l.typ), familyOf(r.typ)
	plusMinus := e.op == "+" || e.op == "-"
	// compute does the sum in whole numbers of the units of the operands.
	compute := func(l, r *node, in, out arrow.DataType) (*node, error) {
		var err error
		if l, err = b.castTo(l, in); err == nil {
			r, err = b.castTo(r, in)
		}
		if err != nil {
			return nil, err
		}
		sum := b.make(e.span, in, false, func(f *frame, vs []vector) (vector, error) { return arithmeticVectors(f, e.op, vs[0], vs[1], in) }, l, r)
		return b.castTo(sum, out)
	}
	if isInterval(l) && e.op == "+" {
		l, r, lf = r, l, rf
	}
	switch {
	case plusMinus && (lf == famDate || lf == famTimestamp) && isInterval(r):
		return b.addInterval(e, l, r)
	case plusMinus && lf == famDate && isInteger(r.typ):
		days, err := b.castTo(l, arrow.FixedWidthTypes.Date32)
		if err != nil {
			return nil, err
		}
		return compute(days, r, int32s, arrow.FixedWidthTypes.Date32)
	case e.op == "-" && lf == famDate && rf == famDate:
		var err error
		if l, err = b.castTo(l, arrow.FixedWidthTypes.Date32); err == nil {
			r, err = b.castTo(r, arrow.FixedWidthTypes.Date32)
		}
		if err != nil {
			return nil, err
		}
		return compute(l, r, int64s, int64s)
	case e.op == "-" && lf == famTimestamp && rf == famTimestamp:
		t := commonTimestamp(l.typ.(*arrow.TimestampType), r.typ.(*arrow.TimestampType))
		var err error
		if l, err = b.castTo(l, t); err == nil {
			r, err = b.castTo(r, t)
		}
		if err != nil {
			return nil, err
		}
		return compute(l, r, int64s, &arrow.DurationType{Unit: t.(*arrow.TimestampType).Unit})
	case plusMinus && lf == famTimestamp && rf == famDuration:
		t := l.typ.(*arrow.TimestampType)
		r, err := b.castTo(r, &arrow.DurationType{Unit: t.Unit})
		if err != nil {
			return nil, err
		}
		sum, err := compute(l, r, int64s, int64s)
		if err != nil {
			return nil, err
		}
		return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
			valid, nulls := f.validity(vs[0].Len(), vector{vs[0].Array, false})
			return numbers(f, t, vs[0].one, values[int64](vs[0].Array), valid, nulls), nil
		}, sum), nil
	}
	return nil, b.src.errorf(e.span, "%s has no meaning for %s and %s", e.op, typeText(l.typ), typeText(r.typ))
}
