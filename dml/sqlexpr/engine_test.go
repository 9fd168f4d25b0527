package sqlexpr_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml/sqlexpr"
	"github.com/rehome-db/rehome/table"
)

// readBatch reads the one batch of an Arrow file.
func readBatch(t testing.TB, name string) arrow.RecordBatch {
	t.Helper()
	f, err := os.Open("testdata/" + name)
	require.NoError(t, err)
	defer f.Close()
	r, err := ipc.NewFileReader(f)
	require.NoError(t, err)
	defer r.Close()
	require.Equal(t, 1, r.NumRecords())
	rec, err := r.RecordBatch(0)
	require.NoError(t, err)
	rec.Retain()
	t.Cleanup(rec.Release)
	return rec
}

// schemaOf is the schema of a batch in the table model's terms.
func schemaOf(rec arrow.RecordBatch) table.Schema {
	var s table.Schema
	for i, f := range rec.Schema().Fields() {
		s.Fields = append(s.Fields, table.Field{ID: int32(i), Name: f.Name, Type: f.Type, Nullable: f.Nullable})
	}
	return s
}

// engineCase is a case of testdata: see generate.py.
type engineCase struct {
	line              int
	text              string
	engine, ours, why string
}

func readCases(t testing.TB, name string) []engineCase {
	t.Helper()
	src, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	var cases []engineCase
	for i, line := range strings.Split(string(src), "\n") {
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "\t"), ": ")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case !strings.HasPrefix(line, "\t"):
			cases = append(cases, engineCase{line: i + 1, text: line})
		case key == "engine":
			cases[len(cases)-1].engine = value
		case key == "ours":
			cases[len(cases)-1].ours = value
		case key == "why":
			cases[len(cases)-1].why = value
		default:
			t.Fatalf("%s:%d: %q", name, i+1, line)
		}
	}
	return cases
}

// expected is what we should say, and checks that a difference from the engine is
// one, and explained.
func (c engineCase) expected(t testing.TB) string {
	t.Helper()
	require.NotEmpty(t, c.engine, "line %d has no answer of the engine: run generate.py", c.line)
	if c.ours == "" {
		return c.engine
	}
	require.NotEqual(t, c.engine, c.ours, "line %d: no longer a difference", c.line)
	require.NotEmpty(t, c.why, "line %d: a difference without a reason", c.line)
	return c.ours
}

// spans writes the rows that match as generate.py does.
func spans(b *array.Boolean) string {
	var out []string
	for i := 0; i < b.Len(); i++ {
		if !b.IsValid(i) || !b.Value(i) {
			continue
		}
		from := i
		for i+1 < b.Len() && b.IsValid(i+1) && b.Value(i+1) {
			i++
		}
		if from == i {
			out = append(out, fmt.Sprint(from))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", from, i))
		}
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, " ")
}

func TestPredicatesAreThoseOfTheEngine(t *testing.T) { comparePredicates(t, "predicates.txt") }

// TestReport27CastsAndListsBesideLiterals: a cast of a column is computed, also beside a
// literal, where the engine leaves it out; a list that is null has no answer.
func TestReport27CastsAndListsBesideLiterals(t *testing.T) { comparePredicates(t, "beside.txt") }

func comparePredicates(t *testing.T, name string) {
	rec := readBatch(t, "rows.arrow")
	schema := schemaOf(rec)
	for _, c := range readCases(t, name) {
		want := c.expected(t)
		got, err := matches(c.text, schema, rec)
		if err != nil {
			got = "error"
			require.True(t, strings.HasPrefix(err.Error(), "sqlexpr: "), "line %d: %v", c.line, err)
		}
		if got != want {
			t.Errorf("%s:%d: %s\n  want %s\n  got  %s (%v)", name, c.line, c.text, want, got, err)
		}
		if c.why == noColumn {
			require.ErrorContains(t, err, noColumn, "line %d", c.line)
			p, err := sqlexpr.ParsePredicate(c.text)
			require.NoError(t, err)
			require.NoError(t, p.BindConstants(rec.Schema()), "line %d", c.line)
			b, err := p.Matches(t.Context(), rec)
			require.NoError(t, err, "line %d", c.line)
			require.Equal(t, c.engine, spans(b), "line %d: %s", c.line, c.text)
			b.Release()
		}
	}
}

// noColumn is why conditions of constants are refused. What they mean is tested all
// the same.
const noColumn = "a condition that looks at no column"

func matches(text string, schema table.Schema, rec arrow.RecordBatch) (string, error) {
	p, err := sqlexpr.ParsePredicate(text)
	if err != nil {
		return "", err
	}
	if _, err := p.Columns(schema); err != nil {
		return "", err
	}
	b, err := p.Matches(context.Background(), rec)
	if err != nil {
		return "", err
	}
	defer b.Release()
	if b.Len() != int(rec.NumRows()) {
		return "", errors.New("not one slot a row")
	}
	return spans(b), nil
}

func TestExpressionsAreThoseOfTheEngine(t *testing.T) {
	compareExpressions(t, "expressions", math.SmallestNonzeroFloat64)
}

// TestReport28FunctionsAreThoseOfTheEngine also sees that no function of the table is
// without a comparison.
func TestReport28FunctionsAreThoseOfTheEngine(t *testing.T) {
	// The last digit of a logarithm or a sine is the mathematical library's.
	compareExpressions(t, "functions", 1e-14)
	var texts strings.Builder
	for _, name := range []string{"functions.txt", "expressions.txt", "predicates.txt"} {
		for _, c := range readCases(t, name) {
			texts.WriteString("\n" + strings.ToLower(c.text))
		}
	}
	clock := map[string]bool{"now": true, "current_timestamp": true, "current_date": true, "today": true, "current_time": true}
	for _, name := range sqlexpr.FunctionNames() {
		if !clock[name] {
			require.Regexp(t, "\\b"+name+"\\(", texts.String(), "no case compares this function")
		}
	}
}

func compareExpressions(t *testing.T, name string, tolerance float64) {
	rec := readBatch(t, "rows.arrow")
	schema := schemaOf(rec)
	values := readBatch(t, name+".arrow")
	for _, c := range readCases(t, name+".txt") {
		want := c.expected(t)
		got, err := evaluate(c.text, schema, rec)
		if want == "error" {
			if err == nil {
				t.Errorf("%s.txt:%d: %s\n  want error\n  got  %s %v", name, c.line, c.text, got.DataType(), got)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s.txt:%d: %s: %v", name, c.line, c.text, err)
			continue
		}
		if c.ours != "" {
			if s := fmt.Sprintf("%s %v", got.DataType(), got); s != c.ours {
				t.Errorf("%s.txt:%d: %s\n  want %s\n  got  %s", name, c.line, c.text, c.ours, s)
			}
			continue
		}
		at := values.Schema().FieldIndices(c.text)
		require.NotEmpty(t, at, c.text)
		if v := values.Column(at[0]); !sameValues(v, got, tolerance) {
			t.Errorf("%s.txt:%d: %s\n  want %s %v\n  got  %s %v", name, c.line, c.text, v.DataType(), v, got.DataType(), got)
		}
	}
}

func evaluate(text string, schema table.Schema, rec arrow.RecordBatch) (arrow.Array, error) {
	x, err := sqlexpr.ParseExpr(text)
	if err != nil {
		return nil, err
	}
	if _, err := x.Columns(schema); err != nil {
		return nil, err
	}
	return x.Eval(context.Background(), rec)
}

// sameValues compares types and values. The type of a list's items may have another
// name, and NaN is NaN.
func sameValues(a, b arrow.Array, tolerance float64) bool {
	return a.DataType().String() == b.DataType().String() && array.ApproxEqual(a, b, array.WithNaNsEqual(true), array.WithAbsTolerance(tolerance))
}
