package workload

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// mood is how the values of some thousand rows are spread. Engines choose encodings
// page by page, so a column that changes its mood meets many of them.
type mood struct {
	// nulls is the percentage of nulls, where a field can be null.
	nulls int
	// number draws what a value is made of.
	number func(rng *rand.Rand, row int) uint64
	// items bounds the length of lists and maps.
	items int
}

const moodRows = 3000

var moods = []mood{
	// Of every magnitude, so that bit packing meets every width.
	{nulls: 10, items: 6, number: func(rng *rand.Rand, _ int) uint64 { return rng.Uint64() >> rng.IntN(64) }},
	{nulls: 0, items: 4, number: func(rng *rand.Rand, _ int) uint64 { return rng.Uint64() }},
	// A few values, in runs, and constants.
	{nulls: 5, items: 3, number: func(_ *rand.Rand, row int) uint64 { return uint64(row/37) % 7 * 1_000_003 }},
	{nulls: 0, items: 2, number: func(*rand.Rand, int) uint64 { return 42 }},
	{nulls: 25, items: 9, number: func(rng *rand.Rand, _ int) uint64 { return uint64(rng.IntN(100)) }},
	{nulls: 1, items: 1, number: func(rng *rand.Rand, row int) uint64 { return uint64(row)*3 + uint64(rng.IntN(3)) }},
	{nulls: 97, items: 5, number: func(rng *rand.Rand, _ int) uint64 { return rng.Uint64() >> 20 }},
	{nulls: 100, number: func(*rand.Rand, int) uint64 { return 0 }},
}

// moodOf is the mood of a row's neighbourhood; columns that differ in salt are in
// different moods.
func moodOf(row, salt int) mood { return moods[(row/moodRows*5+salt)%len(moods)] }

// drawn is a column of any type whose values are drawn in changing moods. Inside of
// lists and structs nulls are where the type allows them.
func drawn(name string, dt arrow.DataType, metadata ...string) Column {
	return fieldColumn(arrow.Field{Name: name, Type: dt, Nullable: true, Metadata: pairs(metadata)})
}

// whole is drawn without nulls.
func whole(name string, dt arrow.DataType, metadata ...string) Column {
	return fieldColumn(arrow.Field{Name: name, Type: dt, Metadata: pairs(metadata)})
}

func fieldColumn(f arrow.Field) Column {
	salt := 0
	for i, c := range f.Name {
		salt += (i + 1) * int(c)
	}
	return Column{Name: f.Name, Type: f.Type, Nullable: f.Nullable, Metadata: f.Metadata, Append: func(b array.Builder, rng *rand.Rand, row int) {
		moodOf(row, salt).append(b, f.Type, f.Nullable, rng, row)
	}}
}

// pairs makes metadata of keys and values in turns.
func pairs(kv []string) arrow.Metadata {
	var keys, values []string
	for i := 0; i+1 < len(kv); i += 2 {
		keys, values = append(keys, kv[i]), append(values, kv[i+1])
	}
	return arrow.NewMetadata(keys, values)
}

// append adds a value of the type, or null.
func (m mood) append(b array.Builder, dt arrow.DataType, nullable bool, rng *rand.Rand, row int) {
	if nullable && rng.IntN(100) < m.nulls {
		b.AppendNull()
		return
	}
	if e, ok := b.(interface{ StorageBuilder() array.Builder }); ok {
		m.append(e.StorageBuilder(), dt.(arrow.ExtensionType).StorageType(), nullable, rng, row)
		return
	}
	if m.appendNested(b, dt, rng, row) {
		return
	}
	m.appendLeaf(b, dt, m.number(rng, row), rng)
}

// appendNested adds a value of a type with children, unless dt has none.
func (m mood) appendNested(b array.Builder, dt arrow.DataType, rng *rand.Rand, row int) bool {
	items := func(b array.Builder, f arrow.Field, n int) {
		for i := range n {
			m.append(b, f.Type, f.Nullable, rng, row+i)
		}
	}
	length := func() int { return rng.IntN(m.items + 1) }
	switch dt := dt.(type) {
	case *arrow.StructType:
		s := b.(*array.StructBuilder)
		s.Append(true)
		for i, f := range dt.Fields() {
			items(s.FieldBuilder(i), f, 1)
		}
	case *arrow.MapType:
		l := b.(*array.MapBuilder)
		l.Append(true)
		n := length()
		for i := range n {
			// Keys are distinct and not null.
			m.appendLeaf(l.KeyBuilder(), dt.KeyType(), uint64(i)*1009+uint64(row%5), rng)
		}
		items(l.ItemBuilder(), dt.ItemField(), n)
	case *arrow.ListType:
		l := b.(*array.ListBuilder)
		l.Append(true)
		items(l.ValueBuilder(), dt.ElemField(), length())
	case *arrow.LargeListType:
		l := b.(*array.LargeListBuilder)
		l.Append(true)
		items(l.ValueBuilder(), dt.ElemField(), length())
	case *arrow.FixedSizeListType:
		l := b.(*array.FixedSizeListBuilder)
		l.Append(true)
		items(l.ValueBuilder(), dt.ElemField(), int(dt.Len()))
	default:
		return false
	}
	return true
}

// appendLeaf adds the value that the number n stands for.
func (m mood) appendLeaf(b array.Builder, dt arrow.DataType, n uint64, rng *rand.Rand) {
	switch b := b.(type) {
	case *array.NullBuilder:
		b.AppendNull()
	case *array.BooleanBuilder:
		b.Append(n%3 == 0)
	case *array.Int8Builder:
		b.Append(int8(n))
	case *array.Int16Builder:
		b.Append(int16(n))
	case *array.Int32Builder:
		b.Append(int32(n))
	case *array.Int64Builder:
		b.Append(int64(n))
	case *array.Uint8Builder:
		b.Append(uint8(n))
	case *array.Uint16Builder:
		b.Append(uint16(n))
	case *array.Uint32Builder:
		b.Append(uint32(n))
	case *array.Uint64Builder:
		b.Append(n)
	case *array.Float16Builder:
		b.Append(float16.FromBits(uint16(n)))
	case *array.Float32Builder:
		b.Append(float32(floatOf(n)))
	case *array.Float64Builder:
		b.Append(floatOf(n))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(decimalOf(n, dt.(*arrow.Decimal128Type).Precision)))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromBigInt(decimalOf(n, dt.(*arrow.Decimal256Type).Precision)))
	case *array.Date32Builder:
		b.Append(arrow.Date32(n%40000) - 10000)
	case *array.Date64Builder:
		b.Append((arrow.Date64(n%40000) - 10000) * 86_400_000)
	case *array.Time32Builder:
		b.Append(arrow.Time32(n % uint64(86_400*perSecond(dt.(*arrow.Time32Type).Unit))))
	case *array.Time64Builder:
		b.Append(arrow.Time64(n % uint64(86_400*perSecond(dt.(*arrow.Time64Type).Unit))))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp((int64(n%4_000_000_000) - 1_000_000_000) * perSecond(dt.(*arrow.TimestampType).Unit)))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(n >> 1))
	case *array.StringBuilder:
		b.Append(textOf(n))
	case *array.LargeStringBuilder:
		b.Append(textOf(n))
	case *array.BinaryBuilder: // large ones too
		b.Append(bytesOf(n, int(n%41)))
	case *array.FixedSizeBinaryBuilder:
		b.Append(bytesOf(n, dt.(*arrow.FixedSizeBinaryType).ByteWidth))
	case array.DictionaryBuilder:
		m.appendDictionary(b, dt.(*arrow.DictionaryType), n)
	default:
		// A programmer's mistake: the families of this package are all there are.
		panic(fmt.Sprintf("workload: no values for %s", dt))
	}
}

// appendDictionary adds one of a hundred values, which indices of any width can count.
func (m mood) appendDictionary(b array.DictionaryBuilder, dt *arrow.DictionaryType, n uint64) {
	values := array.NewBuilder(memory.DefaultAllocator, dt.ValueType)
	defer values.Release()
	m.appendLeaf(values, dt.ValueType, n%100*10_007, nil)
	one := values.NewArray()
	defer one.Release()
	if err := b.AppendArray(one); err != nil {
		panic(fmt.Sprintf("workload: dictionary of %s: %v", dt.ValueType, err))
	}
}

// floatOf gives decimal fractions and, from large numbers, any bit pattern, NaN and
// infinities among them.
func floatOf(n uint64) float64 {
	if n < 1<<40 {
		return float64(n) / 100
	}
	return math.Float64frombits(n)
}

func decimalOf(n uint64, digits int32) *big.Int {
	v := new(big.Int).SetUint64(n)
	if digits > 38 && n%2 == 0 {
		v.Mul(v, v).Mul(v, new(big.Int).SetUint64(n|1))
	}
	v.Rem(v, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil))
	if n%3 == 0 {
		v.Neg(v)
	}
	return v
}

func perSecond(u arrow.TimeUnit) int64 {
	return map[arrow.TimeUnit]int64{arrow.Second: 1, arrow.Millisecond: 1e3, arrow.Microsecond: 1e6, arrow.Nanosecond: 1e9}[u]
}

// textOf is words, so that symbol tables have something to find, and empty now and then.
func textOf(n uint64) string {
	if n%23 == 7 {
		return ""
	}
	b := make([]byte, 0, 48)
	for range 1 + n%4 {
		b = append(b, vocabulary[n%uint64(len(vocabulary))]...)
		b = append(b, "é "...)
		n = n*6364136223846793005 + 1442695040888963407
	}
	return string(fmt.Appendf(b, "%d", n%100_000))
}

func bytesOf(n uint64, length int) []byte {
	b := make([]byte, length)
	for i := range b {
		n = n*6364136223846793005 + 1442695040888963407
		b[i] = byte(n >> 56)
	}
	return b
}
