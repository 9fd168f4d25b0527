package sqlexpr

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// text casts to a string unless it is one.
func (b *binder) text(n *node) (*node, error) {
	if familyOf(n.typ) == famString {
		return n, nil
	}
	return b.castTo(n, arrow.BinaryTypes.String)
}

// concatOperator is l || r: null if one is. One of them must be a string, or both
// bytes.
func (b *binder) concatOperator(at span, l, r *node) (*node, error) {
	l, r = b.plain(l), b.plain(r)
	lf, rf := familyOf(l.typ), familyOf(r.typ)
	if lf == famBinary && rf == famBinary {
		bin := arrow.BinaryTypes.Binary
		return b.make(at, bin, false, func(f *frame, vs []vector) (vector, error) {
			joined := f.rowStrings(arrow.BinaryTypes.String, func(i int) (string, bool) {
				return stringsOf(vs[0].Array).Value(i*vs[0].step()) + stringsOf(vs[1].Array).Value(i*vs[1].step()), true
			}, vs...)
			return castVector(f, joined, bin, false)
		}, l, r), nil
	}
	if lf != famString && rf != famString {
		return nil, b.src.errorf(at, "|| joins strings, not %s and %s", typeText(l.typ), typeText(r.typ))
	}
	t := stringType(l.typ)
	if r.typ.ID() == arrow.LARGE_STRING {
		t = r.typ
	}
	l, err := b.text(l)
	if err != nil {
		return nil, err
	}
	if r, err = b.text(r); err != nil {
		return nil, err
	}
	return b.make(at, t, false, func(f *frame, vs []vector) (vector, error) {
		ls, rs := stringsOf(vs[0].Array), stringsOf(vs[1].Array)
		return f.rowStrings(t, func(i int) (string, bool) { return ls.Value(i*vs[0].step()) + rs.Value(i*vs[1].step()), true }, vs...), nil
	}, l, r), nil
}
