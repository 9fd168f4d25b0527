package sqlexpr

import (
	"errors"
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
)

func numberFunctions() []*Function {
	x, n := param("x", KindNumber), param("n", KindWhole)
	digits := param("digits", KindWhole).optional().like("0", "1", "2", "-1", "-3", "20")
	any := param("x", KindAny&^KindStruct&^KindList)
	float := func(name, doc string, of func(float64) float64, aliases ...string) *Function {
		return &Function{Name: name, Aliases: aliases, Params: []Param{x}, Result: "double, or float of a float", Doc: doc,
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.float1(e, args[0], of) }}
	}
	whole := func(name, doc string, of func(float64) float64) *Function {
		f := float(name, doc, of)
		f.Params = []Param{param("x", KindWhole|KindFloat)}
		f.Differs = "Lance's parser refuses it"
		return f
	}
	return []*Function{
		{Name: "abs", Params: []Param{x}, Result: "the type of x", Doc: "without its sign; an error if the type has no such value", bind: (*binder).abs},
		{Name: "round", Params: []Param{x, digits}, Result: "double, float of a float, decimal of a decimal", Doc: "to so many digits after the point, before it below zero; halves away from zero", bind: (*binder).round},
		{Name: "trunc", Params: []Param{x, digits}, Result: "double, or float of a float", Doc: "cut off after so many digits", Differs: "of whole numbers with digits it is exact here, and has 7 digits in engines", bind: (*binder).trunc},
		whole("ceil", "the next whole number above", math.Ceil), whole("floor", "the next whole number below", math.Floor),
		float("sqrt", "square root; NaN below zero", math.Sqrt), float("cbrt", "cube root", math.Cbrt),
		float("exp", "e to the power of x", math.Exp), float("ln", "natural logarithm; NaN below zero", math.Log),
		float("log2", "logarithm to base 2", log2), float("log10", "logarithm to base 10", log10),
		float("sin", "sine of x in radians", math.Sin), float("cos", "cosine of x in radians", math.Cos), float("tan", "tangent of x in radians", math.Tan),
		{Name: "log", Params: []Param{param("base", KindNumber).like("2", "10", "0.5", "f64", "n"), x.optional()}, Result: "double, or float of a float", Doc: "logarithm of the last argument to a base, of one alone to base 10", Differs: "engines make 1 of `log(x, x)`, whatever x is", bind: (*binder).log},
		{Name: "power", Aliases: []string{"pow"}, Params: []Param{param("x", KindWhole|KindFloat), param("y", KindWhole|KindFloat).like("2", "0.5", "-1", "0", "n", "f64")}, Result: "double",
			Doc: "x to the power of y; zero to a power below zero is an error", Differs: "engines make 1 of `power(x, 0)`, of a null too", bind: (*binder).power},
		{Name: "signum", Params: []Param{x}, Result: "double, or float of a float", Doc: "1, 0 or -1",
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.float1(e, args[0], signum) }},
		{Name: "isnan", Params: []Param{x}, Result: "boolean", Doc: "whether x is NaN", bind: (*binder).isNaN},
		{Name: "greatest", Params: []Param{any}, Variadic: true, Result: "the common type", Nulls: NullIgnored, Doc: "the greatest argument that is not null; NaN is above all",
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.extreme(e, args, 1) }},
		{Name: "least", Params: []Param{any}, Variadic: true, Result: "the common type", Nulls: NullIgnored, Doc: "the least argument that is not null",
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.extreme(e, args, -1) }},
		{Name: "to_hex", Params: []Param{n}, Result: "text", Doc: "in hexadecimal digits, of 64 bits if below zero", bind: (*binder).toHex},
	}
}

func (b *binder) abs(e *call, args []*node) (*node, error) {
	x := args[0]
	return b.make(e.span, x.typ, familyOf(x.typ) == famInt, func(f *frame, vs []vector) (vector, error) { return absolute(f, vs[0]) }, x), nil
}

func (b *binder) isNaN(e *call, args []*node) (*node, error) {
	if err := b.castEach(args, arrow.PrimitiveTypes.Float64); err != nil {
		return nil, err
	}
	return b.truths(e, false, func(r *row) (bool, error) { return math.IsNaN(r.f(0)), nil }, args...)
}

// ofFloat casts doubles back to float if the argument is one.
func (b *binder) ofFloat(n *node, err error, x arrow.DataType) (*node, error) {
	if err != nil || x.ID() != arrow.FLOAT32 {
		return n, err
	}
	return b.castTo(n, x)
}

// float1 is a function of a number, in its own type if it is a float and else in
// double.
func (b *binder) float1(e *call, arg *node, of func(float64) float64) (*node, error) {
	double := arrow.PrimitiveTypes.Float64
	x, err := b.castTo(arg, double)
	if err != nil {
		return nil, err
	}
	n := b.make(e.span, double, false, func(f *frame, vs []vector) (vector, error) {
		return eachNumber(f, vs[0], vs[0], double, func(a, _ float64) (float64, error) { return of(a), nil })
	}, x)
	return b.ofFloat(n, nil, arg.typ)
}

func signum(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	case x == 0:
		return 0
	}
	return x
}

// log2 and log10 are exact where Go's are not: of powers.
func log2(x float64) float64 {
	frac, exp := math.Frexp(x)
	if frac == 0.5 {
		return float64(exp - 1)
	}
	return math.Log2(x)
}

func log10(x float64) float64 {
	y := math.Log10(x)
	if r := math.Round(y); math.Abs(r) < 300 && math.Abs(y-r) < 1e-12 && powi(10, int32(r)) == x {
		return r
	}
	return y
}

// powi is x to the power of a whole number, multiplied as compilers do.
func powi(x float64, n int32) float64 {
	below, y := n < 0, 1.0
	for m := max(int64(n), -int64(n)); m > 0; m /= 2 {
		if m%2 == 1 {
			y *= x
		}
		x *= x
	}
	if below {
		return 1 / y
	}
	return y
}

// digitsOf is the second argument of round and trunc, zero if there is none.
func (b *binder) digitsOf(e *call, args []*node, t arrow.DataType) (*node, error) {
	if len(args) < 2 {
		zero, err := constantOf(t, cell{})
		if err != nil {
			return nil, err
		}
		return b.value(e.span, zero), nil
	}
	n, err := b.castTo(args[1], t)
	if err != nil {
		return nil, err
	}
	return b.castTo(n, arrow.PrimitiveTypes.Int64)
}

// scaled is a function of a number whose last digit counts, and how many digits there
// are behind the point.
func (b *binder) scaled(e *call, args []*node, count arrow.DataType, of func(x float64) float64) (*node, error) {
	t := args[0].typ
	digits, err := b.digitsOf(e, args, count)
	if err != nil {
		return nil, err
	}
	if digits, err = b.castTo(digits, arrow.PrimitiveTypes.Int64); err != nil {
		return nil, err
	}
	x, err := b.castTo(args[0], arrow.PrimitiveTypes.Float64)
	if err != nil {
		return nil, err
	}
	single := t.ID() == arrow.FLOAT32
	n, err := numbersOf(b, e, arrow.PrimitiveTypes.Float64, false, func(r *row) (float64, error) {
		d := r.n(1)
		if d == 0 {
			return of(r.f(0)), nil
		}
		factor := powi(10, int32(d))
		if single { // as the engine computes it, step by step in float
			factor = float64(powi32(10, int32(d)))
			return float64(float32(of(float64(float32(r.f(0))*float32(factor)))) / float32(factor)), nil
		}
		return of(r.f(0)*factor) / factor, nil
	}, x, digits)
	return b.ofFloat(n, err, t)
}

func powi32(x float32, n int32) float32 {
	below, y := n < 0, float32(1)
	for m := max(int64(n), -int64(n)); m > 0; m /= 2 {
		if m%2 == 1 {
			y *= x
		}
		x *= x
	}
	if below {
		return 1 / y
	}
	return y
}

func (b *binder) trunc(e *call, args []*node) (*node, error) {
	return b.scaled(e, args, arrow.PrimitiveTypes.Int64, math.Trunc)
}

func (b *binder) round(e *call, args []*node) (*node, error) {
	if familyOf(args[0].typ) == famDecimal {
		return b.roundDecimal(e, args)
	}
	return b.scaled(e, args, arrow.PrimitiveTypes.Int32, math.Round)
}

// roundDecimal rounds decimals. With a constant number of digits the type has no more
// of them; else it has one more before the point, for what is rounded up.
func (b *binder) roundDecimal(e *call, args []*node) (*node, error) {
	digits, err := b.digitsOf(e, args, arrow.PrimitiveTypes.Int32)
	if err != nil {
		return nil, err
	}
	if digits, err = b.castTo(digits, arrow.PrimitiveTypes.Int64); err != nil {
		return nil, err
	}
	precision, scale, wide := decimalType(args[0].typ)
	to := newDecimalType(precision+1, scale, wide)
	if digits.constant && !digits.fallible {
		v, err := digits.eval(constantFrame())
		if err != nil {
			return nil, err
		}
		left := scale
		if v.IsValid(0) {
			left = int32(min(max(values[int64](v.Array)[0], 0), int64(scale)))
		}
		to = newDecimalType(precision, left, wide)
	}
	_, newScale, _ := decimalType(to)
	return b.make(e.span, to, true, func(f *frame, vs []vector) (vector, error) {
		n, one := f.length(vs...)
		valid, _ := f.validity(n, vs...)
		in, out, digits := decimalsOf(vs[0].Array), newDecimalBuilder(to), values[int64](vs[1].Array)
		var x big.Int
		for i := range n {
			if valid != nil && !bitutil.BitIsSet(valid, i) {
				out.appendNull()
				continue
			}
			d := int32(min(max(digits[i*vs[1].step()], -2*maxPrecision256), int64(scale)))
			rounded := rescale(rescale(in.value(&x, i*vs[0].step()), scale, d), d, newScale)
			if err := out.append(rounded); err != nil {
				out.finish().Release()
				return vector{}, err
			}
		}
		return vector{f.own(out.finish()), one}, nil
	}, args[0], digits), nil
}

func (b *binder) log(e *call, args []*node) (*node, error) {
	if len(args) == 1 {
		return b.float1(e, args[0], log10)
	}
	t := args[1].typ
	if err := b.castEach(args, arrow.PrimitiveTypes.Float64); err != nil {
		return nil, err
	}
	n, err := numbersOf(b, e, arrow.PrimitiveTypes.Float64, false, func(r *row) (float64, error) { return math.Log(r.f(1)) / math.Log(r.f(0)), nil }, args...)
	return b.ofFloat(n, err, t)
}

var errZeroPower = errors.New("zero to a power below zero is not defined")

func (b *binder) power(e *call, args []*node) (*node, error) {
	if err := b.castEach(args, arrow.PrimitiveTypes.Float64); err != nil {
		return nil, err
	}
	return numbersOf(b, e, arrow.PrimitiveTypes.Float64, true, func(r *row) (float64, error) {
		x, y := r.f(0), r.f(1)
		if x == 0 && y < 0 {
			return 0, errZeroPower
		}
		return math.Pow(x, y), nil
	}, args...)
}

// extreme is the greatest argument, or with a sign below zero the least.
func (b *binder) extreme(e *call, args []*node, sign int) (*node, error) {
	args, t, err := b.commonOf(e.span, args)
	if err != nil {
		return nil, err
	}
	if familyOf(t) == famNull {
		return b.nullOf(e.span, t), nil
	}
	if !isScalar(t) {
		return nil, b.src.unsupportedf(e.span, "%s of values of type %s", e.name, typeText(t))
	}
	above := orderOf(familyOf(t))
	return b.make(e.span, t, false, func(f *frame, vs []vector) (vector, error) {
		n, one := f.length(vs...)
		out := newCellBuilder(t)
		defer out.Release()
		readers := make([]func(int) cell, len(vs))
		for j, v := range vs {
			readers[j] = cellReader(v.Array)
		}
		for i := range n {
			var best cell
			found := false
			for j, v := range vs {
				at := i * v.step()
				if v.IsNull(at) {
					continue
				}
				if c := readers[j](at); !found || above(c, best)*sign > 0 {
					best, found = c, true
				}
			}
			if !found {
				out.AppendNull()
			} else if err := out.add(best); err != nil {
				return vector{}, err
			}
		}
		return vector{f.own(out.NewArray()), one}, nil
	}, args...), nil
}

// toHex writes whole numbers as their bits.
func (b *binder) toHex(e *call, args []*node) (*node, error) {
	return b.make(e.span, arrow.BinaryTypes.String, false, func(f *frame, vs []vector) (vector, error) {
		read, signed := cellReader(vs[0].Array), familyOf(vs[0].DataType()) == famInt
		return f.rowStrings(arrow.BinaryTypes.String, func(i int) (string, bool) {
			c := read(i * vs[0].step())
			if signed {
				c.u = uint64(c.i)
			}
			return formatHex(c.u), true
		}, vs...), nil
	}, args...), nil
}
