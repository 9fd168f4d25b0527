package rows

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// Large files go past the page cache, unless they are to stay; small ones never do.
func TestWhichNewFilesAreCached(t *testing.T) {
	for _, c := range []struct {
		bytes float64
		opts  table.WriteOptions
		want  store.WriteOptions
	}{
		{uncachedFrom - 1, table.WriteOptions{}, store.WriteOptions{}},
		{uncachedFrom, table.WriteOptions{}, store.WriteOptions{Uncached: true}},
		{uncachedFrom, table.WriteOptions{NoSync: true}, store.WriteOptions{Uncached: true, NoSync: true}},
		{uncachedFrom, table.WriteOptions{KeepCached: true}, store.WriteOptions{}},
	} {
		r := &rewriteRun{req: table.RewriteRequest{Options: c.opts}}
		require.Equal(t, c.want, r.storage(&rewriteFile{plan: &rewriteOutput{bytes: c.bytes}}))
	}
}
