package sqlexpr

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// expr is an expression as it was written, without types. The tree is ours, so that
// nothing else in the package knows the parser.
type expr interface{ place() span }

// at is the place of an expression in the text.
type at struct{ span span }

func (a at) place() span { return a.span }

type (
	// literal is a constant: nil, bool, int64, uint64, float64, string or []byte. Of
	// a number, digits is how it was written, which decimals need.
	literal struct {
		at
		value  any
		digits string
	}
	// column is a top-level column.
	column struct {
		at
		name   string
		quoted bool
	}
	// field is a field of a struct, or an element of a list.
	field struct {
		at
		of   expr
		name string   // of the field
		key  *literal // the name as a string in brackets, nil if it is after a dot
		elem expr     // of a list, instead of a name
	}
	unary struct {
		at
		op string // NOT or -
		x  expr
	}
	binary struct {
		at
		op string // AND OR = != < <= > >= + - * / % || << >>
		// nullsEqual makes = and != compare nulls as values.
		nullsEqual bool
		l, r       expr
	}
	// test is x IS [NOT] NULL, TRUE, FALSE.
	test struct {
		at
		x   expr
		is  string
		not bool
	}
	in struct {
		at
		x    expr
		list []expr
		not  bool
	}
	between struct {
		at
		x, low, high expr
		not          bool
	}
	like struct {
		at
		x, pattern expr
		not, fold  bool
		escape     rune
	}
	caseOf struct {
		at
		x          expr // nil: the conditions are predicates
		when, then []expr
		other      expr // nil: null
	}
	cast struct {
		at
		x   expr
		to  arrow.DataType
		try bool
	}
	call struct {
		at
		name string // in lower case
		args []expr
	}
	list struct {
		at
		elems []expr
	}
)

func (l *literal) String() string {
	switch v := l.value.(type) {
	case nil:
		return "NULL"
	case string:
		return fmt.Sprintf("%q", v)
	case []byte:
		return fmt.Sprintf("x'%x'", v)
	}
	return fmt.Sprint(l.value)
}
