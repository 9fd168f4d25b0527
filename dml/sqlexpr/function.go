package sqlexpr

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Function describes a function of the language. What it computes follows DataFusion,
// as pylance 14 has it, unless Differs says otherwise.
type Function struct {
	// Name is how the function is called, in lower case; Aliases are its other names.
	Name    string
	Aliases []string
	// Group is the heading that it stands under in docs/sql.md.
	Group string
	// Params are the arguments. The last one may be repeated if Variadic is set.
	Params   []Param
	Variadic bool
	// Result names the type of the values.
	Result string
	// Nulls says what a null among the arguments does.
	Nulls NullRule
	// Doc is one line of description.
	Doc string
	// Differs says in what engines are unlike it or lack it; empty: in nothing known.
	Differs string
	// Changing says that the value depends on when the statement is made.
	Changing bool

	bind func(b *binder, e *call, args []*node) (*node, error)
}

// Param describes an argument of a function.
type Param struct {
	Name string
	// Kinds are the types that are taken.
	Kinds Kinds
	// Optional says that the argument can be left out, with all that follow.
	Optional bool
	// Constant says that the argument must be the same for every row.
	Constant bool
	// Samples are arguments that make sense, as SQL. Without any, all values of the
	// type do.
	Samples []string
}

// NullRule says what a null among the arguments of a function does.
type NullRule uint8

// The rules for nulls.
const (
	NullIfAny   NullRule = iota // the result is null if any argument is
	NullIgnored                 // nulls are left out
	NullSpecial                 // the description says what happens
)

// Kinds is a set of families of types.
type Kinds uint16

// The families of types that arguments have.
const (
	KindText Kinds = 1 << iota
	KindBytes
	KindWhole
	KindFloat
	KindDecimal
	KindBool
	KindDate
	KindTimestamp
	KindTime
	KindDuration
	KindList
	KindStruct

	KindNumber = KindWhole | KindFloat | KindDecimal
	KindAny    = KindStruct<<1 - 1
)

// kindNames are what messages and the documentation call sets of types.
var kindNames = []struct {
	kinds  Kinds
	name   string
	plural string
}{
	{KindAny, "any", "values"}, {KindNumber, "number", "numbers"}, {KindText, "text", "strings"}, {KindBytes, "bytes", "bytes"}, {KindWhole, "whole number", "whole numbers"},
	{KindFloat, "float", "floats"}, {KindDecimal, "decimal", "decimals"}, {KindBool, "boolean", "booleans"}, {KindDate, "date", "dates"}, {KindTimestamp, "timestamp", "timestamps"},
	{KindTime, "time", "times"}, {KindDuration, "duration", "durations"}, {KindList, "list", "lists"}, {KindStruct, "struct", "structs"},
}

func (k Kinds) names(plural bool) []string {
	var out []string
	for _, n := range kindNames {
		if k&n.kinds == n.kinds {
			k &^= n.kinds
			if plural {
				out = append(out, n.plural)
			} else {
				out = append(out, n.name)
			}
		}
	}
	return out
}

// String names the types: "text or bytes".
func (k Kinds) String() string { return strings.Join(k.names(false), " or ") }

// KindOf is the set that a type is in, none for one that no function takes.
func KindOf(t arrow.DataType) Kinds {
	return map[family]Kinds{
		famString: KindText, famBinary: KindBytes, famInt: KindWhole, famUint: KindWhole, famFloat: KindFloat, famDecimal: KindDecimal, famBool: KindBool,
		famDate: KindDate, famTimestamp: KindTimestamp, famTime: KindTime, famDuration: KindDuration, famList: KindList, famStruct: KindStruct,
	}[familyOf(t)]
}

func param(name string, k Kinds) Param { return Param{Name: name, Kinds: k} }

func (p Param) optional() Param { p.Optional = true; return p }

func (p Param) constant() Param { p.Constant = true; return p }

// like gives an argument samples.
func (p Param) like(samples ...string) Param { p.Samples = samples; return p }

// Arity is how many arguments the function takes; most is below zero if there is no
// bound.
func (f *Function) Arity() (least, most int) {
	for _, p := range f.Params {
		if !p.Optional {
			least++
		}
	}
	if f.Variadic {
		return least, -1
	}
	return least, len(f.Params)
}

// Param is the i-th argument.
func (f *Function) Param(i int) Param {
	return f.Params[min(i, len(f.Params)-1)]
}

// Signature is how the function is written: "round(x[, digits])".
func (f *Function) Signature() string {
	var b strings.Builder
	b.WriteString(f.Name + "(")
	open := 0
	for i, p := range f.Params {
		if p.Optional {
			b.WriteByte('[')
			open++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(p.Name)
	}
	if f.Variadic {
		b.WriteString(", …")
	}
	return b.String() + strings.Repeat("]", open) + ")"
}
