package roaringbytes_test

import (
	"bytes"
	"encoding/binary"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/internal/roaringbytes"
)

type span struct{ start, end uint64 }

func seq(spans []span) iter.Seq2[uint32, uint64] {
	return func(yield func(uint32, uint64) bool) {
		for _, s := range spans {
			if !yield(uint32(s.start), s.end) {
				return
			}
		}
	}
}

func collect(data []byte) []span {
	var out []span
	for start, end := range roaringbytes.Ranges(data) {
		out = append(out, span{uint64(start), end})
	}
	return out
}

func library(t require.TestingT, data []byte) *roaring.Bitmap {
	bm := roaring.New()
	n, err := bm.ReadFrom(bytes.NewReader(data))
	require.NoError(t, err)
	require.EqualValues(t, len(data), n)
	return bm
}

func spansOf(bm *roaring.Bitmap) []span {
	var out []span
	for start, end := range bm.Ranges() {
		out = append(out, span{uint64(start), end})
	}
	return out
}

// drawSpans makes ascending disjoint ranges that like container edges.
func drawSpans(t *rapid.T) []span {
	edges := []uint64{0, 1, 4095, 4096, 65535, 65536, 131071, 131072, 262144, 1<<32 - 65536, 1<<32 - 1}
	var points []uint64
	if rapid.Bool().Draw(t, "scattered") {
		base := rapid.SampledFrom(edges[:9]).Draw(t, "base")
		step := rapid.Uint64Range(1, 40).Draw(t, "step")
		for i := range rapid.Uint64Range(1, 9000).Draw(t, "n") {
			points = append(points, base+i*step, base+i*step+1)
		}
	}
	for range rapid.IntRange(0, 8).Draw(t, "ranges") {
		p := rapid.SampledFrom(edges).Draw(t, "edge") + rapid.Uint64Range(0, 70000).Draw(t, "at")
		points = append(points, min(p, 1<<32), min(p+rapid.Uint64Range(1, 70000).Draw(t, "len"), 1<<32))
	}
	bm := roaring.New()
	for i := 0; i+1 < len(points); i += 2 {
		bm.AddRange(points[i], points[i+1])
	}
	return spansOf(bm)
}

func TestAppendAgreesWithLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawSpans(t)
		for _, runs := range []roaringbytes.Runs{roaringbytes.WithRuns, roaringbytes.WithoutRuns} {
			prefix := []byte{1, 2, 3}
			data := roaringbytes.Append(slices.Clone(prefix), seq(want), runs)[len(prefix):]
			bm := library(t, data)
			require.NoError(t, bm.Validate())
			require.Equal(t, want, spansOf(bm))
			if runs == roaringbytes.WithoutRuns {
				require.False(t, bm.HasRunCompression())
			}

			shape, err := roaringbytes.Check(data)
			require.NoError(t, err)
			require.Equal(t, len(data), shape.Size)
			require.Equal(t, bm.GetCardinality(), shape.Cardinality)
			if !bm.IsEmpty() {
				require.Equal(t, bm.Maximum(), shape.Max)
			}
			require.Equal(t, want, collect(data))

			// The bytes that follow are none of ours.
			longer, err := roaringbytes.Measure(append(slices.Clone(data), 0xff, 0xff))
			require.NoError(t, err)
			require.Equal(t, shape.Size, longer.Size)
			require.Equal(t, shape.Cardinality, longer.Cardinality)
		}
	})
}

func TestReadsWhatTheLibraryWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawSpans(t)
		bm := roaring.New()
		for _, s := range want {
			bm.AddRange(s.start, s.end)
		}
		if rapid.Bool().Draw(t, "optimise") {
			bm.RunOptimize()
		}
		data, err := bm.ToBytes()
		require.NoError(t, err)
		_, err = roaringbytes.Check(data)
		require.NoError(t, err)
		require.Equal(t, want, collect(data))
	})
}

// The forms at the edges of the format, made by hand from its definition.
func TestBytesByHand(t *testing.T) {
	u16 := func(b []byte, vs ...uint16) []byte {
		for _, v := range vs {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
		return b
	}
	u32 := func(b []byte, vs ...uint32) []byte {
		for _, v := range vs {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		return b
	}
	full := bytes.Repeat([]byte{0xff}, 8192)
	even := bytes.Repeat([]byte{0x55}, 8192)
	evens := func(yield func(uint32, uint64) bool) {
		for v := uint32(0); v < 65536; v += 2 {
			if !yield(v, uint64(v)+1) {
				return
			}
		}
	}
	for _, c := range []struct {
		name   string
		ranges iter.Seq2[uint32, uint64]
		runs   roaringbytes.Runs
		want   []byte
	}{
		{"empty", seq(nil), true, u32(nil, 12346, 0)},
		{"address zero", seq([]span{{0, 1}}), true, u16(u32(nil, 12346, 1, 0, 16), 0)},
		{"three in a row tie", seq([]span{{1, 4}}), true, u16(u32(nil, 12346, 1, 2<<16, 16), 1, 2, 3)},
		{"four in a row run", seq([]span{{1, 5}}), true, u16(append(u32(nil, 12347), 1), 0, 3, 1, 1, 3)},
		{"whole container", seq([]span{{0, 65536}}), true, u16(append(u32(nil, 12347), 1), 0, 65535, 1, 0, 65535)},
		{"whole container as bits", seq([]span{{0, 65536}}), false, append(u32(nil, 12346, 1, 65535<<16, 16), full...)},
		{"every second", evens, true, append(u32(nil, 12346, 1, 32767<<16, 16), even...)},
		{"across the edge", seq([]span{{65535, 65537}}), true, u16(u32(nil, 12346, 2, 0, 1, 24, 26), 65535, 0)},
		{"last value", seq([]span{{1<<32 - 1, 1 << 32}}), true, u16(u32(nil, 12346, 1, 65535, 16), 65535)},
		{"four runs have offsets", seq([]span{{0, 4 * 65536}}), true,
			u16(u32(u16(append(u32(nil, 3<<16|12347), 0x0f), 0, 65535, 1, 65535, 2, 65535, 3, 65535), 37, 43, 49, 55),
				1, 0, 65535, 1, 0, 65535, 1, 0, 65535, 1, 0, 65535)},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := roaringbytes.Append(nil, c.ranges, c.runs)
			require.Equal(t, c.want, got)
			shape, err := roaringbytes.Check(got)
			require.NoError(t, err)
			require.Equal(t, len(got), shape.Size)
			require.Equal(t, collect(got), spansOf(library(t, got)))
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	array := func(vs ...uint16) []byte {
		b := binary.LittleEndian.AppendUint32(nil, 12346)
		b = binary.LittleEndian.AppendUint32(b, 1)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(vs)-1)<<16)
		b = binary.LittleEndian.AppendUint32(b, 16)
		for _, v := range vs {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
		return b
	}
	runs := func(card int, pairs ...uint16) []byte {
		b := append(binary.LittleEndian.AppendUint32(nil, 12347), 1, 0, 0)
		b = binary.LittleEndian.AppendUint16(b, uint16(card-1))
		b = binary.LittleEndian.AppendUint16(b, uint16(len(pairs)/2))
		for _, v := range pairs {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
		return b
	}
	edit := func(b []byte, at int, v byte) []byte { b = slices.Clone(b); b[at] = v; return b }
	two := roaringbytes.Append(nil, seq([]span{{0, 1}, {65536, 65537}}), true)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":            {nil, "too few"},
		"cookie":             {[]byte{1, 2, 3, 4, 5, 6, 7, 8}, "cookie"},
		"no count":           {[]byte{0x3a, 0x30, 0, 0}, "before the container count"},
		"too many":           {[]byte{0x3a, 0x30, 0, 0, 1, 0, 1, 0}, "65537 containers"},
		"header cut":         {[]byte{0x3a, 0x30, 0, 0, 1, 0, 0, 0}, "inside the header"},
		"offsets cut":        {[]byte{0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, "inside the offsets"},
		"flags cut":          {[]byte{0x3b, 0x30, 0xff, 0xff}, "run flags"},
		"body cut":           {array(1, 2)[:18], "needs 4 bytes"},
		"unsorted":           {array(2, 1), "value 1 follows 2"},
		"duplicate":          {array(1, 1), "value 1 follows 1"},
		"offset wrong":       {edit(array(1), 12, 17), "its offset says 17"},
		"keys equal":         {edit(two, 12, 0), "key 0 after key 0"},
		"no run":             {runs(1), "has no run"},
		"run leaves block":   {runs(2, 65535, 1), "leaves its block"},
		"runs touch":         {runs(4, 0, 1, 2, 1), "a run at 2 follows"},
		"runs overlap":       {runs(4, 5, 1, 5, 1), "a run at 5 follows"},
		"run cardinality":    {runs(5, 0, 1), "the runs hold 2 values"},
		"run count cut":      {runs(1)[:9], "before its run count"},
		"bitmap cardinality": {append(edit(edit(array(1), 10, 0xff), 11, 0xff), make([]byte, 8192)...), "bits are set"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := roaringbytes.Check(c.data)
			require.ErrorContains(t, err, c.want)
		})
	}
}

// FuzzCheck: bytes that pass the check are a bitmap on which the library and this
// package agree in everything.
func FuzzCheck(f *testing.F) {
	for _, spans := range [][]span{nil, {{0, 1}}, {{65535, 65537}}, {{0, 65536}, {65540, 80000}}, {{0, 1 << 18}}} {
		f.Add(roaringbytes.Append(nil, seq(spans), roaringbytes.WithRuns))
		f.Add(roaringbytes.Append(nil, seq(spans), roaringbytes.WithoutRuns))
	}
	files, err := filepath.Glob("../../testdata/golden/*/t.lance/_deletions/*.bin")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, name := range files {
		data, err := os.ReadFile(name)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		shape, err := roaringbytes.Check(data)
		if err != nil {
			return
		}
		data = data[:shape.Size]
		bm := library(t, data)
		require.NoError(t, bm.Validate())
		require.Equal(t, bm.GetCardinality(), shape.Cardinality)
		require.Equal(t, spansOf(bm), collect(data))
		again := roaringbytes.Append(nil, roaringbytes.Ranges(data), roaringbytes.WithRuns)
		require.Equal(t, collect(data), collect(again))
	})
}

func BenchmarkCheck(b *testing.B) {
	for name, step := range map[string]uint64{"bitmap": 2, "runs": 100} {
		data := roaringbytes.Append(nil, func(yield func(uint32, uint64) bool) {
			for v := uint64(0); v < 1<<20; v += step {
				if !yield(uint32(v), min(v+max(step-1, 1), 1<<20)) {
					return
				}
			}
		}, roaringbytes.WithRuns)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := roaringbytes.Check(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
