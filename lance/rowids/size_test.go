package rowids

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/table"
)

// allocated returns the bytes that a function allocates, all that it drops included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Millions of segments or runs in which there is nothing are refused at the first, or
// leave nothing behind: what decoding takes is bounded by a multiple of the bytes.
func TestReport10EmptySegmentsTakeLinearWork(t *testing.T) {
	const n = 1_000_000
	empty := bytes.Repeat([]byte{0x0a, 0}, n)
	require.Less(t, allocated(func() {
		_, err := Decode(empty, 0)
		require.ErrorIs(t, err, table.ErrCorrupt)
		_, err = DecodeVersions(empty, 0)
		require.ErrorIs(t, err, table.ErrCorrupt)
	}), uint64(len(empty)))

	for name, c := range map[string]struct {
		part   []byte
		decode func([]byte) error
	}{
		"ranges":   {[]byte{0x0a, 2, 0x0a, 0}, func(b []byte) error { _, err := Decode(b, 0); return err }},
		"versions": {[]byte{0x0a, 4, 0x0a, 2, 0x0a, 0}, func(b []byte) error { _, err := DecodeVersions(b, 0); return err }},
	} {
		data := bytes.Repeat(c.part, n)
		got := allocated(func() { require.NoError(t, c.decode(data)) })
		t.Logf("%s: %d bytes allocated for each that was read", name, got/uint64(len(data)))
		require.Less(t, got, uint64(60*len(data)), name)
	}
	s, err := Decode(bytes.Repeat([]byte{0x0a, 2, 0x0a, 0}, n), 0)
	require.NoError(t, err)
	require.Empty(t, s.segments)
}
