package encoding_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/table"
)

// checkTake takes rows here and there of a page that may be anything.
func checkTake(t *testing.T, d *encoding.Decoder, p encoding.Page, typ level.Type, layers []level.Layer) {
	var ranges []encoding.Range
	want := 0
	for at := p.Rows / 7; at < p.Rows && len(ranges) < 50; at += 1 + p.Rows/5 {
		n := min(1+at%3, p.Rows-at)
		ranges = append(ranges, encoding.Range{From: at, To: at + n})
		want += int(n)
		at += n
	}
	into, err := level.NewBuilder(typ, layers)
	require.NoError(t, err)
	got := 0
	full := func() error {
		got += into.Rows()
		into.Reset()
		return nil
	}
	err = d.Take(context.Background(), p, ranges, encoding.Gathering{Into: into, Full: full})
	if err != nil {
		require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
		return
	}
	b := into.Block()
	c, err := level.NewCursor(b)
	require.NoError(t, err)
	require.NoError(t, c.Skip(b.Rows))
	require.Equal(t, want, got+into.Rows())
}
