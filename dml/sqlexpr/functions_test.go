package sqlexpr_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml/sqlexpr"
)

var update = flag.Bool("update", false, "write the list of functions into docs/sql.md")

func TestReport28FunctionPageIsFresh(t *testing.T) {
	const page, end = "../../docs/sql.md", "<!-- end of functions -->"
	src, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(src), "-update -->\n")
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := before + "-update -->\n" + sqlexpr.FunctionPage() + end + after
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(src), "run go test ./dml/sqlexpr -run FunctionPage -update")
}

// TestReport24NowIsOneValue: the time is that of the text, however often and however
// late it is evaluated.
func TestReport24NowIsOneValue(t *testing.T) {
	rec := readBatch(t, "rows.arrow")
	before := time.Now()
	x, err := sqlexpr.ParseExpr("now()")
	require.NoError(t, err)
	after := time.Now()
	first, err := x.Eval(t.Context(), rec)
	require.NoError(t, err)
	time.Sleep(time.Millisecond)
	again, err := x.Eval(t.Context(), rec)
	require.NoError(t, err)
	require.True(t, array.Equal(first, again))
	v := int64(first.(*array.Timestamp).Value(0))
	require.GreaterOrEqual(t, v, before.UnixNano())
	require.LessOrEqual(t, v, after.UnixNano())
	for _, text := range []string{"d32 < current_date()", "d32 < current_date", "ts < now()", "ts < current_timestamp", "d32 < today()"} {
		got, err := matches(text, schemaOf(rec), rec)
		require.NoError(t, err, text)
		require.NotEqual(t, "none", got, text)
	}
}

func TestReport28LongTextsAreRefused(t *testing.T) {
	rec := readBatch(t, "rows.arrow")
	for _, text := range []string{"repeat(s, 9223372036854775807)", "lpad(s, 9223372036854775807)", "rpad(s, 400000000, 'x')", "repeat(concat(s, 'xxxxxxxx'), 4000000)"} {
		_, err := evaluate(text, schemaOf(rec), rec)
		require.ErrorContains(t, err, "more than 256 MiB", text)
	}
}
