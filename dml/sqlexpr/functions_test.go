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

// TestReport24NowIsOneValueAcrossAStatement: texts that are read with one time have it,
// whenever they are read.
func TestReport24NowIsOneValueAcrossAStatement(t *testing.T) {
	rec := readBatch(t, "rows.arrow")
	now := sqlexpr.At(time.Date(2020, 1, 2, 3, 4, 5, 6, time.UTC))
	for _, text := range []string{"cast(now() as string)", "cast(current_timestamp as string)"} {
		x, err := sqlexpr.ParseExpr(text, now)
		require.NoError(t, err)
		v, err := x.Eval(t.Context(), rec)
		require.NoError(t, err)
		require.Contains(t, v.ValueStr(0), "03:04:05.000000006")
	}
	a, err := sqlexpr.ParseAssignment("d32 = current_date()", now)
	require.NoError(t, err)
	_, set, err := a.For(schemaOf(rec))
	require.NoError(t, err)
	v, err := set.Eval(t.Context(), rec)
	require.NoError(t, err)
	require.Equal(t, "2020-01-02", v.ValueStr(0))
}
