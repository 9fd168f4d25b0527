package sqlexpr

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
)

// function is a function of SQL, and what docs/sql.md says of it.
type function struct {
	// group is the heading it is listed below. names are its name and then its aliases.
	group, names string
	// args, result and nulls say what it takes, what it gives, and what a null argument
	// makes of it; empty means null.
	args, result, nulls string
	about               string
	// least and most are the numbers of arguments; most below zero means any number.
	least, most int
	bind        func(b *binder, e *call, args []*node) (*node, error)
}

// as describes a function.
func (f function) as(names, args, result, about string) function {
	f.names, f.args, f.result, f.about = names, args, result, about
	return f
}

func (f function) withNulls(rule string) function { f.nulls = rule; return f }

// of is a function of some arguments.
func of(least, most int, bind func(b *binder, e *call, args []*node) (*node, error)) function {
	return function{least: least, most: most, bind: bind}
}

// functions is the table of all functions, in the order of docs/sql.md.
func functions() []function {
	var all []function
	for _, g := range []struct {
		name string
		fns  []function
	}{
		{"Nulls and choice", choiceFunctions()}, {"Numbers", numberFunctions()}, {"Text", textFunctions()},
		{"Patterns and digests", patternFunctions()}, {"Dates and times", dateFunctions()}, {"Lists", listFunctions()},
	} {
		for _, f := range g.fns {
			f.group = g.name
			all = append(all, f)
		}
	}
	return all
}

// functionsByName finds functions by their names and aliases.
var functionsByName = sync.OnceValue(func() map[string]function {
	byName := map[string]function{}
	for _, f := range functions() {
		for _, name := range strings.Fields(f.names) {
			byName[name] = f
		}
	}
	return byName
})

// functionPage is the list of functions in Markdown.
func functionPage() string {
	var sb strings.Builder
	group := ""
	for _, f := range functions() {
		if f.group != group {
			group = f.group
			fmt.Fprintf(&sb, "\n| %s | result | a null argument gives | |\n|---|---|---|---|\n", group)
		}
		names := strings.Fields(f.names)
		also := ""
		if len(names) > 1 {
			also = " Also `" + strings.Join(names[1:], "`, `") + "`."
		}
		nulls := f.nulls
		if nulls == "" {
			nulls = "null"
		}
		fmt.Fprintf(&sb, "| `%s(%s)` | %s | %s | %s%s |\n", names[0], f.args, f.result, nulls, f.about, also)
	}
	return sb.String() + "\n"
}

func choiceFunctions() []function {
	coalesce := func(b *binder, e *call, args []*node) (*node, error) { return b.coalesce(e.span, args) }
	return []function{
		of(1, -1, coalesce).as("coalesce", "x, …", "the common type", "The first that is not null.").withNulls("the next"),
		of(2, 2, coalesce).as("ifnull nvl", "x, y", "the common type", "x, or y if x is null.").withNulls("y"),
		of(2, 2, func(b *binder, e *call, args []*node) (*node, error) { return b.nullif(e.span, args) }).
			as("nullif", "x, y", "the common type", "Null where both are equal, else x.").withNulls("x"),
		of(1, maxChoices, func(b *binder, e *call, args []*node) (*node, error) { return b.extreme(e, ">=", args) }).
			as("greatest", "x, …", "the common type", "The greatest; NaN is above all numbers.").withNulls("the others' greatest"),
		of(1, maxChoices, func(b *binder, e *call, args []*node) (*node, error) { return b.extreme(e, "<=", args) }).
			as("least", "x, …", "the common type", "The least.").withNulls("the others' least"),
		of(1, 1, func(b *binder, e *call, args []*node) (*node, error) {
			return b.make(e.span, arrow.FixedWidthTypes.Boolean, false, func(f *frame, vs []vector) (vector, error) { return isNull(f, vs[0], true), nil }, args[0]), nil
		}).as("is_valid", "x", "boolean", "Whether x is not null.").withNulls("false"),
	}
}

func numberFunctions() []function {
	fns := []function{
		of(1, 1, (*binder).abs).as("abs", "x", "as x", "The size without the sign; an error if it does not fit."),
		of(1, 1, (*binder).isNaN).as("isnan", "x", "boolean", "Whether x is NaN."),
		of(2, 2, (*binder).power).as("power pow", "x, y", "double", "x to the power of y."),
	}
	for _, f := range []struct {
		name, about string
		of          func(float64) float64
	}{
		{"ceil", "The next whole number above.", math.Ceil}, {"floor", "The next whole number below.", math.Floor},
		{"round", "The nearest whole number, halves away from zero.", math.Round}, {"trunc", "x without its fraction.", math.Trunc},
		{"sqrt", "The square root.", math.Sqrt}, {"cbrt", "The cube root.", math.Cbrt}, {"exp", "e to the power of x.", math.Exp},
		{"ln", "The natural logarithm.", math.Log}, {"log2", "The logarithm to base 2.", math.Log2}, {"log10", "The logarithm to base 10.", math.Log10},
		{"sin", "The sine of x in radians.", math.Sin}, {"cos", "The cosine.", math.Cos}, {"tan", "The tangent.", math.Tan},
		{"signum", "-1, 0 or 1.", signum},
	} {
		fns = append(fns, float1(f.of).as(f.name, "x", "float of a float, else double", f.about))
	}
	return fns
}

func textFunctions() []function {
	return []function{
		string1(lower).as("lower", "s", "string", "In small letters."),
		string1(strings.ToUpper).as("upper", "s", "string", "In capital letters."),
		string1(initcap).as("initcap", "s", "string", "Each word with a capital first letter."),
		string1(reverse).as("reverse", "s", "string", "The characters backwards."),
		of(1, 1, (*binder).length).as("length char_length character_length", "s", "int", "How many characters."),
		of(1, 1, (*binder).octetLength).as("octet_length", "s", "int", "How many bytes."),
		of(1, 1, (*binder).bitLength).as("bit_length", "s", "int", "How many bits."),
		of(1, -1, (*binder).concat).as("concat", "x, …", "string", "The texts one after the other.").withNulls("nothing added"),
		of(2, -1, (*binder).concatWS).as("concat_ws", "separator, x, …", "string", "The texts with a separator between them.").withNulls("left out; null if the separator is"),
		string2(strings.HasPrefix).as("starts_with", "s, t", "boolean", "Whether s begins with t."),
		string2(strings.HasSuffix).as("ends_with", "s, t", "boolean", "Whether s ends with t."),
		string2(strings.Contains).as("contains", "s, t", "boolean", "Whether t is in s."),
		of(2, 2, (*binder).strpos).as("strpos", "s, t", "int", "The place of t in s, from 1; 0 if there is none."),
		of(3, 3, (*binder).replace).as("replace", "s, from, to", "string", "With each from replaced."),
		trimming(strings.Trim).as("trim btrim", "s [, characters]", "string", "Without spaces, or the characters, at both ends."),
		trimming(strings.TrimLeft).as("ltrim", "s [, characters]", "string", "The same at the start."),
		trimming(strings.TrimRight).as("rtrim", "s [, characters]", "string", "The same at the end."),
		slicing(func(s []rune, n []int64) []rune { return s[:clamp(fromEnd(n[0], len(s)), len(s))] }, 2, 2).
			as("left", "s, n", "string", "The first n characters; all but the last -n."),
		slicing(func(s []rune, n []int64) []rune { return s[len(s)-clamp(fromEnd(n[0], len(s)), len(s)):] }, 2, 2).
			as("right", "s, n", "string", "The last n characters; all but the first -n."),
		slicing(substring, 2, 3).as("substr substring", "s, from [, n]", "string", "n characters from the place `from`, counted from 1."),
		rowText("ssi", splitPart).as("split_part", "s, delimiter, n", "string", "The n-th part, from 1; below zero from the end."),
		rowText("ssi", substrIndex).as("substr_index substring_index", "s, delimiter, n", "string", "What is before the n-th delimiter; below zero, after it from the end."),
		rowText("si", repeat).as("repeat", "s, n", "string", "s n times. "+textLimits),
		rowText("sis", lpad).upTo(2).as("lpad", "s, n [, fill]", "string", "n characters, filled or cut; filled at the start. "+textLimits),
		rowText("sis", rpad).upTo(2).as("rpad", "s, n [, fill]", "string", "The same, filled at the end."),
	}
}

// upTo makes the arguments after the first n optional.
func (f function) upTo(n int) function { f.least = n; return f }

func patternFunctions() []function {
	return []function{
		of(2, 3, (*binder).regexpLike).as("regexp_like regexp_match", "s, pattern [, flags]", "boolean", "Whether a regular expression matches anywhere. Flags: `i`, `m`, `s`."),
		of(3, 4, (*binder).regexpReplace).as("regexp_replace", "s, pattern, to [, flags]", "string", "With the first match replaced; with flag `g` all. `$1` or `\\1` is a group."),
		digest(md5Hex, arrow.BinaryTypes.String).as("md5", "x", "string", "The MD5 digest in hexadecimal."),
		digest(sha224, arrow.BinaryTypes.Binary).as("sha224", "x", "binary", "The SHA-224 digest."),
		digest(sha256sum, arrow.BinaryTypes.Binary).as("sha256", "x", "binary", "The SHA-256 digest."),
		digest(sha384, arrow.BinaryTypes.Binary).as("sha384", "x", "binary", "The SHA-384 digest."),
		digest(sha512sum, arrow.BinaryTypes.Binary).as("sha512", "x", "binary", "The SHA-512 digest."),
	}
}

func dateFunctions() []function {
	fns := []function{
		of(0, 0, (*binder).now).as("now current_timestamp", "", "timestamp(9)", "When the text was read, in UTC: one value for all rows and attempts.").withNulls("–"),
		of(0, 0, (*binder).today).as("current_date today", "", "date", "The day of `now()`.").withNulls("–"),
		of(2, 2, (*binder).datePart).as("date_part", "part, x", "int", "`year` `quarter` `month` `week` `day` `doy` `dow` `hour` `minute` `second`."),
		of(2, 2, (*binder).dateTrunc).as("date_trunc", "part, x", "timestamp", "The beginning of the part that x is in."),
		of(1, 1, casting(arrow.FixedWidthTypes.Date32)).as("to_date", "x", "date", "The day of a text or a timestamp."),
	}
	for _, f := range []struct {
		names, about string
		unit         arrow.TimeUnit
	}{
		{"to_timestamp_seconds", "Of a number of seconds, or a text.", arrow.Second}, {"to_timestamp_millis", "Of milliseconds.", arrow.Millisecond},
		{"to_timestamp_micros", "Of microseconds.", arrow.Microsecond}, {"to_timestamp_nanos", "Of nanoseconds.", arrow.Nanosecond},
	} {
		fns = append(fns, of(1, 1, casting(timestampOf(f.unit))).as(f.names, "x", "timestamp("+fmt.Sprint(3*int(f.unit))+")", f.about))
	}
	return append(fns, of(1, 1, (*binder).fromUnixtime).as("from_unixtime", "n", "timestamp(0)", "Of a number of seconds."),
		of(1, 1, (*binder).toTimestamp).as("to_timestamp", "x", "timestamp(9)", "Of a number of seconds, or a text."))
}

func listFunctions() []function {
	return []function{
		of(2, 2, (*binder).arrayHas).as("array_has array_contains list_has list_contains", "l, x", "boolean", "Whether x is in the list."),
		of(2, 2, (*binder).arrayHasAny).as("array_has_any", "l, m", "boolean", "Whether some value of m is in l."),
		of(2, 2, (*binder).arrayHasAll).as("array_has_all", "l, m", "boolean", "Whether all values of m are in l."),
		of(1, 1, (*binder).cardinality).as("array_length cardinality list_length", "l", "bigint unsigned", "How many values."),
		of(2, 2, func(b *binder, e *call, args []*node) (*node, error) { return b.element(e.span, args[0], args[1]) }).
			as("array_element list_element array_extract list_extract", "l, n", "as the values", "The n-th value, from 1; below zero from the end; null beyond the ends."),
	}
}
