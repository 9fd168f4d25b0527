package schema_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	filepb "github.com/rehome-db/rehome/lance/internal/pb/file"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// stockSchemas are the schemas in data files that the stock engine wrote.
func stockSchemas(t *testing.T) map[string]*schema.Schema {
	out := map[string]*schema.Schema{}
	for _, glob := range []string{"../datafile/testdata/*.lance", "../../testdata/golden/*/t.lance/data/*.lance"} {
		files, err := filepath.Glob(glob)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, path := range files {
			raw, err := os.ReadFile(path)
			require.NoError(t, err)
			f, err := datafile.Open(t.Context(), readat.Bytes(raw), int64(len(raw)), path)
			if errors.Is(err, table.ErrUnsupported) {
				continue
			}
			require.NoError(t, err)
			out[path] = f.Schema()
		}
	}
	return out
}

func requireSameProto(t require.TestingT, want, got []*filepb.Field, what string) {
	require.Len(t, got, len(want), what)
	for i := range want {
		require.True(t, proto.Equal(want[i], got[i]), "%s: field %d is\n%v, want\n%v", what, i, got[i], want[i])
	}
}

// What we would write for a table's Arrow schema is what the stock engine writes.
func TestFromArrowIsWhatStockWrites(t *testing.T) {
	for path, s := range stockSchemas(t) {
		ids := []int32{}
		for f := range s.All() {
			ids = append(ids, f.ID)
		}
		if len(ids) == 0 || !slices.IsSorted(ids) || int(ids[len(ids)-1]) != len(ids)-1 {
			continue // written after columns were dropped
		}
		again, err := schema.FromArrow(s.Arrow(), 0)
		require.NoError(t, err)
		requireSameProto(t, s.Proto(), again.Proto(), path)
	}
}

func TestTableSchemaKeepsIDs(t *testing.T) {
	for path, s := range stockSchemas(t) {
		again, err := schema.FromTable(s.ToTable())
		require.NoError(t, err)
		requireSameProto(t, s.Proto(), again.Proto(), path)
		require.Equal(t, len(s.Leaves()), len(again.Leaves()))
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	m := &filepb.Field{Id: 3, ParentId: -1, Name: "a", LogicalType: "int64", Metadata: map[string][]byte{"k": {0xff}}}
	raw, err := proto.Marshal(m)
	require.NoError(t, err)
	raw = protowire.AppendString(protowire.AppendTag(raw, 99, protowire.BytesType), "from the future")
	var in filepb.Field
	require.NoError(t, proto.Unmarshal(raw, &in))
	s, err := schema.FromProto([]*filepb.Field{&in}, map[string][]byte{"x": {1}})
	require.NoError(t, err)
	out, err := proto.Marshal(s.Proto()[0])
	require.NoError(t, err)
	require.Equal(t, raw, out)
	require.Equal(t, map[string][]byte{"x": {1}}, s.ProtoMetadata())
	require.Equal(t, int32(3), s.MaxFieldID())
}

func TestLogicalTypes(t *testing.T) {
	for logical, want := range map[string]arrow.DataType{
		"null":                      arrow.Null,
		"halffloat":                 arrow.FixedWidthTypes.Float16,
		"date32:day":                arrow.FixedWidthTypes.Date32,
		"date64:ms":                 arrow.FixedWidthTypes.Date64,
		"time32:ms":                 &arrow.Time32Type{Unit: arrow.Millisecond},
		"time64:ns":                 &arrow.Time64Type{Unit: arrow.Nanosecond},
		"timestamp:us:-":            &arrow.TimestampType{Unit: arrow.Microsecond},
		"timestamp:s:+05:30":        &arrow.TimestampType{Unit: arrow.Second, TimeZone: "+05:30"},
		"duration:ms":               &arrow.DurationType{Unit: arrow.Millisecond},
		"decimal:128:20:4":          &arrow.Decimal128Type{Precision: 20, Scale: 4},
		"decimal:256:76:-3":         &arrow.Decimal256Type{Precision: 76, Scale: -3},
		"fixed_size_binary:16":      &arrow.FixedSizeBinaryType{ByteWidth: 16},
		"fixed_size_list:float:128": arrow.FixedSizeListOf(128, arrow.PrimitiveTypes.Float32),
		"fixed_size_list:fixed_size_list:float:3:2": arrow.FixedSizeListOf(2, arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32)),
		"fixed_size_list:decimal:128:10:2:7":        arrow.FixedSizeListOf(7, &arrow.Decimal128Type{Precision: 10, Scale: 2}),
		"dict:string:int32:false":                   &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
		"dict:timestamp:us:-:uint8:false": &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8,
			ValueType: &arrow.TimestampType{Unit: arrow.Microsecond}},
	} {
		got := schema.ParseLogicalType(logical)
		require.True(t, arrow.TypeEqual(want, got), "%s: %s", logical, got)
		back, err := schema.LogicalType(got)
		require.NoError(t, err)
		require.Equal(t, logical, back)
	}
	bf16 := schema.ParseLogicalType("fixed_size_list:lance.bfloat16:8")
	back, err := schema.LogicalType(bf16)
	require.NoError(t, err)
	require.Equal(t, "fixed_size_list:lance.bfloat16:8", back)

	for _, logical := range []string{
		"", "int128", "timestamp:us", "timestamp:m:-", "time32:us", "time64:s", "decimal:128:39:0", "decimal:512:3:0", "decimal:128:0:0",
		"fixed_size_binary:0", "fixed_size_binary:-3", "fixed_size_list:float:0", "fixed_size_list:float:x", "fixed_size_list:what:3",
		"fixed_size_list:float:99999999999", "dict:string:float:false", "dict:string", "struct:x",
	} {
		got := schema.ParseLogicalType(logical)
		require.IsType(t, &schema.Opaque{}, got, logical)
		require.Equal(t, "opaque<"+logical+">", got.String())
	}
	for _, dt := range []arrow.DataType{
		arrow.FixedWidthTypes.MonthInterval, arrow.BinaryTypes.StringView,
		arrow.FixedSizeListOf(2, arrow.ListOf(arrow.PrimitiveTypes.Int8)),
	} {
		_, err := schema.LogicalType(dt)
		require.ErrorIs(t, err, table.ErrUnsupported)
		_, err = schema.FromArrow(arrow.NewSchema([]arrow.Field{{Name: "odd", Type: dt}}, nil), 0)
		require.ErrorContains(t, err, `column "odd"`)
	}
}

func TestParseLogicalTypeNeverPanics(t *testing.T) {
	part := rapid.SampledFrom([]string{"fixed_size_list", "dict", "decimal", "128", "timestamp", "us", "-1", "3", "float", "int32", "", "false", "struct"})
	rapid.Check(t, func(t *rapid.T) {
		s := ""
		for i, p := range rapid.SliceOfN(part, 0, 9).Draw(t, "parts") {
			if i > 0 {
				s += ":"
			}
			s += p
		}
		dt := schema.ParseLogicalType(s)
		sch, err := schema.FromProto([]*filepb.Field{{ParentId: -1, Name: "x", LogicalType: s}}, nil)
		if err == nil {
			require.Len(t, sch.Leaves(), 1)
		}
		if _, opaque := dt.(*schema.Opaque); !opaque {
			_, _ = schema.LogicalType(dt)
		}
	})
}

func TestLeaves(t *testing.T) {
	item, all, list, empties := level.NullableItem, level.AllValidItem, level.NullAndEmptyList, level.EmptyableList
	u32 := arrow.PrimitiveTypes.Uint32
	s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{
		{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "tags", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
		{Name: "s", Nullable: true, Type: arrow.StructOf(
			arrow.Field{Name: "a", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
			arrow.Field{Name: "l", Type: arrow.LargeListOfField(arrow.Field{Name: "x", Type: arrow.BinaryTypes.LargeBinary})})},
		{Name: "v", Type: arrow.FixedSizeListOf(2, arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Float32)), Nullable: true},
		{Name: "n", Type: arrow.Null, Nullable: true},
		{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, u32), Nullable: true},
		{Name: "d", Type: &arrow.DictionaryType{IndexType: u32, ValueType: arrow.BinaryTypes.String}},
		{Name: "p", Type: arrow.StructOf(arrow.Field{Name: "a", Type: u32}, arrow.Field{Name: "b", Type: u32}),
			Metadata: arrow.NewMetadata([]string{"lance-encoding:packed"}, []string{"true"})},
		{Name: "b", Type: arrow.BinaryTypes.LargeBinary, Metadata: arrow.NewMetadata([]string{"lance-encoding:blob"}, []string{"true"})},
		{Name: "e", Type: arrow.StructOf()},
		{Name: "f", Type: arrow.FixedSizeListOf(2, arrow.StructOf(arrow.Field{Name: "a", Type: u32}))},
		{Name: "fs", Type: arrow.FixedSizeListOf(2, arrow.BinaryTypes.String)},
	}, nil), 10)
	require.NoError(t, err)
	type row struct {
		id     int32
		path   string
		typ    level.Type
		layers []level.Layer
		reason string
	}
	var got []row
	for _, l := range s.Leaves() {
		r := row{l.FieldID, l.Path, l.Type, l.Layers, ""}
		if l.Unsupported != nil {
			require.ErrorIs(t, l.Unsupported, table.ErrUnsupported)
			r.reason = l.Unsupported.Error()
		}
		got = append(got, r)
	}
	none := level.Type{}
	fixed := func(bits int) level.Type { return level.Type{Kind: level.Fixed, Bits: bits} }
	variable := func(bits int) level.Type { return level.Type{Kind: level.Variable, Bits: bits} }
	require.Equal(t, []row{
		{10, "id", fixed(64), []level.Layer{all}, ""},
		{12, "tags.item", variable(32), []level.Layer{item, list}, ""},
		{14, "s.a", fixed(1), []level.Layer{item, item}, ""},
		{16, "s.l.x", variable(64), []level.Layer{all, empties, item}, ""},
		{17, "v", level.Type{Kind: level.FixedList, Bits: 32, Dim: 6, Inner: 2}, []level.Layer{item}, ""},
		{18, "n", level.Type{Kind: level.Nothing}, []level.Layer{item}, ""},
		{21, "m.entries.key", variable(32), []level.Layer{all, all, list}, ""},
		{22, "m.entries.value", fixed(32), []level.Layer{item, all, list}, ""},
		{23, "d", variable(32), []level.Layer{all}, ""},
		{24, "p", level.Type{Kind: level.Fixed, Bits: 64, Parts: level.NewParts([]level.Part{{Bits: 32}, {Bits: 32}})}, []level.Layer{all}, ""},
		{27, "b", variable(64), []level.Layer{all}, ""},
		{28, "e", level.Type{Kind: level.Nothing}, []level.Layer{all}, ""},
		{31, "f.item.a", none, []level.Layer{all, item, all}, `schema: column "f": type fixed-size list of structs is not supported`},
		{32, "fs", none, []level.Layer{all}, `schema: column "fs": type fixed_size_list<item: utf8, nullable>[2] is not supported`},
	}, got)
}

func TestFromProtoRefuses(t *testing.T) {
	deep := []*filepb.Field{{Id: 0, ParentId: -1, LogicalType: "struct"}}
	for i := range int32(100) {
		deep = append(deep, &filepb.Field{Id: i + 1, ParentId: i, LogicalType: "struct"})
	}
	for name, fields := range map[string][]*filepb.Field{
		"same id":             {{Id: 1, ParentId: -1, LogicalType: "int8"}, {Id: 1, ParentId: -1, LogicalType: "int8"}},
		"negative id":         {{Id: -1, ParentId: -1, LogicalType: "int8"}},
		"child before parent": {{Id: 1, ParentId: 0, LogicalType: "int8"}, {Id: 0, ParentId: -1, LogicalType: "struct"}},
		"own parent":          {{Id: 1, ParentId: 1, LogicalType: "struct"}},
		"list without item":   {{Id: 1, ParentId: -1, LogicalType: "list"}},
		"number with child":   {{Id: 1, ParentId: -1, LogicalType: "int8"}, {Id: 2, ParentId: 1, LogicalType: "int8"}},
		"map of numbers":      {{Id: 1, ParentId: -1, LogicalType: "map"}, {Id: 2, ParentId: 1, LogicalType: "int8"}},
		"empty message":       {nil},
		"too deep":            deep,
	} {
		_, err := schema.FromProto(fields, nil)
		require.ErrorIs(t, err, table.ErrCorrupt, name)
	}
}

// What leaves are beside the shape of their values.
func TestLeafKinds(t *testing.T) {
	str, i32 := arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32
	dict := &arrow.DictionaryType{IndexType: i32, ValueType: str}
	wide := arrow.StructOf(arrow.Field{Name: "s", Type: str}, arrow.Field{Name: "v", Type: arrow.FixedSizeListOf(3, i32)})
	packed := arrow.MetadataFrom(map[string]string{"packed": "true"})
	s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{
		{Name: "d", Type: arrow.ListOf(dict)},
		{Name: "m", Type: arrow.MapOf(str, dict)},
		{Name: "b", Type: arrow.BinaryTypes.LargeBinary, Metadata: arrow.MetadataFrom(map[string]string{"lance-encoding:blob": "true"})},
		{Name: "p", Type: wide, Metadata: packed},
		{Name: "x", Type: str},
	}, nil), 0)
	require.NoError(t, err)
	leaves := s.Leaves()
	require.Len(t, leaves, 6)
	for i, want := range []struct{ dict, isMap, blob bool }{{dict: true}, {isMap: true}, {dict: true, isMap: true}, {blob: true}, {}, {}} {
		l := leaves[i]
		require.NoError(t, l.Unsupported)
		require.Equal(t, want, struct{ dict, isMap, blob bool }{l.Dictionary != nil, l.Map, l.Blob}, l.Path)
	}
	require.Equal(t, level.Type{Kind: level.Variable, Bits: 32, Parts: level.NewParts([]level.Part{{Bits: 32, Variable: true}, {Bits: 96, Items: 3}})}, leaves[4].Type)
	require.True(t, s.Fields[3].IsLeaf())
	require.False(t, s.Fields[0].IsLeaf())

	for _, c := range []arrow.Field{
		{Name: "x", Type: &arrow.DictionaryType{IndexType: i32, ValueType: arrow.Null}},
		{Name: "x", Type: arrow.StructOf(arrow.Field{Name: "l", Type: arrow.ListOf(i32)}), Metadata: packed},
		{Name: "x", Type: arrow.StructOf(arrow.Field{Name: "e", Type: arrow.StructOf()})},
		{Name: "x", Type: arrow.StructOf(arrow.Field{Name: "b", Type: arrow.FixedWidthTypes.Boolean}), Metadata: packed},
	} {
		s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{c}, nil), 0)
		require.NoError(t, err)
		require.ErrorIs(t, s.Leaves()[0].Unsupported, table.ErrUnsupported)
		require.ErrorContains(t, s.Leaves()[0].Unsupported, `column "x`)
	}
}

func TestIndexesOfDictionaries(t *testing.T) {
	for index, want := range map[arrow.DataType]int{
		arrow.PrimitiveTypes.Int8: 128, arrow.PrimitiveTypes.Uint8: 256, arrow.PrimitiveTypes.Int16: 1 << 15,
		arrow.PrimitiveTypes.Uint16: 1 << 16, arrow.PrimitiveTypes.Int32: 0, arrow.PrimitiveTypes.Uint64: 0,
	} {
		s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{
			{Name: "d", Type: &arrow.DictionaryType{IndexType: index, ValueType: arrow.BinaryTypes.String}},
			{Name: "b", Type: &arrow.DictionaryType{IndexType: index, ValueType: arrow.FixedWidthTypes.Boolean}},
			{Name: "s", Type: arrow.BinaryTypes.String},
		}, nil), 0)
		require.NoError(t, err)
		leaves := s.Leaves()
		require.Equal(t, want, leaves[0].Indexes(), index)
		require.Zero(t, leaves[1].Indexes())
		require.Zero(t, leaves[2].Indexes())
	}
}

// JSON is bytes in Arrow's terms; the extension's name tells Lance's type.
func TestJSONKeepsItsType(t *testing.T) {
	md := arrow.MetadataFrom(map[string]string{"ARROW:extension:name": "lance.json", "ARROW:extension:metadata": ""})
	s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{{Name: "j", Type: arrow.BinaryTypes.LargeBinary, Metadata: md}}, nil), 0)
	require.NoError(t, err)
	require.Equal(t, "json", s.Fields[0].LogicalType)
	require.Equal(t, "lance.json", s.Proto()[0].GetExtensionName())
	again, err := schema.FromTable(s.ToTable())
	require.NoError(t, err)
	requireSameProto(t, s.Proto(), again.Proto(), "json")
}

// The parts of a blob have no ids of their own in data files.
func TestBlobParts(t *testing.T) {
	fields := []*filepb.Field{
		{Id: 0, ParentId: -1, Name: "b", LogicalType: "struct", Metadata: map[string][]byte{"lance-encoding:blob": []byte("true")}},
		{Id: -1, ParentId: -1, Name: "kind", LogicalType: "uint8"},
		{Id: -1, ParentId: -1, Name: "position", LogicalType: "uint64"},
		{Id: 1, ParentId: -1, Name: "c", LogicalType: "int8"},
	}
	s, err := schema.FromProto(fields, nil)
	require.NoError(t, err)
	require.Len(t, s.Fields, 2)
	require.Len(t, s.Fields[0].Children, 2)
	requireSameProto(t, fields, s.Proto(), "blob")
	leaves := s.Leaves()
	require.Len(t, leaves, 2)
	require.True(t, leaves[0].Described)
	require.NoError(t, leaves[0].Unsupported)

	_, err = schema.FromProto(append(fields[3:], fields[1]), nil)
	require.ErrorIs(t, err, table.ErrCorrupt)
}

func TestSelect(t *testing.T) {
	s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: arrow.PrimitiveTypes.Int8}, {Name: "b", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8)},
	}, nil), 0)
	require.NoError(t, err)
	b, err := s.Select([]string{"b"})
	require.NoError(t, err)
	require.Equal(t, int32(2), b.Leaves()[0].FieldID)
	_, err = s.Select([]string{"c"})
	require.ErrorIs(t, err, table.ErrNotFound)
	f, ok := s.FieldByID(2)
	require.True(t, ok)
	require.Equal(t, "item", f.Name)
}
