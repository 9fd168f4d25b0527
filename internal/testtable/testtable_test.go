package testtable_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/testtable"
)

func TestGoldenTablesAreDescribed(t *testing.T) {
	for _, g := range testtable.All(t) {
		require.NotEmpty(t, g.Versions, g.Name)
		v := g.Versions[g.Latest()]
		require.NotNil(t, v.Rows, g.Name)
		require.Len(t, v.Rows, int(v.RowCount), g.Name)
		var live uint64
		for _, f := range v.Fragments {
			live += f.PhysicalRows - f.Deleted
		}
		require.Equal(t, v.RowCount, live, g.Name)
		testtable.RequireRows(t, v, bytesOf(v.Rows))
	}
}

func bytesOf(rows []json.RawMessage) [][]byte {
	out := make([][]byte, len(rows))
	for i, r := range rows {
		out[i] = r
	}
	return out
}

// recorder is a testing.TB that remembers whether it was failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) FailNow()              { panic(r) }
func (r *recorder) Helper()               {}

func differ(t *testing.T, want, got []string) bool {
	var v testtable.Version
	for _, row := range want {
		v.Rows = append(v.Rows, json.RawMessage(row))
	}
	var rows [][]byte
	for _, row := range got {
		rows = append(rows, []byte(row))
	}
	r := &recorder{TB: t}
	func() {
		defer func() { _ = recover() }()
		testtable.RequireRows(r, v, rows)
	}()
	return r.failed
}

func TestRowsAreComparedByValue(t *testing.T) {
	a, b := `{"id":1,"x":0.5,"l":[1,null]}`, `{"id":"2","x":null,"l":[]}`
	require.False(t, differ(t, []string{a, b}, []string{b, `{"l":[1.0,null],"x":5e-1,"id":1}`}))
	require.False(t, differ(t, []string{`{"id":1,"x":"-0"}`}, []string{`{"id":1,"x":-0.0}`}))
	for _, other := range []string{
		`{"id":1,"x":0.5,"l":[1]}`, `{"id":1,"x":0.50000001,"l":[1,null]}`, `{"id":1,"x":"0.5","l":[1,null]}`,
		`{"id":1,"l":[1,null]}`, `{"id":3,"x":0.5,"l":[1,null]}`,
	} {
		require.True(t, differ(t, []string{a, b}, []string{other, b}), other)
	}
	require.True(t, differ(t, []string{b}, []string{`{"id":2,"x":null,"l":[]}`}), "a string is no number")
	require.True(t, differ(t, []string{a}, []string{a, a}))
	require.True(t, differ(t, []string{`{"id":9007199254740993}`}, []string{`{"id":9007199254740992}`}))
	require.True(t, differ(t, []string{`{"id":1,"x":"-0"}`}, []string{`{"id":1,"x":0}`}))
}

func TestCoverage(t *testing.T) {
	for text, want := range map[string][]uint64{"": nil, "3": {3}, "0-2": {0, 1, 2}, "1,4-5": {1, 4, 5}} {
		got, err := testtable.Index{Fragments: text}.Coverage()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := testtable.Index{Fragments: "x"}.Coverage()
	require.Error(t, err)
}
