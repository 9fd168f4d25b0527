package interop_test

import (
	"errors"
	"fmt"
	"hash/crc64"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml/sqlexpr"
	"github.com/rehome-db/rehome/interop"
)

// functionRows are rows of every type, with the values that are hard, put together at
// random.
func functionRows(t *testing.T, rng *rand.Rand) arrow.RecordBatch {
	f, err := os.Open(filepath.Join("..", "dml", "sqlexpr", "testdata", "rows.arrow"))
	require.NoError(t, err)
	defer f.Close()
	r, err := ipc.NewFileReader(f)
	require.NoError(t, err)
	defer r.Close()
	rec, err := r.RecordBatch(0)
	require.NoError(t, err)
	columns := make([]arrow.Array, rec.NumCols())
	for c := range columns {
		var parts []arrow.Array
		for _, i := range rng.Perm(int(rec.NumRows())) {
			parts = append(parts, array.NewSlice(rec.Column(c), int64(i), int64(i+1)))
		}
		columns[c], err = array.Concatenate(parts, memory.DefaultAllocator)
		require.NoError(t, err)
	}
	return array.NewRecordBatch(rec.Schema(), columns, rec.NumRows())
}

// functionCall draws a call: columns of the types that the function takes, or samples.
func functionCall(f *sqlexpr.Function, schema *arrow.Schema, rng *rand.Rand) (string, bool) {
	least, most := f.Arity()
	if most < 0 {
		most = least + 2
	}
	var args []string
	for i := range least + rng.IntN(most-least+1) {
		p := f.Param(i)
		var may []string
		if !p.Constant && (len(p.Samples) == 0 || rng.IntN(3) == 0) {
			for _, c := range schema.Fields() {
				if sqlexpr.KindOf(c.Type)&p.Kinds != 0 {
					may = append(may, c.Name)
				}
			}
		}
		if len(may) == 0 {
			may = p.Samples
		}
		if len(may) == 0 {
			return "", false
		}
		args = append(args, may[rng.IntN(len(may))])
	}
	return f.Name + "(" + strings.Join(args, ", ") + ")", true
}

// TestReport28FunctionsOnRandomValues: every function of the table gives what pylance
// gives, or the table says in what it differs. What either refuses is not compared.
func TestReport28FunctionsOnRandomValues(t *testing.T) {
	ctx := needEngines(t)
	seed := uint64(28)
	if os.Getenv(switchVariable) == "all" {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	rows := functionRows(t, rng)
	compared, refused, refusedHere, differ := 0, 0, 0, 0
	for _, f := range sqlexpr.Functions() {
		if f.Changing {
			continue
		}
		// A new function leaves what the others are asked as it is.
		rng := rand.New(rand.NewPCG(seed, crc64.Checksum([]byte(f.Name), crc64.MakeTable(crc64.ECMA))))
		path := filepath.Join(t.TempDir(), "t.lance")
		_, err := pylance.Create(ctx, path, rows, interop.CreateOptions{})
		require.NoError(t, err)
		for n := range 4 {
			text, ok := functionCall(f, rows.Schema(), rng)
			if !ok {
				continue
			}
			column := fmt.Sprintf("out%d", n)
			// Ours comes first: what is too large for it is too much for the engine.
			x, err := sqlexpr.ParseExpr(text)
			var got arrow.Array
			if err == nil {
				got, err = x.Eval(ctx, rows)
			}
			if err != nil {
				refusedHere++
				continue
			}
			if _, err := pylance.AddComputed(ctx, path, column, text); err != nil {
				require.True(t, errors.As(err, new(*interop.EngineError)), "%s: %v", text, err)
				refused++
				continue
			}
			answer, err := pylance.Query(ctx, path, interop.Query{Columns: []string{column}})
			require.NoError(t, err, text)
			want := wholeColumn(t, answer)
			compared++
			if err := sameValues(got, want); err != nil && f.Differs != "" {
				differ++
			} else if err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
	t.Logf("%d compared, %d refused by the engine, %d refused here, %d differ as the table says", compared, refused, refusedHere, differ)
	require.Greater(t, compared, 100)
	require.Less(t, refusedHere, compared/2)
}

// sameValues compares what two columns show. The last digits of floats depend on the
// library.
func sameValues(got, want arrow.Array) error {
	if got.Len() != want.Len() {
		return fmt.Errorf("%d values, want %d", got.Len(), want.Len())
	}
	digits := 1e-12
	if got.DataType().ID() == arrow.FLOAT32 {
		digits = 1e-6
	}
	for i := range got.Len() {
		if got.IsNull(i) && want.IsNull(i) {
			continue
		}
		g, w := got.ValueStr(i), want.ValueStr(i)
		if g == w {
			continue
		}
		var a, b float64
		if _, err := fmt.Sscan(g, &a); err == nil {
			if _, err := fmt.Sscan(w, &b); err == nil && (math.Abs(a-b) <= digits*math.Abs(b) || math.IsNaN(a) && math.IsNaN(b)) {
				continue
			}
		}
		return fmt.Errorf("row %d is %s, want %s (%s, %s)", i, g, w, got.DataType(), want.DataType())
	}
	return nil
}

func wholeColumn(t *testing.T, a *interop.Answer) arrow.Array {
	var parts []arrow.Array
	for _, b := range a.Batches {
		parts = append(parts, b.Column(0))
	}
	out, err := array.Concatenate(parts, memory.DefaultAllocator)
	require.NoError(t, err)
	return out
}
