package sqlexpr_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"
)

// TestReport28Intervals: the type and the first value of sums with intervals.
func TestReport28Intervals(t *testing.T) {
	rec := readBatch(t, "rows.arrow")
	schema := schemaOf(rec)
	datadriven.RunTest(t, "testdata/intervals/literals", func(t *testing.T, d *datadriven.TestData) string {
		var out strings.Builder
		for _, text := range strings.Split(d.Input, "\n") {
			a, err := evaluate(text, schema, rec)
			if err != nil {
				fmt.Fprintln(&out, "error: "+strings.TrimPrefix(err.Error(), "sqlexpr: "))
				continue
			}
			fmt.Fprintf(&out, "%s %s\n", a.DataType(), a.ValueStr(0))
			a.Release()
		}
		return out.String()
	})
}

// TestReport28IntervalsInConditions: as they are used.
func TestReport28IntervalsInConditions(t *testing.T) {
	rec := readBatch(t, "rows.arrow")
	schema := schemaOf(rec)
	for text, same := range map[string]string{
		"ts + interval '1 day' = timestamp '2020-01-02 00:00:00'":                                 "ts = timestamp '2020-01-01 00:00:00'",
		"ts > timestamp '2020-02-01 00:00:00' - interval '1 month'":                               "ts > timestamp '2020-01-01 00:00:00'",
		"d32 = date '2020-02-01' - interval '1 month'":                                            "d32 = date '2020-01-01'",
		"d32 between date '2020-01-02' - interval '1 day' and date '2021-06-16' - interval 1 day": "d32 between date '2020-01-01' and date '2021-06-15'",
		"ts - ts_ms < interval '1 second'":                                                        "ts is not null",
		"interval '1 millisecond' > ts - ts_ms":                                                   "ts is not null",
		"dur = interval '1 second'":                                                               "dur = cast('2020-01-01 00:00:01' as timestamp) - timestamp '2020-01-01 00:00:00'",
		"ts_b + interval '6 months' = timestamp '2021-12-15 09:00:00'":                            "ts_b = timestamp '2021-06-15 09:00:00'",
		"ts + interval '1 day' + interval '1 hour' - ts = interval '25 hours'":                    "ts is not null",
	} {
		got, err := matches(text, schema, rec)
		require.NoError(t, err, text)
		want, err := matches(same, schema, rec)
		require.NoError(t, err, same)
		require.Equal(t, want, got, text)
	}
}
