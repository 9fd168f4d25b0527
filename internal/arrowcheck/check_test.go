package arrowcheck_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/internal/arrowcheck"
)

// example is an array of each type, with a null where the type has one.
var examples = []struct {
	dt   arrow.DataType
	json string
}{
	{arrow.Null, `[null, null]`},
	{arrow.FixedWidthTypes.Boolean, `[true, null, false]`},
	{arrow.PrimitiveTypes.Int8, `[1, null, -1]`},
	{arrow.PrimitiveTypes.Uint64, `[1, null, 18446744073709551615]`},
	{arrow.FixedWidthTypes.Float16, `[1, null]`},
	{arrow.PrimitiveTypes.Float64, `[1.5, null]`},
	{arrow.FixedWidthTypes.Date32, `["2024-05-01", null]`},
	{arrow.FixedWidthTypes.Date64, `["2024-05-01", null]`},
	{arrow.FixedWidthTypes.Time32s, `["10:11:12", null]`},
	{arrow.FixedWidthTypes.Time64ns, `["23:59:59.999999999", null]`},
	{arrow.FixedWidthTypes.Timestamp_s, `[1714521600, null]`},
	{arrow.FixedWidthTypes.Timestamp_ns, `[1714521600, null]`},
	{arrow.FixedWidthTypes.Duration_s, `[1, null]`},
	{arrow.FixedWidthTypes.MonthDayNanoInterval, `[{"months": 1, "days": 2, "nanoseconds": 3}, null]`},
	{&arrow.Decimal128Type{Precision: 5, Scale: 2}, `["999.99", null, "-999.99"]`},
	{&arrow.Decimal256Type{Precision: 50, Scale: 2}, `["999.99", null]`},
	{&arrow.FixedSizeBinaryType{ByteWidth: 3}, `["YWJj", null]`},
	{arrow.BinaryTypes.String, `["a", null, "zwölf", ""]`},
	{arrow.BinaryTypes.LargeString, `["a", null, "zwölf"]`},
	{arrow.BinaryTypes.StringView, `["a", null, "a text too long to lie inside a view"]`},
	{arrow.BinaryTypes.Binary, `["YWJj", null]`},
	{arrow.BinaryTypes.LargeBinary, `["YWJj", null]`},
	{arrow.BinaryTypes.BinaryView, `["YWJj", null, "YSB0ZXh0IHRvbyBsb25nIHRvIGxpZSBpbnNpZGUgYSB2aWV3"]`},
	{arrow.ListOf(arrow.BinaryTypes.String), `[["a", null], null, [], ["b"]]`},
	{arrow.LargeListOf(arrow.PrimitiveTypes.Int16), `[[1, null], null, []]`},
	{arrow.ListViewOf(arrow.PrimitiveTypes.Int16), `[[1, null], null, []]`},
	{arrow.LargeListViewOf(arrow.PrimitiveTypes.Int16), `[[1, null], null, []]`},
	{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), `[[1, 2], null, [3, null]]`},
	{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), `[[{"key": "a", "value": 1}], null, []]`},
	{arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true}), `[{"a": "x"}, null, {"a": null}]`},
	{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["a", null, "b", "a"]`},
	{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: arrow.PrimitiveTypes.Int64}, `[1, null, 2]`},
}

func parse(t require.TestingT, dt arrow.DataType, json string) arrow.Array {
	a, _, err := array.FromJSON(memory.DefaultAllocator, dt, strings.NewReader(json))
	require.NoError(t, err)
	return a
}

func TestWholeArraysPass(t *testing.T) {
	for _, e := range examples {
		a := parse(t, e.dt, e.json)
		require.NoError(t, arrowcheck.Column("c", a), e.dt)
		for from := range a.Len() {
			for to := from; to <= a.Len(); to++ {
				require.NoError(t, arrowcheck.Column("c", array.NewSlice(a, int64(from), int64(to))), e.dt)
			}
		}
	}
}

// copyData copies an array's parts, so that they can be damaged.
func copyData(d arrow.ArrayData) *parts {
	p := &parts{dt: d.DataType(), n: d.Len(), offset: d.Offset(), nulls: d.NullN()}
	for _, b := range d.Buffers() {
		if b == nil {
			p.buffers = append(p.buffers, nil)
			continue
		}
		p.buffers = append(p.buffers, slices.Clone(b.Bytes()))
	}
	for _, c := range d.Children() {
		p.children = append(p.children, copyData(c))
	}
	if d.Dictionary() != nil && d.DataType().ID() == arrow.DICTIONARY {
		p.dictionary = copyData(d.Dictionary())
	}
	return p
}

type parts struct {
	dt               arrow.DataType
	n, offset, nulls int
	buffers          [][]byte
	children         []*parts
	dictionary       *parts
}

func (p *parts) data() *array.Data {
	var buffers []*memory.Buffer
	for _, b := range p.buffers {
		if b == nil {
			buffers = append(buffers, nil)
			continue
		}
		buffers = append(buffers, memory.NewBufferBytes(b))
	}
	if p.dictionary != nil {
		return array.NewDataWithDictionary(p.dt, p.n, buffers, p.nulls, p.offset, p.dictionary.data())
	}
	var children []arrow.ArrayData
	for _, c := range p.children {
		children = append(children, c.data())
	}
	return array.NewData(p.dt, p.n, buffers, children, p.nulls, p.offset)
}

// all lists the parts and those below them.
func (p *parts) all() []*parts {
	out := []*parts{p}
	for _, c := range p.children {
		out = append(out, c.all()...)
	}
	if p.dictionary != nil {
		out = append(out, p.dictionary.all()...)
	}
	return out
}

// made is the array, false if the library refuses to make it.
func (p *parts) made() (a arrow.Array, ok bool) {
	defer func() { ok = recover() == nil }()
	return array.MakeFromData(p.data()), true
}

var odd = []int64{0, 1, -1, 2, 127, 128, 255, 1 << 15, 1 << 31, -1 << 31, 1<<31 - 1, 1 << 40, 1<<63 - 1, -1 << 63}

func (p *parts) damage(t *rapid.T) {
	all := p.all()
	at := all[rapid.IntRange(0, len(all)-1).Draw(t, "array")]
	switch rapid.IntRange(0, 5).Draw(t, "what") {
	case 0:
		at.n += rapid.IntRange(-2, 70).Draw(t, "longer")
	case 1:
		at.nulls = rapid.IntRange(-1, 5).Draw(t, "nulls")
	case 2:
		at.offset += rapid.IntRange(-1, 70).Draw(t, "offset")
	default:
		if len(at.buffers) == 0 {
			return
		}
		b := rapid.IntRange(0, len(at.buffers)-1).Draw(t, "buffer")
		buf := at.buffers[b]
		switch how := rapid.IntRange(0, 4).Draw(t, "how"); {
		case len(buf) == 0 || how == 0:
			at.buffers[b] = nil
		case how == 1:
			at.buffers[b] = buf[:rapid.IntRange(1, len(buf)).Draw(t, "shorter")]
		case how == 2:
			buf[rapid.IntRange(0, len(buf)-1).Draw(t, "byte")] = rapid.Byte().Draw(t, "value")
		case how == 3 && len(buf) >= 4:
			v := rapid.SampledFrom(odd).Draw(t, "value")
			binary.LittleEndian.PutUint32(buf[4*rapid.IntRange(0, len(buf)/4-1).Draw(t, "word"):], uint32(v))
		case how == 4 && len(buf) >= 8:
			v := rapid.SampledFrom(odd).Draw(t, "value")
			binary.LittleEndian.PutUint64(buf[8*rapid.IntRange(0, len(buf)/8-1).Draw(t, "word"):], uint64(v))
		}
	}
}

// What passes can be read by every accessor, and Arrow's own full validation has nothing
// to say that is not about values.
func TestReport02WhatPassesCanBeRead(t *testing.T) {
	passed := 0
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom(examples).Draw(t, "type")
		p := copyData(parse(t, e.dt, e.json).Data())
		for range rapid.IntRange(1, 3).Draw(t, "damages") {
			p.damage(t)
		}
		a, ok := p.made()
		if !ok || arrowcheck.Column("c", a) != nil {
			return
		}
		passed++
		require.NotPanics(t, func() {
			for i := range a.Len() {
				_ = a.IsNull(i)
				_ = a.ValueStr(i)
			}
		})
		if a.DataType().ID() != arrow.STRING_VIEW && a.DataType().ID() != arrow.BINARY_VIEW { // it looks below nulls, too
			require.NoError(t, array.ValidateFull(a))
		}
	})
	require.NotZero(t, passed)
}

func ints[T int32 | int64](t *testing.T, dt arrow.DataType, v ...T) arrow.Array {
	t.Helper()
	var b []byte
	for _, x := range v {
		b, _ = binary.Append(b, binary.LittleEndian, x)
	}
	return array.MakeFromData(array.NewData(dt, len(v), []*memory.Buffer{nil, memory.NewBufferBytes(b)}, nil, 0, 0))
}

func decimal(n decimal128.Num) arrow.Array {
	b := array.NewDecimal128Builder(memory.DefaultAllocator, &arrow.Decimal128Type{Precision: 5, Scale: 2})
	b.Append(decimal128.FromI64(0))
	b.Append(n)
	return b.NewArray()
}

// Values that engines cannot read are refused, and the ones beside them are not. The
// bounds are those of pylance 14; interop holds that against the engines themselves.
func TestReport02Values(t *testing.T) {
	const day = 24 * 60 * 60
	for name, c := range map[string]struct {
		a    arrow.Array
		says string // "" if it passes
	}{
		"the first day":         {ints[int32](t, arrow.FixedWidthTypes.Date32, 0, -96465292), ""},
		"a day before it":       {ints[int32](t, arrow.FixedWidthTypes.Date32, 0, -96465293), "row 1: -96465293 is no value of type date32"},
		"the last day":          {ints[int32](t, arrow.FixedWidthTypes.Date32, 0, 95026236), ""},
		"a day after it":        {ints[int32](t, arrow.FixedWidthTypes.Date32, 0, 95026237), "row 1"},
		"part of a day":         {ints[int64](t, arrow.FixedWidthTypes.Date64, 0, 1), ""},
		"a late day":            {ints[int64](t, arrow.FixedWidthTypes.Date64, 0, 95026237*day*1000), "row 1"},
		"midnight":              {ints[int32](t, arrow.FixedWidthTypes.Time32s, 0, day), "row 1: 86400 is no value of type time32[s]"},
		"before it":             {ints[int32](t, arrow.FixedWidthTypes.Time32s, 0, day-1), ""},
		"a negative time":       {ints[int64](t, arrow.FixedWidthTypes.Time64ns, 0, -1), "row 1"},
		"any nanosecond":        {ints[int64](t, arrow.FixedWidthTypes.Timestamp_ns, -1<<63, 1<<63-1), ""},
		"not any second":        {ints[int64](t, arrow.FixedWidthTypes.Timestamp_s, 0, 1<<63-1), "row 1"},
		"the last microsecond":  {ints[int64](t, &arrow.TimestampType{Unit: arrow.Microsecond}, 0, 95026237*day*1000000-1), ""},
		"the next":              {ints[int64](t, arrow.FixedWidthTypes.Timestamp_us, 0, 95026237*day*1000000), "row 1"},
		"the last in a zone":    {ints[int64](t, arrow.FixedWidthTypes.Timestamp_us, 0, 95026237*day*1000000-1), "row 1"},
		"any duration":          {ints[int64](t, arrow.FixedWidthTypes.Duration_s, -1<<63, 1<<63-1), ""},
		"five digits":           {decimal(decimal128.FromI64(-99999)), ""},
		"six digits":            {decimal(decimal128.FromI64(100000)), "the decimal of digits 100000 is no value of type decimal(5, 2)"},
		"the smallest 128 bits": {decimal(decimal128.New(-1<<63, 0)), "row 1"},
	} {
		err := arrowcheck.Column("c", c.a)
		if c.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, `column "c"`, name)
		require.ErrorContains(t, err, c.says, name)
	}
}

// text is an array of two values, the second of which is not UTF-8.
func text(offsets ...int32) *parts {
	var o []byte
	for _, v := range offsets {
		o = binary.LittleEndian.AppendUint32(o, uint32(v))
	}
	return &parts{dt: arrow.BinaryTypes.String, n: len(offsets) - 1, buffers: [][]byte{nil, o, []byte("ab\xff\xfe")}}
}

func words(v ...int32) (b []byte) {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, uint32(x))
	}
	return b
}

// A value is named by the row that it is in, however deep, and what a null or the
// offsets hide does not count.
func TestReport02TextInsideTypes(t *testing.T) {
	list, st := arrow.ListOf(arrow.BinaryTypes.String), arrow.StructOf(arrow.Field{Name: "a", Type: arrow.BinaryTypes.String, Nullable: true})
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	e := text(0, 2, 4)
	split := text(0, 1, 2)
	split.buffers[2] = []byte("é")
	null := text(0, 2, 4)
	null.buffers[0], null.nulls = []byte{1}, 1
	for name, c := range map[string]struct {
		p    *parts
		says string
	}{
		"a text":             {e, `column "c" row 1: "\xff\xfe" is not UTF-8`},
		"half a character":   {split, `column "c" row 0: "\xc3" is not UTF-8`},
		"below a null":       {null, ""},
		"in a list":          {&parts{dt: list, n: 3, buffers: [][]byte{nil, words(0, 1, 1, 2)}, children: []*parts{e}}, `column "c.item" row 2`},
		"beyond all lists":   {&parts{dt: list, n: 1, buffers: [][]byte{nil, words(0, 1)}, children: []*parts{e}}, ""},
		"in a null list":     {&parts{dt: list, n: 2, nulls: 1, buffers: [][]byte{{1}, words(0, 1, 2)}, children: []*parts{e}}, ""},
		"in a struct":        {&parts{dt: st, n: 2, buffers: [][]byte{nil}, children: []*parts{e}}, `column "c.a" row 1`},
		"in a null struct":   {&parts{dt: st, n: 2, nulls: 1, buffers: [][]byte{{1}}, children: []*parts{e}}, ""},
		"in a slice":         {&parts{dt: st, n: 1, offset: 1, buffers: [][]byte{nil}, children: []*parts{e}}, `column "c.a" row 0`},
		"in a dictionary":    {&parts{dt: dict, n: 1, buffers: [][]byte{nil, {0}}, dictionary: e}, `value 1 of the dictionary: "\xff\xfe" is not UTF-8`},
		"beyond it":          {&parts{dt: dict, n: 2, buffers: [][]byte{nil, {0, 2}}, dictionary: text(0, 1, 2)}, `row 1: index 2 into a dictionary of 2 values`},
		"before it":          {&parts{dt: dict, n: 2, buffers: [][]byte{nil, {0, 0xff}}, dictionary: text(0, 1, 2)}, `row 1: index -1 into a dictionary of 2 values`},
		"a list backwards":   {&parts{dt: list, n: 2, buffers: [][]byte{nil, words(0, 2, 1)}, children: []*parts{text(0, 1, 2)}}, `row 1 has -1 bytes or items`},
		"a list before all":  {&parts{dt: list, n: 1, buffers: [][]byte{nil, words(-1, 1)}, children: []*parts{text(0, 1, 2)}}, `row 0 begins at offset -1`},
		"a null item":        {&parts{dt: arrow.ListOfNonNullable(arrow.BinaryTypes.String), n: 1, buffers: [][]byte{nil, words(0, 2)}, children: []*parts{null}}, `column "c.item" row 0: it is null, and must not be`},
		"nulls that are not": {&parts{dt: arrow.PrimitiveTypes.Int8, n: 2, nulls: 1, buffers: [][]byte{nil, {0, 0}}}, "1 of 2 slots are null, and nothing says which"},
	} {
		a, ok := c.p.made()
		require.True(t, ok, name)
		err := arrowcheck.Column("c", a)
		if c.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, c.says, name)
	}
}

func TestRecord(t *testing.T) {
	a, _ := text(0, 2, 4).made()
	rec := array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "ok", Type: arrow.PrimitiveTypes.Int32}, {Name: "s", Type: a.DataType()}}, nil),
		[]arrow.Array{parse(t, arrow.PrimitiveTypes.Int32, `[1, 2]`), a}, 2)
	err := arrowcheck.Record(rec)
	require.EqualError(t, err, `column "s" row 1: "\xff\xfe" is not UTF-8`)
	require.Equal(t, &arrowcheck.Error{Column: "s", Row: 1, Reason: `"\xff\xfe" is not UTF-8`}, err)
}

func BenchmarkText(b *testing.B) {
	s := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range 100000 {
		s.Append(fmt.Sprintf("a text of some length, number %d", i))
	}
	a := s.NewArray()
	b.SetBytes(int64(a.Data().SizeInBytes()))
	for b.Loop() {
		if err := arrowcheck.Column("c", a); err != nil {
			b.Fatal(err)
		}
	}
}
