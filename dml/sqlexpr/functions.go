package sqlexpr

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
)

// functionsByName are the functions by their names and aliases, no two of which are
// alike: a test sees to that.
var functionsByName = sync.OnceValue(func() map[string]*Function {
	out := map[string]*Function{}
	for _, f := range Functions() {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			out[name] = f
		}
	}
	return out
})

// Functions returns the functions of the language, group by group.
func Functions() []*Function {
	var out []*Function
	for _, g := range []struct {
		name string
		of   []*Function
	}{
		{"Nulls and choices", choiceFunctions()},
		{"Numbers", numberFunctions()},
		{"Text", textFunctions()},
		{"Patterns", patternFunctions()},
		{"Dates and times", dateFunctions()},
		{"Lists", append(listFunctions(), listMakers()...)},
		{"Bytes and digests", byteFunctions()},
	} {
		for _, f := range g.of {
			f.Group = g.name
			out = append(out, f)
		}
	}
	return out
}

func (b *binder) call(e *call) (*node, error) {
	fn := functionsByName()[e.name]
	if fn == nil {
		var names []arrow.Field
		for _, name := range slices.Sorted(maps.Keys(functionsByName())) {
			names = append(names, arrow.Field{Name: name})
		}
		hint := similar(e.name, names)
		if !strings.HasPrefix(hint, ", similar") {
			hint = "" // all of them are too many
		}
		return nil, b.src.unsupportedf(e.span, "the function %s%s; docs/sql.md lists those that there are", e.name, hint)
	}
	least, most := fn.Arity()
	if n := len(e.args); n < least || most >= 0 && n > most {
		return nil, b.src.errorf(e.span, "%s with %d arguments: write %s", e.name, n, fn.Signature())
	}
	args, err := b.bindAll(e.args...)
	if err != nil {
		return nil, err
	}
	for i := range args {
		args[i] = b.plain(args[i])
		if err := b.takes(e, fn.Param(i), args[i]); err != nil {
			return nil, err
		}
	}
	return fn.bind(b, e, args)
}

// takes checks that an argument is of a type that its function takes.
func (b *binder) takes(e *call, p Param, arg *node) error {
	if familyOf(arg.typ) != famNull && p.Kinds != KindAny && KindOf(arg.typ)&p.Kinds == 0 {
		return b.src.errorf(arg.at, "%s of %s is for %s, and this is of type %s", p.Name, e.name, strings.Join(p.Kinds.names(true), " or "), typeText(arg.typ))
	}
	if p.Constant && !arg.constant {
		return b.src.unsupportedf(arg.at, "%s with a %s that is not a constant", e.name, p.Name)
	}
	return nil
}

func choiceFunctions() []*Function {
	x, value := param("x", KindAny), param("value", KindAny)
	return []*Function{
		{Name: "coalesce", Params: []Param{x}, Variadic: true, Result: "the common type", Nulls: NullIgnored, Doc: "the first argument that is not null", Differs: "64 unsigned bits beside signed ones are exact here, and have 7 digits in engines",
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.coalesce(e.span, args) }},
		{Name: "nvl", Aliases: []string{"ifnull"}, Params: []Param{x, value}, Result: "the common type", Nulls: NullIgnored, Doc: "x, or the value where x is null", Differs: "64 unsigned bits beside signed ones are exact here, and have 7 digits in engines",
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.coalesce(e.span, args) }},
		{Name: "nullif", Params: []Param{x, value}, Result: "the common type", Nulls: NullSpecial, Doc: "null where x is equal to the value, else x", Differs: "-0.0 is 0 here",
			bind: func(b *binder, e *call, args []*node) (*node, error) { return b.nullif(e.span, args) }},
		{Name: "is_valid", Params: []Param{x}, Result: "boolean", Nulls: NullSpecial, Doc: "whether x is not null", Differs: "Lance has it in conditions only",
			bind: func(b *binder, e *call, args []*node) (*node, error) {
				return b.make(e.span, arrow.FixedWidthTypes.Boolean, false, func(f *frame, vs []vector) (vector, error) { return isNull(f, vs[0], true), nil }, args[0]), nil
			}},
	}
}
