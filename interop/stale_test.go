package interop_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance"
)

// TestStaleStockHandlesSeeWhatRehomeChanged has a stock client, on a handle that has
// not heard of it, change a row that rehome deleted, updated or upserted just now, or
// one beside it. What rehome's transaction says is all that the client has to go by: it
// must neither write over the deletion nor miss the new row. With a compaction of
// rehome's in between, and without.
func TestStaleStockHandlesSeeWhatRehomeChanged(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		for _, compacted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, compacted %t", writer.Name, compacted), func(t *testing.T) {
				t.Parallel()
				b := &busy{writer: writer, path: filepath.Join(t.TempDir(), "t.lance"), rows: map[int64]string{}}
				defer forget(ctx, b.path)
				for range 4 {
					b.grow(ctx, t, 100)
				}
				e, err := lance.Open(ctx, b.path, lance.Options{})
				require.NoError(t, err)
				defer e.Close()
				id := int64(0)
				for ours := range 3 {
					for theirs := range 3 {
						for _, same := range []bool{true, false} {
							id += 7
							// The client's handle is at the version that this makes.
							require.NoError(t, writer.Churn(ctx, b.path, []interop.Write{{Where: fmt.Sprintf("id = %d", 399-id)}}))
							delete(b.rows, 399-id)

							value := fmt.Sprintf("rehome %d", id)
							_, err := b.changeByLibrary(ctx, e, ours, id, value)
							require.NoError(t, err)
							if b.rows[id] = value; ours == 0 {
								delete(b.rows, id)
							}
							if compacted {
								out, err := compaction.Compact(ctx, e, compaction.Options{AnyDeletion: true})
								require.NoError(t, err)
								require.True(t, out.Committed)
							}

							target, value := id, fmt.Sprintf("stock %d", id)
							if !same {
								target++
							}
							where := fmt.Sprintf("id = %d", target)
							w := interop.Write{Where: where}
							_, live := b.rows[target]
							switch theirs {
							case 0:
								delete(b.rows, target)
							case 1:
								w.Set = map[string]string{"s": "'" + value + "'"}
								if live {
									b.rows[target] = value
								}
							default:
								w = interop.Write{On: "id", Rows: busyRecord([]int64{target}, func(int64) string { return value })}
								b.rows[target] = value
							}
							require.NoError(t, writer.Churn(ctx, b.path, []interop.Write{w}), "rehome %d, stock %d, the same row: %t", ours, theirs, same)
							b.checkRow(ctx, t, target)
						}
					}
				}
				b.check(ctx, t)
			})
		}
	}
}
