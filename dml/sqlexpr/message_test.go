package sqlexpr_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml/sqlexpr"
	"github.com/rehome-db/rehome/table"
)

// What is said about texts: the columns that they use, their types, and what is wrong
// with them. One text a line.
func TestMessages(t *testing.T) { runMessages(t, "testdata/messages") }

// What means two things in pylance's and LanceDB's dialects is refused, and so is what
// means the same for every row.
func TestReport03TwoReadings(t *testing.T) { runMessages(t, "testdata/readings") }

func runMessages(t *testing.T, dir string) {
	rec := readBatch(t, "rows.arrow")
	schema := schemaOf(rec)
	kind := func(err error) string {
		switch {
		case errors.Is(err, table.ErrUnsupported):
			return "unsupported: "
		case errors.Is(err, table.ErrNotFound):
			return "not found: "
		}
		return "error: "
	}
	datadriven.Walk(t, dir, func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out strings.Builder
			for _, text := range strings.Split(d.Input, "\n") {
				s, err := describe(d.Cmd, text, schema)
				if err == nil && d.Cmd == "predicate" {
					_, err = matches(text, schema, rec)
				}
				if err != nil {
					s = kind(err) + strings.TrimPrefix(err.Error(), "sqlexpr: ")
					require.True(t, strings.HasPrefix(err.Error(), "sqlexpr: "), "%v", err)
				}
				fmt.Fprintln(&out, s)
			}
			return out.String()
		})
	})
}

func describe(cmd, text string, schema table.Schema) (string, error) {
	switch cmd {
	case "predicate":
		p, err := sqlexpr.ParsePredicate(text)
		if err != nil {
			return "", err
		}
		columns, err := p.Columns(schema)
		return strings.Join(columns, ", "), err
	case "expr":
		x, err := sqlexpr.ParseExpr(text)
		if err != nil {
			return "", err
		}
		columns, err := x.Columns(schema)
		if err != nil {
			return "", err
		}
		typ, err := x.Type(schema)
		return fmt.Sprintf("%v from %s", typ, strings.Join(columns, ", ")), err
	}
	a, err := sqlexpr.ParseAssignment(text)
	if err != nil {
		return "", err
	}
	column, value, err := a.For(schema)
	if err != nil {
		return "", err
	}
	columns, err := value.Columns(schema)
	if err != nil {
		return "", err
	}
	typ, err := value.(*sqlexpr.Expr).Type(schema)
	return fmt.Sprintf("%s = %v from %s", column, typ, strings.Join(columns, ", ")), err
}

func TestAssignmentsHaveTheTypeOfTheirColumn(t *testing.T) {
	rec := readBatch(t, "rows.arrow")
	for text, want := range map[string]string{
		"n = n + 1":                          "2 3 4 (null) 5 6 7 1",
		"n = '7'":                            "7 7 7 7 7 7 7 7",
		"n = n * 1.5":                        "1 3 4 (null) 6 7 9 0",
		"n = null":                           "(null) (null) (null) (null) (null) (null) (null) (null)",
		"s = n":                              `"1" "2" "3" (null) "4" "5" "6" "0"`,
		"dec = 1.234":                        "1.23 1.23 1.23 1.23 1.23 1.23 1.23 1.23",
		"d32 = '2020-01-01'":                 "2020-01-01 2020-01-01 2020-01-01 2020-01-01 2020-01-01 2020-01-01 2020-01-01 2020-01-01",
		"b = n > 2":                          "false false true (null) true true true false",
		"n = case when b then n else -n end": "1 -2 -3 (null) -4 -5 6 0",
	} {
		a, err := sqlexpr.ParseAssignment(text)
		require.NoError(t, err, text)
		column, value, err := a.For(schemaOf(rec))
		require.NoError(t, err, text)
		some := rec.NewSlice(0, 8)
		got, err := value.Eval(context.Background(), some)
		some.Release()
		require.NoError(t, err, text)
		require.Equal(t, rec.Schema().Field(rec.Schema().FieldIndices(column)[0]).Type, got.DataType(), text)
		require.Equal(t, "["+want+"]", got.String(), text)
		got.Release()
	}
}
