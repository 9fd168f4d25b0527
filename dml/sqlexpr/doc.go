// Package sqlexpr evaluates the conditions and expressions of SQL over Arrow record
// batches: what rows a delete is about, what value an update gives.
//
//	p, err := sqlexpr.ParsePredicate("price > 10 and (name like 'x%' or name is null)")
//	columns, err := p.Columns(schema)      // price, name; or what is wrong with it
//	matching, err := p.Matches(ctx, batch) // one slot a row: true, false, null
//
// [Predicate] and [Expr] implement the interfaces of package dml of these names.
//
// # Language
//
// The dialect is that of Lance, and so is the meaning, which a real engine decided: a
// corpus of a thousand texts with its answers is in testdata.
//
//   - Names are case-sensitive, but a name without quotes finds a column that differs
//     in case if there is none that does not. Quoted are names in backticks; 'text'
//     and "text" are strings, in which the quote is doubled and a backslash is one.
//     LanceDB since 0.38 reads "text" as a name: if it is one the text is refused, see
//     readings.go. So is a condition that looks at no column.
//   - Operators: OR AND NOT, = <> != == < <= > >=, IS [NOT] NULL TRUE FALSE UNKNOWN
//     DISTINCT FROM, [NOT] IN BETWEEN LIKE ILIKE [ESCAPE], + - * / % << >> ||.
//     Comparisons do not chain.
//   - a.b and a['b'] are fields of a struct, a[1] is the first value of a list.
//   - CASE, CAST, TRY_CAST and x::type, date '2020-01-01', timestamp '2020-01-01 12:00:00',
//     interval '1 day', decimal(10,2) '1.50', x'00ff', ['a', 'b'].
//   - Functions: see [Functions], the table that docs/sql.md is written from.
//
// Whatever else SQL has is table.ErrUnsupported, with the piece of the text.
//
// # Meaning
//
// Logic has three values; a row matches if the condition is true, so neither false nor
// null does. The rest is what follows from types:
//
//   - A literal beside a column is one of the column's type if that has such a value.
//     So f = 0.1 finds the 0.1 of a column of 32-bit floats, and ts > '2020-01-01'
//     compares times.
//   - Else both sides are brought to a common type: double beside any number, the wider
//     of two whole numbers, a decimal for bigint beside bigint unsigned, the coarser
//     unit of two timestamps.
//   - A day beside a time begins at midnight, in UTC if the time has a zone. CAST makes
//     it midnight in that zone.
//   - Whole numbers wrap around, their division cuts off, and by zero is an error.
//     CAST cuts off too; a value that does not fit is an error, or null in TRY_CAST.
//   - Floats have a total order: NaN is equal to itself and above all numbers.
//   - Decimals are exact, with the precision and scale that Arrow gives the results.
//   - LIKE takes % and _ and a backslash before either; text is compared by code
//     point, lengths count characters.
//
// Where the engine refuses a text that has one plain meaning, this package often takes
// it (i > 1.5 for a column of whole numbers), and in a few places it means something
// else on purpose. All of these are in testdata, below "ours:", with the reason. The one
// to know is that the right side of AND and OR, and the branches of CASE and COALESCE,
// see only the rows that get there: b <> 0 AND a / b > 1 does not fail.
//
// # How it works
//
//	text -> tokens -> GoogleSQL -> tree -> nodes with types -> values
//	     scan     translate    parse   bind                eval
//
// The grammar is that of memefish, a parser of GoogleSQL, which is close enough: the
// tokens are translated (dialect.go) and the tree is turned into one of our own
// (syntax.go), so that nothing else knows the parser. Binding (bind.go) finds columns,
// gives every node a type and puts in casts; it is done once for the schema of a scan.
// A node computes a vector: one value for each row, or one for all.
//
// # Worked example
//
//	n + 1 > 2.5 and s like 'x%'       n int32, s utf8
//
//	AND                               bool
//	  >                               bool     in double, since 2.5 is one
//	    CAST(n + 1)                   double
//	      +                           int64    a literal in an expression is a bigint
//	        CAST(n)                   int64
//	        1                         int64    one value for all rows
//	    2.5                           double
//	  LIKE                            bool     a test for a prefix; no regular expression
//	    s, 'x%'
//
// # Invariants
//
//   - No text and no batch makes a panic: both are bounded or checked, and what is left
//     comes back as an error.
//   - A bound statement is immutable; all methods may be called concurrently.
//   - Constants are evaluated once, when the statement is bound.
//   - What an evaluation makes belongs to its frame and is released at its end, the
//     result excepted.
package sqlexpr
