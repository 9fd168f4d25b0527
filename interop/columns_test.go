package interop_test

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// scalarTypes are the column types that compaction rewrites: every one of them is
// written by an engine, compacted and read back in TestColumnTypes.
func scalarTypes() []arrow.DataType {
	types := []arrow.DataType{
		arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
		arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary, arrow.BinaryTypes.LargeBinary,
		&arrow.FixedSizeBinaryType{ByteWidth: 5},
		&arrow.Decimal128Type{Precision: 20, Scale: 3}, &arrow.Decimal256Type{Precision: 50, Scale: 4},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64,
		arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us, arrow.FixedWidthTypes.Time64ns,
		arrow.FixedSizeListOf(8, arrow.PrimitiveTypes.Float32), arrow.FixedSizeListOf(6, arrow.FixedWidthTypes.Float16),
		arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float64), arrow.FixedSizeListOf(4, arrow.PrimitiveTypes.Int8),
		arrow.FixedSizeListOf(16, arrow.PrimitiveTypes.Uint8), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int64),
	}
	for _, unit := range []arrow.TimeUnit{arrow.Second, arrow.Millisecond, arrow.Microsecond, arrow.Nanosecond} {
		types = append(types,
			&arrow.TimestampType{Unit: unit}, &arrow.TimestampType{Unit: unit, TimeZone: "UTC"}, &arrow.DurationType{Unit: unit})
	}
	return types
}

// columnShape is how a column's values and nulls are spread: the engines choose
// different encodings for each.
type columnShape string

const (
	required columnShape = "required" // not nullable, values all over
	sparse   columnShape = "nulls"    // every fifth row or so null
	constant columnShape = "constant" // one value
	few      columnShape = "few"      // runs of few values, and nulls
	allNull  columnShape = "all_null"
)

// typeTable is the schema of a table with one column of the type in each shape.
func typeTable(dt arrow.DataType) *arrow.Schema {
	fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}
	for _, shape := range []columnShape{required, sparse, constant, few, allNull} {
		fields = append(fields, arrow.Field{Name: string(shape), Type: dt, Nullable: shape != required})
	}
	return arrow.NewSchema(fields, nil)
}

// typeRows makes n rows of a type table with ids from first on.
func typeRows(s *arrow.Schema, first int64, n int, rng *rand.Rand) arrow.RecordBatch {
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	defer ids.Release()
	for i := range n {
		ids.Append(first + int64(i))
	}
	cols := []arrow.Array{ids.NewArray()}
	for _, f := range s.Fields()[1:] {
		cols = append(cols, column(f.Type, columnShape(f.Name), n, rng))
	}
	return array.NewRecordBatch(s, cols, int64(n))
}

func column(dt arrow.DataType, shape columnShape, n int, rng *rand.Rand) arrow.Array {
	validity := make([]byte, bitutil.BytesForBits(int64(n)))
	nulls := 0
	pick := make([]int, n) // which of the distinct values row i has
	for i := range n {
		null := shape == allNull || shape == sparse && rng.IntN(5) == 0 || shape == few && (i/7)%4 == 3
		if null {
			nulls++
		} else {
			bitutil.SetBit(validity, i)
		}
		switch shape {
		case constant:
			pick[i] = 0
		case few:
			pick[i] = (i / 9) % 6
		default:
			pick[i] = i
		}
	}
	seed := rng
	if shape == constant || shape == few {
		// The same values in every fragment.
		seed = rand.New(rand.NewPCG(7, 7))
	}
	values := distinct(dt, n, seed)
	return gatherValues(dt, values, pick, validity, nulls)
}

// distinct makes n values: bytes of fixed width, or strings of any length.
func distinct(dt arrow.DataType, n int, rng *rand.Rand) [][]byte {
	values := make([][]byte, n)
	for i := range values {
		values[i] = value(dt, rng)
	}
	return values
}

// value makes one value in the type's in-memory form.
func value(dt arrow.DataType, rng *rand.Rand) []byte {
	le := func(width int, v uint64) []byte {
		return binary.LittleEndian.AppendUint64(nil, v)[:width]
	}
	// Numbers of every magnitude, so that bit packing meets every width.
	any64 := func() uint64 { return rng.Uint64() >> rng.IntN(64) }
	switch t := dt.(type) {
	case *arrow.BooleanType:
		return []byte{byte(rng.IntN(2))}
	case *arrow.StringType, *arrow.LargeStringType, *arrow.BinaryType, *arrow.LargeBinaryType:
		return text(dt, rng)
	case *arrow.Decimal128Type:
		n := decimal128.FromBigInt(bigBelow(t.Precision, rng))
		return append(le(8, n.LowBits()), le(8, uint64(n.HighBits()))...)
	case *arrow.Decimal256Type:
		var out []byte
		for _, word := range decimal256.FromBigInt(bigBelow(t.Precision, rng)).Array() {
			out = append(out, le(8, word)...)
		}
		return out
	case *arrow.Date32Type:
		// Of every magnitude that the calendar of the engines has.
		return le(4, uint64((int64(int32(rng.Uint32()))>>rng.IntN(32))%90_000_000))
	case *arrow.Date64Type:
		return le(8, uint64((rng.Int64N(40000)-10000)*86400000))
	case *arrow.Time32Type:
		return le(4, uint64(rng.Int64N(86400*secondsTo(t.Unit))))
	case *arrow.Time64Type:
		return le(8, uint64(rng.Int64N(86400*secondsTo(t.Unit))))
	case *arrow.TimestampType:
		return le(8, uint64(rng.Int64N(4_000_000_000)-1_000_000_000)*uint64(secondsTo(t.Unit)))
	case *arrow.FixedSizeListType:
		var out []byte
		for range t.Len() {
			out = append(out, value(t.Elem(), rng)...)
		}
		return out
	case *arrow.FixedSizeBinaryType:
		return append(le(min(8, t.ByteWidth), rng.Uint64()), make([]byte, max(0, t.ByteWidth-8))...)
	case *arrow.Float32Type, *arrow.Float64Type, *arrow.Float16Type:
		// Any bit pattern: NaN, infinities, subnormals and negative zero among them.
		return le(dt.(arrow.FixedWidthDataType).Bytes(), rng.Uint64()<<rng.IntN(2)>>rng.IntN(2))
	case arrow.FixedWidthDataType:
		return le(t.Bytes(), any64())
	}
	panic(fmt.Sprintf("no values for %s", dt))
}

func secondsTo(u arrow.TimeUnit) int64 {
	return map[arrow.TimeUnit]int64{arrow.Second: 1, arrow.Millisecond: 1e3, arrow.Microsecond: 1e6, arrow.Nanosecond: 1e9}[u]
}

// bigBelow is a signed number of at most the given decimal digits.
func bigBelow(digits int32, rng *rand.Rand) *big.Int {
	n := new(big.Int)
	for range 1 + rng.IntN(int(digits)) {
		n.Add(n.Mul(n, big.NewInt(10)), big.NewInt(int64(rng.IntN(10))))
	}
	if rng.IntN(2) == 0 {
		n.Neg(n)
	}
	return n
}

// text is words, so that dictionaries of substrings have something to find, or
// bytes of any kind.
func text(dt arrow.DataType, rng *rand.Rand) []byte {
	if rng.IntN(20) == 0 {
		return []byte{}
	}
	if id := dt.ID(); id == arrow.BINARY || id == arrow.LARGE_BINARY {
		b := make([]byte, rng.IntN(40))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	var b []byte
	for range 1 + rng.IntN(6) {
		b = append(b, words[rng.IntN(len(words))]...)
		b = append(b, "é "...)
	}
	return fmt.Append(b, rng.IntN(1000))
}

// gatherValues lays out values[pick[i]] as an array with the given validity.
func gatherValues(dt arrow.DataType, values [][]byte, pick []int, validity []byte, nulls int) arrow.Array {
	n := len(pick)
	valid := memory.NewBufferBytes(validity)
	switch t := dt.(type) {
	case *arrow.BooleanType:
		bits := make([]byte, bitutil.BytesForBits(int64(n)))
		for i, p := range pick {
			bitutil.SetBitTo(bits, i, values[p][0] == 1)
		}
		return array.MakeFromData(array.NewData(dt, n, []*memory.Buffer{valid, memory.NewBufferBytes(bits)}, nil, nulls, 0))
	case arrow.BinaryDataType:
		b := array.NewBuilder(memory.DefaultAllocator, dt)
		defer b.Release()
		for i, p := range pick {
			switch b := b.(type) {
			case *array.StringBuilder:
				appendText(b.Append, b.AppendNull, validity, i, string(values[p]))
			case *array.LargeStringBuilder:
				appendText(b.Append, b.AppendNull, validity, i, string(values[p]))
			case *array.BinaryBuilder:
				appendText(b.Append, b.AppendNull, validity, i, values[p])
			}
		}
		return b.NewArray()
	case *arrow.FixedSizeListType:
		all := make([]int, len(pick))
		var items [][]byte
		width := t.Elem().(arrow.FixedWidthDataType).Bytes()
		for _, p := range pick {
			for at := 0; at < len(values[p]); at += width {
				items = append(items, values[p][at:at+width])
			}
		}
		all = all[:0]
		for i := range items {
			all = append(all, i)
		}
		full := make([]byte, bitutil.BytesForBits(int64(len(items))))
		for i := range items {
			bitutil.SetBit(full, i)
		}
		child := gatherValues(t.Elem(), items, all, full, 0)
		return array.MakeFromData(array.NewData(dt, n, []*memory.Buffer{valid}, []arrow.ArrayData{child.Data()}, nulls, 0))
	}
	var flat []byte
	for _, p := range pick {
		flat = append(flat, values[p]...)
	}
	return array.MakeFromData(array.NewData(dt, n, []*memory.Buffer{valid, memory.NewBufferBytes(flat)}, nil, nulls, 0))
}

func appendText[T any](value func(T), null func(), validity []byte, i int, v T) {
	if bitutil.BitIsSet(validity, i) {
		value(v)
	} else {
		null()
	}
}
