package testtable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// RequireRows checks that rows, JSON objects in the encoding rowjson.Raw and in any
// order, are exactly the version's.
func RequireRows(t testing.TB, want Version, rows [][]byte) {
	t.Helper()
	require.Len(t, rows, len(want.Rows), "number of rows")
	expected := canonicalRows(t, want.Rows)
	got := canonicalRows(t, rows)
	for i := range expected {
		require.Equal(t, expected[i].text, got[i].text, "row %d by id", i)
	}
}

type canonicalRow struct {
	id   *big.Rat
	text string
}

// canonicalRows sorts rows by their "id" and writes each in one way only.
func canonicalRows[B ~[]byte](t testing.TB, rows []B) []canonicalRow {
	t.Helper()
	out := make([]canonicalRow, len(rows))
	for i, raw := range rows {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber() // a double would round 64-bit integers
		var row map[string]any
		require.NoError(t, d.Decode(&row), "%s", raw)
		id, ok := new(big.Rat).SetString(strings.Trim(fmt.Sprint(row["id"]), `"`))
		require.True(t, ok, "id of %s", raw)
		text, err := json.Marshal(canonical(row))
		require.NoError(t, err)
		out[i] = canonicalRow{id, string(text)}
	}
	slices.SortFunc(out, func(a, b canonicalRow) int {
		if c := a.id.Cmp(b.id); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	return out
}

// number marks a number, which is never equal to a string.
type number struct {
	Number string
}

// canonical spells numbers in one way: 1, 1.0 and 1e0 are the same value. Minus
// zero is not plus zero, and may be a string, as JSON numbers often lose its sign.
func canonical(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = canonical(e)
		}
		return v
	case []any:
		for i, e := range v {
			v[i] = canonical(e)
		}
		return v
	case string:
		if v == "-0" {
			return number{v}
		}
		return v
	case json.Number:
		r, ok := new(big.Rat).SetString(v.String())
		if !ok {
			return v
		}
		if r.Sign() == 0 && strings.HasPrefix(v.String(), "-") {
			return number{"-0"}
		}
		return number{r.RatString()}
	default:
		return v
	}
}
