package sqlexpr_test

import (
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml/sqlexpr"
)

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
