package fsst

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// decodeNaive follows the stored table and nothing else.
func decodeNaive(t require.TestingT, table, encoded []byte) []byte {
	require.Len(t, table, 2312)
	header := binary.LittleEndian.Uint64(table)
	require.Equal(t, uint64(0x46535354), header>>32)
	require.Equal(t, uint64(1), header>>24&0xff)
	n := int(header & 0xff)
	var out []byte
	for i := 0; i < len(encoded); i++ {
		c := int(encoded[i])
		if c == 255 {
			i++
			out = append(out, encoded[i])
			continue
		}
		require.Less(t, c, n)
		size := table[8+8*n+c]
		require.LessOrEqual(t, size, byte(8))
		require.NotZero(t, size)
		out = append(out, table[8+8*c:][:size]...)
	}
	return out
}

func join(values []string) ([]byte, []uint32) {
	data, offsets := []byte("skip"), []uint32{4}
	for _, v := range values {
		data = append(data, v...)
		offsets = append(offsets, uint32(len(data)))
	}
	return data, offsets
}

func requireEncodes(t require.TestingT, e *Encoder, values []string) int {
	data, offsets := join(values)
	encoded, ends := e.Append([]byte("before"), nil, data, offsets)
	require.Len(t, ends, len(values)+1)
	require.Equal(t, uint32(6), ends[0])
	for i, v := range values {
		part := encoded[ends[i]:ends[i+1]]
		require.LessOrEqual(t, len(part), 2*len(v))
		require.Equal(t, v, string(decodeNaive(t, e.Table(), part)))
	}
	return len(encoded) - 6
}

// Whatever the table was trained on, whatever is encoded comes back.
func TestEncodeAnything(t *testing.T) {
	var trainer Trainer
	word := rapid.OneOf(
		rapid.SampledFrom([]string{"", "a", "ab", "http://", "https://www.", "example", ".com/", "\x00", "\x00\x00\x00", "\xff\xff", "日本"}),
		rapid.StringN(0, 20, -1),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 20), func(b []byte) string { return string(b) }),
	)
	value := rapid.Map(rapid.SliceOfN(word, 0, 6), func(w []string) string { return strings.Join(w, "") })
	rapid.Check(t, func(t *rapid.T) {
		data, offsets := join(rapid.SliceOfN(value, 0, 60).Draw(t, "train"))
		e := trainer.Train(data, offsets)
		require.LessOrEqual(t, len(e.symbols), 255)
		requireEncodes(t, e, rapid.SliceOfN(value, 0, 30).Draw(t, "values"))
	})
}

func urls(n int) []string {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("https://www.example-%d.com/products/%s/item?id=%d&ref=newsletter", r.IntN(50),
			[]string{"shoes", "garden", "electronics", "books"}[r.IntN(4)], r.IntN(1_000_000))
	}
	return out
}

func TestTrainedTableIsGoodAndReproducible(t *testing.T) {
	values := urls(5000)
	data, offsets := join(values)
	var trainer Trainer
	e := trainer.Train(data, offsets)
	size := requireEncodes(t, e, values)
	ratio := float64(size) / float64(len(data)-4)
	require.Less(t, ratio, 0.34)
	require.InDelta(t, e.Ratio(), ratio, 0.03)
	require.InDelta(t, trainer.Measure(e, data, offsets), ratio, 0.03)

	trainer.Train([]byte("something else in between"), []uint32{0, 9, 14, 25})
	require.Equal(t, e.Table(), trainer.Train(data, offsets).Table())
	require.Equal(t, e.Table(), new(Trainer).Train(data, offsets).Table())
}

func TestRandomBytesDoNotPay(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	values := make([]string, 300)
	for i := range values {
		b := make([]byte, 200)
		for k := range b {
			b[k] = byte(r.Uint32())
		}
		values[i] = string(b)
	}
	data, offsets := join(values)
	e := new(Trainer).Train(data, offsets)
	require.Greater(t, e.Ratio(), 0.95)
	requireEncodes(t, e, values)
}

// A few very long values are sampled all over, not only at their beginnings.
func TestTrainOnLongValues(t *testing.T) {
	long := strings.Repeat("x", 50_000) + strings.Repeat("lorem ipsum dolor sit amet ", 20_000)
	data, offsets := join([]string{long, long})
	e := new(Trainer).Train(data, offsets)
	require.Less(t, e.Ratio(), 0.2)
	requireEncodes(t, e, []string{long})
}

func BenchmarkEncode(b *testing.B) {
	data, offsets := join(urls(50_000))
	e := new(Trainer).Train(data, offsets)
	b.SetBytes(int64(len(data)))
	var dst []byte
	var ends []uint32
	for b.Loop() {
		dst, ends = e.Append(dst[:0], ends[:0], data, offsets)
	}
}

func BenchmarkTrain(b *testing.B) {
	data, offsets := join(urls(50_000))
	var t Trainer
	for b.Loop() {
		t.Train(data, offsets)
	}
}
