package fsst

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/table"
)

// serialise writes a symbol table as Lance does.
func serialise(symbols []string, on bool) []byte {
	out := make([]byte, 2312)
	header := uint64(magic)<<32 | uint64(len(symbols))
	if on {
		header |= switchBit
	}
	binary.LittleEndian.PutUint64(out, header)
	for i, s := range symbols {
		copy(out[8+8*i:], s)
		out[8+8*len(symbols)+i] = byte(len(s))
	}
	return out
}

// naiveExpand is Append, a byte at a time; false for what Append refuses.
func naiveExpand(symbols []string, in []byte) ([]byte, bool) {
	var out []byte
	for i := 0; i < len(in); i++ {
		switch {
		case in[i] != 255 && int(in[i]) < len(symbols):
			out = append(out, symbols[in[i]]...)
		case in[i] == 255 && i+1 < len(in):
			i++
			out = append(out, in[i])
		default:
			return nil, false
		}
	}
	return out, true
}

func TestWorkedExample(t *testing.T) {
	table, err := ParseTable(serialise([]string{"http://", ".com"}, true))
	require.NoError(t, err)
	got, err := table.Append([]byte("> "), []byte{0, 255, 'a', 1})
	require.NoError(t, err)
	require.Equal(t, "> http://a.com", string(got))
}

func TestOffTableCopies(t *testing.T) {
	table, err := ParseTable(serialise(nil, false))
	require.NoError(t, err)
	require.True(t, table.Off())
	got, err := table.Append(nil, []byte{0, 255})
	require.NoError(t, err)
	require.Equal(t, []byte{0, 255}, got)
	got, ends, err := table.AppendAll(nil, nil, []byte("abcd"), []uint32{1, 1, 3})
	require.NoError(t, err)
	require.Equal(t, "bc", string(got))
	require.Equal(t, []uint32{0, 2}, ends)
}

func TestParseTableRefuses(t *testing.T) {
	good := serialise([]string{"ab"}, true)
	for name, b := range map[string][]byte{
		"empty":           nil,
		"short":           good[:16],
		"magic":           append([]byte{1, 0, 0, 1, 0, 0, 0, 0}, good[8:]...),
		"zero length":     append(append(bytes.Clone(good[:16]), 0), good[17:]...),
		"too long symbol": append(append(bytes.Clone(good[:16]), 9), good[17:]...),
	} {
		_, err := ParseTable(b)
		require.ErrorIs(t, err, table.ErrCorrupt, name)
	}
}

func TestAppendAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		symbols := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune("abcdef")), 1, 8, 8), 0, 255).Draw(t, "symbols")
		table, err := ParseTable(serialise(symbols, true))
		require.NoError(t, err)
		var packed, want []byte
		offsets, ends, ok := []uint32{0}, []uint32(nil), true
		for _, s := range rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 0, 20).Draw(t, "strings") {
			if rapid.IntRange(0, 20).Draw(t, "long") == 0 {
				s = bytes.Repeat(append(s, 255, 255), piece/(len(s)+2)+1) // over the seam of pieces
			}
			packed = append(packed, s...)
			offsets = append(offsets, uint32(len(packed)))
			out, good := naiveExpand(symbols, s)
			ok = ok && good
			if ok {
				want = append(want, out...)
				ends = append(ends, uint32(len(want)))
			}
			single, err := table.Append([]byte("x"), s)
			require.Equal(t, good, err == nil)
			require.Equal(t, "x"+string(out), string(single))
		}
		got, gotEnds, err := table.AppendAll(nil, nil, packed, offsets)
		require.Equal(t, ok, err == nil)
		if ok {
			require.Equal(t, string(want), string(got))
			require.Equal(t, ends, gotEnds)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(serialise([]string{"http://", ".com"}, true), []byte{0, 255, 'a', 1})
	f.Add(serialise(nil, false), []byte("abc"))
	f.Fuzz(func(t *testing.T, symbols, in []byte) {
		parsed, err := ParseTable(symbols)
		if err != nil {
			require.ErrorIs(t, err, table.ErrCorrupt)
			return
		}
		out, err := parsed.Append(nil, in)
		if err != nil {
			require.ErrorIs(t, err, table.ErrCorrupt)
			return
		}
		require.LessOrEqual(t, len(out), 8*len(in))
	})
}

func BenchmarkAppendAll(b *testing.B) {
	parsed, err := ParseTable(serialise([]string{"the ", "quick ", "fox ", "e"}, true))
	require.NoError(b, err)
	in := bytes.Repeat([]byte{0, 1, 2, 255, 'x', 3, 3}, 1000)
	offsets := make([]uint32, 0, 1001)
	for i := range 1001 {
		offsets = append(offsets, uint32(7*i))
	}
	var out []byte
	var ends []uint32
	for b.Loop() {
		out, ends, err = parsed.AppendAll(out[:0], ends[:0], in, offsets)
		if err != nil {
			b.Fatal(err)
		}
	}
	b.SetBytes(int64(len(out)))
}
