package interop_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// Format 2.3 is not stable: each engine version has its own. What an engine wrote in it
// is either read right or refused; that it is never written is for TestRefusals.
func TestFormat23IsReadOrRefused(t *testing.T) {
	ctx := needEngines(t)
	for _, e := range engines {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(e.Name, "/", seed), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(seed, 23))
				fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}
				var columns []randomColumn
				for i := range 3 {
					c := drawColumn(rng, 2, "2.2")
					// The node client has no large lists.
					for e != pylance && strings.Contains(c.dt.String(), "large_list") {
						c = drawColumn(rng, 2, "2.2")
					}
					columns = append(columns, c)
					fields = append(fields, arrow.Field{Name: fmt.Sprint("c", i), Type: c.dt, Nullable: true})
				}
				s := arrow.NewSchema(fields, nil)
				rec, err := jsonRecord(s, 0, 700, func(int64) (out []string) {
					for _, c := range columns {
						out = append(out, c.value(rng))
					}
					return out
				})
				require.NoError(t, err)
				defer rec.Release()
				path := filepath.Join(t.TempDir(), "t.lance")
				defer forget(ctx, path)
				_, err = e.Create(ctx, path, rec, interop.CreateOptions{DataFormat: "2.3"})
				require.NoError(t, err)
				all, err := rowsOf([]arrow.RecordBatch{rec}, columnNames(s))
				require.NoError(t, err)
				var want []string
				for _, r := range all {
					want = append(want, r.json)
				}
				got, err := rehomeRows(ctx, path)
				var r *refusal
				if errors.As(err, &r) {
					require.Equal(t, exitUnsupported, r.code, r.message)
					t.Log("refused: ", r.message)
				} else {
					require.NoError(t, err)
					require.Equal(t, want, got)
					t.Log("read")
				}
			})
		}
	}
}
