package encoding

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

func load(t require.TestingT, e *enc21pb.CompressiveEncoding, width int, n uint64, in []byte) []uint64 {
	codec, err := compileSequence(e, width, 1<<20, false)
	require.NoError(t, err)
	require.Equal(t, in != nil, codec.payload())
	s, err := codec.load(n, in)
	require.NoError(t, err)
	require.Equal(t, n, s.n)
	out, sum := []uint64{}, uint64(0)
	for i := range n {
		out = append(out, s.at(i))
		sum += s.at(i)
	}
	if got, err := s.sum(); err == nil {
		require.Equal(t, sum, got)
	}
	return out
}

func TestSequencesReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 2500).Draw(t, "n")
		limit := uint64(1)<<rapid.IntRange(1, 63).Draw(t, "bits") - 1
		values := make([]uint64, n)
		for i, seed := 0, rapid.Uint64().Draw(t, "seed"); i < n; i++ {
			seed = seed*6364136223846793005 + 1442695040888963407
			values[i] = seed >> 1 & limit
		}
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			slices.Sort(values)
		case 1:
			for i := range values {
				values[i] = 7
			}
		case 2:
			step := rapid.Uint64Range(0, 1<<40).Draw(t, "step")
			for i := range values {
				values[i] = 5 + uint64(i)*step
			}
		case 3:
			for i := range values {
				values[i] = uint64(i)*uint64(i) + 1<<40
			}
		}
		e, payload := encodeSequence(values)
		require.Equal(t, values, load(t, e, 64, uint64(n), payload))
	})
}

func pbRange(bits, start, step uint64) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Range{Range: &enc21pb.Range{UncompressedBitsPerValue: bits, Start: start, Step: step}}}
}

func pbDelta(bits, base uint64, deltas *enc21pb.CompressiveEncoding) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Delta{Delta: &enc21pb.Delta{UncompressedBitsPerValue: bits, Base: base, Deltas: deltas}}}
}

func pbRuns(values, lengths *enc21pb.CompressiveEncoding) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Rle{Rle: &enc21pb.Rle{Values: values, RunLengths: lengths}}}
}

func pbLookups(indices, items *enc21pb.CompressiveEncoding, n uint32) *enc21pb.CompressiveEncoding {
	return &enc21pb.CompressiveEncoding{Compression: &enc21pb.CompressiveEncoding_Dictionary{Dictionary: &enc21pb.Dictionary{Indices: indices, Items: items, NumDictionaryItems: n}}}
}

func le32(v ...byte) (out []byte) {
	for _, b := range v {
		out = append(out, b, 0, 0, 0)
	}
	return out
}

func le64(v ...uint64) []byte { return appendUint64s(nil, v) }

func TestSequences(t *testing.T) {
	one := describeConstant(le32(1))
	for _, c := range []struct {
		name string
		e    *enc21pb.CompressiveEncoding
		bits int
		in   []byte
		want []uint64
	}{
		{"none", describeConstant(nil), 64, nil, []uint64{}},
		{"constant", describeConstant(le64(9)), 64, nil, []uint64{9, 9, 9}},
		{"range", pbRange(32, 4, 3), 32, nil, []uint64{4, 7, 10}},
		{"flat", pbFlat(32), 32, le32(5, 1, 9), []uint64{5, 1, 9}},
		{"squares", pbDelta(32, 0, pbRange(32, 1, 2)), 32, nil, []uint64{0, 1, 4, 9}},
		{"differences", pbDelta(64, 10, pbFlat(64)), 64, le64(0, 5), []uint64{10, 10, 15}},
		{"runs of one length", pbRuns(pbRange(64, 6, 1), describeConstant(le32(2))), 64, nil, []uint64{6, 6, 7, 7}},
		{"runs of more and more", pbRuns(pbFlat(32), pbRange(32, 1, 1)), 32, append(le64(12), le32(7, 8, 9)...), []uint64{7, 8, 8, 9, 9, 9}},
		{"runs counted by values", pbRuns(pbFlat(32), pbFlat(32)), 32, append(append(le64(8), le32(7, 8)...), le32(1, 2)...), []uint64{7, 8, 8}},
		{"runs counted by lengths", pbRuns(pbRange(32, 7, 1), pbFlat(32)), 32, append(le64(0), le32(1, 2)...), []uint64{7, 8, 8}},
		{"lookups", pbLookups(pbFlat(32), pbRange(64, 100, 10), 3), 64, append(le64(12, 0), le32(2, 0, 2)...), []uint64{120, 100, 120}},
		{"lookups of nothing but words", pbLookups(one, pbRange(64, 100, 10), 3), 64, nil, []uint64{110, 110}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, load(t, c.e, c.bits, uint64(len(c.want)), c.in))
			if c.bits == 64 || len(c.want) > 0 {
				require.Contains(t, []int{0, c.bits}, sequenceWidth(c.e))
			}
		})
	}
}

func TestSequencesAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		e     *enc21pb.CompressiveEncoding
		bits  int
		n     uint64
		in    []byte
		wants string
	}{
		{"nothing said", describeConstant(nil), 64, 3, nil, "of which nothing is said"},
		{"a constant of another width", describeConstant(le32(9)), 64, 3, nil, "a constant of 4 bytes"},
		{"a constant for nothing", describeConstant(le64(9)), 64, 0, nil, "no numbers"},
		{"a range that overflows", pbRange(32, 1<<31, 1<<31), 32, 3, nil, "more than 32 bits"},
		{"a range far too long", pbRange(64, 1, math.MaxUint64/2), 64, 4, nil, "more than 64 bits"},
		{"a range that stands still", pbRange(64, 1, 0), 64, 4, nil, "in steps of 0"},
		{"too few bytes", pbFlat(64), 64, 3, le64(1, 2), "16 bytes for 3"},
		{"more than the limit", pbFlat(64), 64, 1 << 40, le64(1, 2), "1099511627776 numbers"},
		{"differences that overflow", pbDelta(32, 1<<32-2, pbFlat(32)), 32, 3, le32(1, 1), "more than 32 bits"},
		{"one difference", pbDelta(32, 1, pbFlat(32)), 32, 1, nil, "differences of 1"},
		{"differences of differences", pbDelta(32, 1, pbDelta(32, 1, pbFlat(32))), 32, 4, nil, "not supported"},
		{"runs of nobody knows how many", pbRuns(pbOutOfLine(32, 3), pbOutOfLine(32, 3)), 32, 4, nil, "not supported"},
		{"runs too short", pbRuns(pbFlat(32), pbFlat(32)), 32, 4, append(append(le64(8), le32(7, 8)...), le32(1, 2)...), "runs of 3 numbers, want 4"},
		{"runs too long", pbRuns(pbFlat(32), pbFlat(32)), 32, 2, append(append(le64(8), le32(7, 8)...), le32(1, 2)...), "where 1 numbers are left"},
		{"a run of nothing", pbRuns(pbFlat(32), pbFlat(32)), 32, 2, append(append(le64(8), le32(7, 8)...), le32(0, 2)...), "a run of 0"},
		{"runs that do not fit", pbRuns(pbRange(64, 6, 1), describeConstant(le32(2))), 64, 5, nil, "runs of 2 in 5"},
		{"an index out of range", pbLookups(pbFlat(32), pbRange(64, 100, 10), 3), 64, 1, append(le64(4, 0), le32(3)...), "index 3 into a dictionary of 3"},
		{"a part too long", pbLookups(pbFlat(32), pbRange(64, 100, 10), 3), 64, 1, append(le64(8, 0), le32(3)...), "the first of two parts"},
		{"bytes of a part that has none", pbLookups(pbFlat(32), pbRange(64, 100, 10), 3), 64, 1, append(le64(4, 4), le32(1, 1)...), "a part that has none"},
		{"an empty dictionary", pbLookups(pbFlat(32), pbRange(64, 100, 10), 0), 64, 1, nil, "a dictionary of 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			codec, err := compileSequence(c.e, c.bits, 1<<20, false)
			if err == nil {
				_, err = codec.load(c.n, c.in)
			}
			require.ErrorContains(t, err, c.wants)
			require.Equal(t, table.OutcomeDamaged, table.Classify(err))
		})
	}
}

func FuzzSequence(f *testing.F) {
	for _, e := range []*enc21pb.CompressiveEncoding{
		describeConstant(nil), pbRange(32, 4, 3), pbFlat(32), pbDelta(64, 10, pbFlat(64)), pbRuns(pbFlat(32), pbFlat(32)),
		pbRuns(pbRange(64, 6, 1), describeConstant(le32(2))), pbLookups(pbFlat(32), pbRange(64, 100, 10), 3), pbOutOfLine(64, 5), pbGeneral(enc21pb.BufferCompression_LZ4, pbFlat(64)),
	} {
		b, err := proto.Marshal(e)
		require.NoError(f, err)
		f.Add(b, true, uint64(3), append(append(le64(8, 0), le32(7, 8)...), le32(1, 2)...))
	}
	f.Fuzz(func(t *testing.T, description []byte, wide bool, n uint64, in []byte) {
		e := new(enc21pb.CompressiveEncoding)
		if proto.Unmarshal(description, e) != nil {
			return
		}
		width := 32
		if wide {
			width = 64
		}
		codec, err := compileSequence(e, width, 1<<16, false)
		if err == nil {
			var s sequence
			if s, err = codec.load(n, in); err == nil {
				require.Equal(t, n, s.n)
				if n > 0 {
					_ = s.at(n - 1)
				}
				_, _ = s.sum()
			}
		}
		if err != nil {
			require.Equal(t, table.OutcomeDamaged, table.Classify(err), "%v", err)
		}
	})
}
