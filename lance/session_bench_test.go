package lance_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// BenchmarkTransactionsSince asks for the transactions of 1,000 versions, each an
// append, of a table on disk; with a session those that are new since the last time
// are read.
//
//	go test -run - -bench TransactionsSince ./lance
func BenchmarkTransactionsSince(b *testing.B) {
	const versions = 1000
	local, err := store.NewLocal(filepath.Join(b.TempDir(), "t.lance"))
	require.NoError(b, err)
	s := unsynced{local}
	writer := newTable(b, s)
	for i := range int64(versions) {
		_, err := writer.Append(ctx, rows(i, 1), table.WriteOptions{})
		require.NoError(b, err)
	}
	since := func(e *lance.Engine) {
		list, err := e.TransactionsSince(ctx, 1, 0)
		require.NoError(b, err)
		require.GreaterOrEqual(b, len(list), versions)
	}
	b.Run("none", func(b *testing.B) {
		e, err := lance.OpenStore(ctx, s, lance.Options{CacheBytes: 1})
		require.NoError(b, err)
		defer e.Close()
		for b.Loop() {
			since(e)
		}
	})
	session := newSession(b, lance.SessionOptions{})
	for _, fresh := range []int{0, 10} {
		b.Run(map[int]string{0: "session/new=0", 10: "session/new=10"}[fresh], func(b *testing.B) {
			e := openIn(b, session, s)
			since(e)
			before := session.Metrics().Transactions.Misses
			asked := uint64(0)
			for b.Loop() {
				b.StopTimer()
				for i := range int64(fresh) {
					_, err := writer.Append(ctx, rows(i, 1), table.WriteOptions{})
					require.NoError(b, err)
				}
				b.StartTimer()
				since(e)
				asked++
			}
			b.ReportMetric(float64(session.Metrics().Transactions.Misses-before)/float64(asked), "misses/op")
		})
	}
}
