package lance_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// Rows of every type that can be written are taken as they are scanned.
func TestTakeEveryType(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	taken := 0
	for _, c := range typeCases() {
		if c.refused != "" {
			continue
		}
		taken++
		t.Run(c.name+" "+c.format, func(t *testing.T) {
			schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: c.dt, Nullable: true, Metadata: arrow.MetadataFrom(c.metadata)}}, nil)
			e, err := lance.CreateStore(ctx, store.NewMem(), schema, lance.CreateOptions{DataFormat: c.format}, lance.Options{})
			require.NoError(t, err)
			defer e.Close()
			var rows []string
			for range 1500 {
				rows = append(rows, fmt.Sprintf(`{"c":%s}`, c.values[rng.IntN(len(c.values))]))
			}
			require.NoError(t, appendJSON(t, e, schema, rows))
			s := load(t, e, 0)
			all, want, err := byAddress(t, e.Rows(ctx, s, fragmentIDs(s), table.ReadOptions{WithAddrs: true}))
			require.NoError(t, err)
			require.Len(t, all, len(rows))
			for range 6 {
				addrs := pick(rng, all)
				got, have, err := byAddress(t, e.Take(ctx, s, addrs, nil))
				require.NoError(t, err)
				require.Equal(t, addrs, got)
				for _, a := range addrs {
					require.Equal(t, want[a], have[a], "%v", a)
				}
			}
		})
	}
	require.Greater(t, taken, 10)
}
