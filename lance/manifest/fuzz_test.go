package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/table"
)

func FuzzManifest(f *testing.F) {
	n := 0
	for _, data := range goldenManifests(f) {
		// The large ones teach nothing new and slow mutation down.
		if len(data) < 4096 && n < 60 {
			f.Add(data)
			n++
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := manifest.Decode(data)
		if err != nil {
			require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
			return
		}
		want := proto.CloneOf(c.Manifest)
		out, err := c.Encode()
		require.NoError(t, err)
		again, err := manifest.Decode(out)
		require.NoError(t, err)
		want.IndexSection, want.TransactionSection, want.TransactionSectionV14 = again.Manifest.IndexSection, again.Manifest.TransactionSection, nil
		require.True(t, proto.Equal(want, again.Manifest))
		manifest.SetFlags(again.Manifest)
	})
}

func FuzzTransaction(f *testing.F) {
	for _, data := range goldenManifests(f) {
		c, err := manifest.Decode(data)
		if err == nil && len(c.Transaction) < 4096 {
			f.Add(c.Transaction)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		txn, err := manifest.DecodeTransaction(data)
		if err != nil {
			require.ErrorIs(t, err, table.ErrCorrupt)
			return
		}
		out, err := manifest.EncodeTransaction(txn)
		require.NoError(t, err)
		again, err := manifest.DecodeTransaction(out)
		require.NoError(t, err)
		require.True(t, proto.Equal(txn, again))
	})
}

func FuzzCoverage(f *testing.F) {
	f.Add([]byte{0x3a, 0x30, 0, 0, 0, 0, 0, 0})
	b := manifest.CoverageBytes([]table.FragmentID{0, 1, 2, 70000})
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		ids, err := manifest.Coverage(data)
		if err != nil || ids == nil {
			return
		}
		out := manifest.CoverageBytes(ids)
		again, err := manifest.Coverage(out)
		require.NoError(t, err)
		require.Equal(t, ids, again)
	})
}
