package sqlexpr

import (
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Two dialects are in use on the same tables: that of pylance and old clients, in
// which double quotes make strings, and that of LanceDB since 0.38, in which they quote
// names. A text that both take and that means another thing in each must not be
// guessed at: a delete of the wrong rows cannot be seen. So a string in double quotes
// that is the name of a column is refused, with both readings.
//
// What is left of such mistakes is a misspelt name, "colour" != 'red', which compares
// two strings and is true of every row or of none. Nobody means that either, so a
// condition that looks at no column is refused: true and false say it plainly.

// readings is a look at how a statement can be read.
type readings struct {
	b *binder
	// same is the first condition that looks at no column.
	same expr
}

// look refuses a statement that has two readings. Conditions that look at no column
// are for later, see sameForAll: that there is no such function, say, comes first.
func (r *readings) look(e expr, condition bool) error {
	looks, err := r.walk(e)
	if err == nil && condition && !looks && !isConstant(e) {
		r.foundSame(e)
	}
	return err
}

// walk looks at an expression, and says whether that looks at a column.
func (r *readings) walk(e expr) (looks bool, err error) {
	switch x := e.(type) {
	case *literal:
		return false, r.doubleQuoted(x)
	case *column:
		return true, nil
	}
	parts := children(e)
	of := conditions(e)
	for i, part := range parts {
		at, err := r.walk(part)
		if err != nil {
			return false, err
		}
		if looks = looks || at; i < of && !at && !isConstant(part) {
			r.foundSame(part)
		}
	}
	if !looks && isTest(e) {
		r.foundSame(e)
	}
	return looks, nil
}

func (r *readings) foundSame(e expr) {
	if r.same == nil {
		r.same = e
	}
}

// sameForAll refuses a condition that looks at no column.
func (r *readings) sameForAll() error {
	if r.same == nil {
		return nil
	}
	at, hint := r.same.place(), ""
	if strings.Contains(r.b.src.sql[at.from:at.to], `"`) {
		hint = "; double quotes make strings here, a column is written in backticks"
	}
	return r.b.src.errorf(at, "a condition that looks at no column, and is the same for every row: write true or false if that is meant%s", hint)
}

// doubleQuoted refuses a string in double quotes that is the name of a column, too.
func (r *readings) doubleQuoted(e *literal) error {
	s, ok := e.value.(string)
	if !ok || !strings.HasPrefix(r.b.src.sql[e.span.from:], `"`) {
		return nil
	}
	name, ok := r.b.columnNamed(s)
	if !ok {
		return nil
	}
	return r.b.src.errorf(e.span, "two readings: the string %s, as in pylance, or the column %s, as in LanceDB since 0.38; write %[1]s for the string, %[2]s for the column",
		singleQuoted(s), backticked(name))
}

// columnNamed finds a column by a name that may differ in case, and may lack the
// table before it where two tables are side by side.
func (b *binder) columnNamed(name string) (string, bool) {
	fields := b.schema.Fields()
	for _, same := range []func(have string) bool{
		func(have string) bool { return have == name },
		func(have string) bool { return strings.EqualFold(have, name) },
		func(have string) bool {
			_, have, ok := strings.Cut(have, ".")
			return ok && strings.EqualFold(have, name)
		},
	} {
		if i := slices.IndexFunc(fields, func(f arrow.Field) bool { return same(f.Name) }); i >= 0 {
			return fields[i].Name, true
		}
	}
	return "", false
}

func singleQuoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func backticked(s string) string { return "`" + strings.ReplaceAll(s, "`", "``") + "`" }

// isTest says whether an expression tests values.
func isTest(e expr) bool {
	switch e := e.(type) {
	case *binary:
		switch e.op {
		case "=", "!=", "<", "<=", ">", ">=":
			return true
		}
	case *test, *in, *between, *like:
		return true
	}
	return false
}

// isConstant says whether a condition that looks at no column says so: it is TRUE, FALSE
// or NULL, or made of such, which the walk has seen.
func isConstant(e expr) bool {
	switch e := e.(type) {
	case *literal:
		return true
	case *unary:
		return e.op == "NOT"
	case *binary:
		return e.op == "AND" || e.op == "OR"
	}
	return false
}

// conditions is how many of the first children of an expression stand where a condition
// is expected.
func conditions(e expr) int {
	switch e := e.(type) {
	case *unary, *binary:
		if isConstant(e) {
			return len(children(e))
		}
	case *caseOf:
		if e.x == nil {
			return len(e.when)
		}
	}
	return 0
}

// children are the parts of an expression.
func children(e expr) []expr {
	switch e := e.(type) {
	case *field:
		parts := []expr{e.of}
		if e.key != nil {
			parts = append(parts, e.key)
		}
		if e.elem != nil {
			parts = append(parts, e.elem)
		}
		return parts
	case *unary:
		return []expr{e.x}
	case *binary:
		return []expr{e.l, e.r}
	case *test:
		return []expr{e.x}
	case *in:
		return append([]expr{e.x}, e.list...)
	case *between:
		return []expr{e.x, e.low, e.high}
	case *like:
		return []expr{e.x, e.pattern}
	case *caseOf:
		var parts []expr
		if e.x != nil {
			parts = append(parts, e.x)
		}
		parts = append(append(parts, e.when...), e.then...)
		if e.other != nil {
			parts = append(parts, e.other)
		}
		return parts
	case *cast:
		return []expr{e.x}
	case *call:
		return e.args
	case *list:
		return e.elems
	}
	return nil // a literal, a column
}
