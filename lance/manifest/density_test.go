package manifest_test

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/table"
)

// file is a manifest file around a body.
func file(body []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, uint32(len(body)))
	out = append(out, body...)
	out = append(out, make([]byte, 8)...) // it is at 0
	return append(out, 0, 0, 2, 0, 'L', 'A', 'N', 'C')
}

// Two million empty fragments, fields or whatever else there may be many of, are
// refused before they take memory: no more than a few times the bytes.
func TestReport10EmptyPartsOfAManifestTakeNoMemory(t *testing.T) {
	const n = 2_000_000
	for name, part := range map[string][]byte{
		"fields":         {0x0a, 0},
		"fragments":      {0x12, 0},
		"files":          {0x12, 4, 0x12, 0, 0x12, 0},
		"deletion files": {0x12, 2, 0x1a, 0},
	} {
		data := file(bytes.Repeat(part, n))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := manifest.Decode(data)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, table.ErrCorrupt, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(len(data)), name)
	}
}

// A table of many small fragments is none of those.
func TestReport10ManySmallFragmentsAreRead(t *testing.T) {
	const n = 100_000
	var body []byte
	for i := range n {
		f := []byte{0x08}
		f = binary.AppendUvarint(f, uint64(i))
		f = append(f, 0x12, 11, 0x0a, 1, 'a', 0x12, 1, 0, 0x1a, 1, 0, 0x20, 2) // a file "a" of field 0 in column 0, version 2
		f = append(f, 0x20, 1)                                                 // one row
		body = append(body, 0x12, byte(len(f)))
		body = append(body, f...)
	}
	c, err := manifest.Decode(file(body))
	require.NoError(t, err)
	require.Len(t, c.Manifest.GetFragments(), n)
}
