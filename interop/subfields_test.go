package interop_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// randomStruct is a struct of one to four fields: numbers, text, structs, and lists of
// structs, down to a depth.
func randomStruct(rng *rand.Rand, depth int) *arrow.StructType {
	var fields []arrow.Field
	for i := range 1 + rng.IntN(4) {
		var dt arrow.DataType = arrow.PrimitiveTypes.Int32
		switch k := rng.IntN(6); {
		case k < 2 && depth > 0:
			dt = randomStruct(rng, depth-1)
		case k == 2 && depth > 0:
			dt = arrow.ListOf(randomStruct(rng, depth-1))
		case k == 3:
			dt = arrow.BinaryTypes.String
		}
		fields = append(fields, arrow.Field{Name: fmt.Sprintf("f%d", i), Type: dt, Nullable: true})
	}
	return arrow.StructOf(fields...)
}

// lessOf is a type without some of its subfields, the others in any order.
func lessOf(rng *rand.Rand, dt arrow.DataType) arrow.DataType {
	switch dt := dt.(type) {
	case *arrow.ListType:
		return arrow.ListOf(lessOf(rng, dt.Elem()))
	case *arrow.StructType:
		fields := slices.Clone(dt.Fields())
		rng.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		fields = fields[:1+rng.IntN(len(fields))]
		for i := range fields {
			fields[i].Type = lessOf(rng, fields[i].Type)
		}
		return arrow.StructOf(fields...)
	}
	return dt
}

// hasList says whether there is a list in a type.
func hasList(dt arrow.DataType) bool {
	if s, ok := dt.(*arrow.StructType); ok {
		return slices.ContainsFunc(s.Fields(), func(f arrow.Field) bool { return hasList(f.Type) })
	}
	return dt.ID() == arrow.LIST
}

// randomJSON is a value of a type. Lists have an item, and are not within nulls: rehome
// refuses a list without some subfields that has more items, or fewer, than the one that
// it goes into, and stock engines panic over most of those.
func randomJSON(rng *rand.Rand, dt arrow.DataType) any {
	switch dt := dt.(type) {
	case *arrow.ListType:
		return []any{randomJSON(rng, dt.Elem())}
	case *arrow.StructType:
		out := map[string]any{}
		for _, f := range dt.Fields() {
			if hasList(f.Type) || rng.IntN(5) > 0 {
				out[f.Name] = randomJSON(rng, f.Type)
			}
		}
		return out
	case *arrow.StringType:
		return fmt.Sprint("s", rng.IntN(1000))
	}
	return rng.IntN(1000)
}

// randomRows are rows of an id and a struct.
func randomRows(rng *rand.Rand, t *testing.T, dt arrow.DataType, first int64, n int) arrow.RecordBatch {
	t.Helper()
	s := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: dt, Nullable: true}}, nil)
	rec, err := jsonRecord(s, first, n, func(int64) []string {
		text, err := json.Marshal(randomJSON(rng, dt))
		require.NoError(t, err)
		return []string{string(text)}
	})
	require.NoError(t, err)
	return rec
}

// TestReport27SourcesWithoutSubfieldsBesideStock upserts structs of random shapes that
// lack subfields into two copies of a table: by pylance's merge_insert, and by rehome.
// What pylance takes, rehome takes, and the rows are the same.
func TestReport27SourcesWithoutSubfieldsBesideStock(t *testing.T) {
	ctx := needEngines(t)
	rng := rand.New(rand.NewPCG(27, 1))
	compared, refused := 0, 0
	for round := range 40 {
		dt := randomStruct(rng, 3)
		less := lessOf(rng, dt)
		path := filepath.Join(t.TempDir(), "t.lance")
		_, err := pylance.Create(ctx, path, randomRows(rng, t, dt, 0, 20), interop.CreateOptions{DataFormat: "2.1"})
		require.NoError(t, err)
		ours, file := copyTable(t, path), filepath.Join(t.TempDir(), "rows.arrow")
		source := randomRows(rng, t, less, 10, 20) // half of them are new
		var b bytes.Buffer
		w := ipc.NewWriter(&b, ipc.WithSchema(source.Schema()))
		require.NoError(t, w.Write(source))
		require.NoError(t, w.Close())
		require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))

		_, stock := pylance.Merge(ctx, path, "id", source)
		code, stdout, stderr, err := run(ctx, "upsert", ours, file, "--on", "id")
		require.NoError(t, err)
		if stock != nil {
			refused++
			t.Logf("round %d: pylance: %s", round, firstLine(stock.Error()))
		} else {
			require.Equal(t, exitDone, code, "round %d: %s into %s: %s%s", round, less, dt, stdout, stderr)
			require.Equal(t, sortedRows(t, path), sortedRows(t, ours), "round %d: %s into %s", round, less, dt)
			compared++
		}
		if code == exitDone {
			require.NoError(t, rehomeVerify(ctx, ours))
		}
		forget(ctx, path)
		forget(ctx, ours)
	}
	t.Logf("%d compared, %d that pylance refuses", compared, refused)
	require.Greater(t, compared, 20)
}

// sortedRows is what pylance reads, by id.
func sortedRows(t *testing.T, path string) (out []string) {
	t.Helper()
	a, err := pylance.Query(t.Context(), path, interop.Query{Columns: []string{"id", "s"}})
	require.NoError(t, err)
	defer a.Release()
	rows, err := rowsOf(a.Batches, []string{"id", "s"})
	require.NoError(t, err)
	slices.SortFunc(rows, func(a, b answerRow) int { return int(a.id - b.id) })
	for _, r := range rows {
		out = append(out, r.json)
	}
	return out
}
