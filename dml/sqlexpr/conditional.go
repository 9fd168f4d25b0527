package sqlexpr

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// commonOf casts branches to their common type.
func (b *binder) commonOf(at span, ns []*node) ([]*node, arrow.DataType, error) {
	var typ arrow.DataType = arrow.Null
	out := make([]*node, len(ns))
	for i, n := range ns {
		out[i] = b.plain(n)
		t, err := common(typ, out[i].typ)
		if err != nil {
			return nil, nil, b.src.errorf(at, "%w", err)
		}
		typ = t
	}
	for i, n := range out {
		cast, err := b.castTo(n, typ)
		if err != nil {
			return nil, nil, err
		}
		out[i] = cast
	}
	return out, typ, nil
}

// caseOf binds CASE. Each branch is evaluated only for the rows that take it.
func (b *binder) caseOf(e *caseOf) (*node, error) {
	var conditions []*node
	var x *node
	if e.x != nil {
		var err error
		if x, err = b.bind(e.x); err != nil {
			return nil, err
		}
		x = share(x)
	}
	for _, w := range e.when {
		var c *node
		var err error
		if x != nil {
			var value *node
			if value, err = b.beside(w, x, isColumn(e.x)); err == nil {
				c, err = b.compare(w.place(), "=", x, value, false)
			}
		} else if c, err = b.bind(w); err == nil {
			c, err = b.boolean(c)
		}
		if err != nil {
			return nil, err
		}
		conditions = append(conditions, c)
	}
	branches, err := b.bindAll(e.then...)
	if err != nil {
		return nil, err
	}
	if e.other != nil {
		other, err := b.bind(e.other)
		if err != nil {
			return nil, err
		}
		branches = append(branches, other)
	}
	branches, typ, err := b.commonOf(e.span, branches)
	if err != nil {
		return nil, err
	}
	return b.choice(e.span, typ, conditions, branches), nil
}

// choice takes each row's value from the first branch whose condition is true, else
// from the branch after those of the conditions, if there is one.
func (b *binder) choice(at span, typ arrow.DataType, conditions, branches []*node) *node {
	n := &node{at: at, typ: typ, fallible: false}
	for _, in := range append(append([]*node(nil), conditions...), branches...) {
		n.fallible = n.fallible || in.fallible
	}
	n.eval = func(f *frame) (vector, error) {
		var pieces []piecewise
		rest, rows := f, allRows(f.rows)
		for i, branch := range branches {
			taken := rows
			part := rest
			if i < len(conditions) {
				c, err := conditions[i].eval(rest)
				if err != nil {
					return vector{}, err
				}
				yes, no := rest.rowsWhere(c, true), rest.rowsWhere(c, false)
				taken, part = selectRows(rows, yes), rest.part(yes)
				rows, rest = selectRows(rows, no), rest.part(no)
			}
			if len(taken) == 0 {
				continue
			}
			v, err := branch.eval(part)
			if err != nil {
				return vector{}, err
			}
			pieces = append(pieces, piecewise{taken, v})
			if len(rows) == 0 {
				break
			}
		}
		return scatter(f, typ, pieces)
	}
	return n
}

func allRows(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

func selectRows(rows, which []int) []int {
	out := make([]int, len(which))
	for i, w := range which {
		out[i] = rows[w]
	}
	return out
}

// coalesce is the first value that is not null. An argument is evaluated for the rows
// that those before it left null.
func (b *binder) coalesce(at span, args []*node) (*node, error) {
	args, typ, err := b.commonOf(at, args)
	if err != nil {
		return nil, err
	}
	conditions := make([]*node, len(args)-1)
	for i := range conditions {
		args[i] = share(args[i])
		conditions[i] = b.make(args[i].at, arrow.FixedWidthTypes.Boolean, false, func(f *frame, vs []vector) (vector, error) { return isNull(f, vs[0], true), nil }, args[i])
	}
	return b.choice(at, typ, conditions, args), nil
}

// nullif is null where two values are equal, else the first, in their common type.
func (b *binder) nullif(at span, args []*node) (*node, error) {
	args, typ, err := b.commonOf(at, args)
	if err != nil {
		return nil, err
	}
	args[0] = share(args[0])
	equal, err := b.compare(at, "=", args[0], args[1], false)
	if err != nil {
		return nil, err
	}
	return b.choice(at, typ, []*node{equal}, []*node{b.nullOf(at, typ), args[0]}), nil
}
