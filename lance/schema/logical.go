package schema

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	filepb "github.com/rehome-db/rehome/lance/internal/pb/file"
	"github.com/rehome-db/rehome/table"
)

// Opaque stands for a logical type whose spelling is not known. Its columns can
// be named, not read. To Arrow it looks like the null type.
type Opaque struct {
	arrow.NullType
	// Logical is the spelling.
	Logical string
}

// Name implements arrow.DataType.
func (o *Opaque) Name() string { return "opaque" }

// String implements arrow.DataType.
func (o *Opaque) String() string { return "opaque<" + o.Logical + ">" }

// Fingerprint implements arrow.DataType; empty means that the type is equal to
// no other.
func (o *Opaque) Fingerprint() string { return "" }

var plainTypes = map[string]arrow.DataType{
	"null":         arrow.Null,
	"bool":         arrow.FixedWidthTypes.Boolean,
	"int8":         arrow.PrimitiveTypes.Int8,
	"uint8":        arrow.PrimitiveTypes.Uint8,
	"int16":        arrow.PrimitiveTypes.Int16,
	"uint16":       arrow.PrimitiveTypes.Uint16,
	"int32":        arrow.PrimitiveTypes.Int32,
	"uint32":       arrow.PrimitiveTypes.Uint32,
	"int64":        arrow.PrimitiveTypes.Int64,
	"uint64":       arrow.PrimitiveTypes.Uint64,
	"halffloat":    arrow.FixedWidthTypes.Float16,
	"float":        arrow.PrimitiveTypes.Float32,
	"double":       arrow.PrimitiveTypes.Float64,
	"string":       arrow.BinaryTypes.String,
	"large_string": arrow.BinaryTypes.LargeString,
	"binary":       arrow.BinaryTypes.Binary,
	"large_binary": arrow.BinaryTypes.LargeBinary,
	// JSON is stored as bytes; the field's extension metadata tells it apart.
	"json":       arrow.BinaryTypes.LargeBinary,
	"date32:day": arrow.FixedWidthTypes.Date32,
	"date64:ms":  arrow.FixedWidthTypes.Date64,
}

var units = map[string]arrow.TimeUnit{
	"s": arrow.Second, "ms": arrow.Millisecond, "us": arrow.Microsecond, "ns": arrow.Nanosecond,
}

// bfloat16 has no Arrow type; Lance's own bindings hold it as two bytes.
const bfloat16 = "lance.bfloat16"

// ParseLogicalType returns the Arrow type of a spelling that needs no children:
// everything except structs, lists, maps and fixed-size lists of structs. An
// unknown spelling gives an [Opaque].
func ParseLogicalType(logical string) arrow.DataType {
	if t, ok := plainTypes[logical]; ok {
		return t
	}
	if t := parseParameters(logical, 0); t != nil {
		return t
	}
	return &Opaque{Logical: logical}
}

// parseParameters returns nil if the spelling is not known.
func parseParameters(logical string, depth int) arrow.DataType {
	if depth > maxDepth {
		return nil
	}
	if t, ok := plainTypes[logical]; ok {
		return t
	}
	kind, rest, _ := strings.Cut(logical, ":")
	switch kind {
	case "time32":
		if u, ok := units[rest]; ok && u <= arrow.Millisecond {
			return &arrow.Time32Type{Unit: u}
		}
	case "time64":
		if u, ok := units[rest]; ok && u >= arrow.Microsecond {
			return &arrow.Time64Type{Unit: u}
		}
	case "duration":
		if u, ok := units[rest]; ok {
			return &arrow.DurationType{Unit: u}
		}
	case "timestamp":
		unit, zone, hasZone := strings.Cut(rest, ":")
		if u, ok := units[unit]; ok && hasZone {
			if zone == "-" {
				zone = ""
			}
			return &arrow.TimestampType{Unit: u, TimeZone: zone}
		}
	case "decimal":
		return parseDecimal(rest)
	case "fixed_size_binary":
		if n, ok := dimension(rest); ok {
			return &arrow.FixedSizeBinaryType{ByteWidth: int(n)}
		}
	case "fixed_size_list":
		// The item's spelling may hold colons; the size is the last part.
		i := strings.LastIndexByte(rest, ':')
		if i < 0 {
			return nil
		}
		n, ok := dimension(rest[i+1:])
		if !ok {
			return nil
		}
		if rest[:i] == bfloat16 {
			item := arrow.Field{Name: "item", Type: &arrow.FixedSizeBinaryType{ByteWidth: 2}, Nullable: true,
				Metadata: arrow.NewMetadata([]string{extensionNameKey, "ARROW:extension:metadata"}, []string{bfloat16, ""})}
			return arrow.FixedSizeListOfField(n, item)
		}
		if item := parseParameters(rest[:i], depth+1); item != nil {
			return arrow.FixedSizeListOf(n, item)
		}
	case "dict":
		return parseDictionary(rest)
	}
	return nil
}

func parseDecimal(rest string) arrow.DataType {
	parts := strings.Split(rest, ":")
	if len(parts) != 3 {
		return nil
	}
	p, errP := strconv.ParseInt(parts[1], 10, 32)
	s, errS := strconv.ParseInt(parts[2], 10, 32)
	if errP != nil || errS != nil || p < 1 {
		return nil
	}
	switch {
	case parts[0] == "128" && p <= 38:
		return &arrow.Decimal128Type{Precision: int32(p), Scale: int32(s)}
	case parts[0] == "256" && p <= 76:
		return &arrow.Decimal256Type{Precision: int32(p), Scale: int32(s)}
	}
	return nil
}

// parseDictionary reads VALUE:INDEX:ORDERED, where VALUE may hold colons.
func parseDictionary(rest string) arrow.DataType {
	i := strings.LastIndexByte(rest, ':')
	if i < 0 {
		return nil
	}
	j := strings.LastIndexByte(rest[:i], ':')
	if j < 0 {
		return nil
	}
	value, index := parseParameters(rest[:j], maxDepth), plainTypes[rest[j+1:i]]
	if value == nil || index == nil || !arrow.IsInteger(index.ID()) {
		return nil
	}
	return &arrow.DictionaryType{IndexType: index, ValueType: value, Ordered: rest[i+1:] == "true"}
}

// dimension reads a positive 32-bit size.
func dimension(s string) (int32, bool) {
	n, err := strconv.ParseInt(s, 10, 32)
	return int32(n), err == nil && n > 0
}

// LogicalType returns Lance's spelling of an Arrow type, or ErrUnsupported for a
// type that Lance does not have. Children of structs, lists and maps are not part
// of the spelling.
func LogicalType(t arrow.DataType) (string, error) {
	for s, p := range plainTypes {
		if s != "json" && arrow.TypeEqual(p, t) {
			return s, nil
		}
	}
	switch t := t.(type) {
	case *arrow.Time32Type:
		return "time32:" + t.Unit.String(), nil
	case *arrow.Time64Type:
		return "time64:" + t.Unit.String(), nil
	case *arrow.DurationType:
		return "duration:" + t.Unit.String(), nil
	case *arrow.TimestampType:
		zone := t.TimeZone
		if zone == "" {
			zone = "-"
		}
		return "timestamp:" + t.Unit.String() + ":" + zone, nil
	case *arrow.Decimal128Type:
		return fmt.Sprintf("decimal:128:%d:%d", t.Precision, t.Scale), nil
	case *arrow.Decimal256Type:
		return fmt.Sprintf("decimal:256:%d:%d", t.Precision, t.Scale), nil
	case *arrow.FixedSizeBinaryType:
		return fmt.Sprintf("fixed_size_binary:%d", t.ByteWidth), nil
	case *arrow.FixedSizeListType:
		return fixedSizeListLogical(t)
	case *arrow.DictionaryType:
		value, err := LogicalType(t.ValueType)
		if err != nil {
			return "", err
		}
		index, err := LogicalType(t.IndexType)
		if err != nil {
			return "", err
		}
		// Lance has no ordered dictionaries.
		return "dict:" + value + ":" + index + ":false", nil
	case *arrow.StructType:
		return "struct", nil
	case *arrow.ListType:
		return "list" + structSuffix(t.Elem()), nil
	case *arrow.LargeListType:
		return "large_list" + structSuffix(t.Elem()), nil
	case *arrow.MapType:
		return "map", nil
	case *Opaque:
		return t.Logical, nil
	}
	return "", table.Unsupportedf("schema: Lance has no type for %s", t)
}

func fixedSizeListLogical(t *arrow.FixedSizeListType) (string, error) {
	item := t.ElemField()
	switch item.Type.ID() {
	case arrow.LIST, arrow.LARGE_LIST, arrow.MAP, arrow.DICTIONARY:
		return "", table.Unsupportedf("schema: Lance has no type for %s", t)
	case arrow.FIXED_SIZE_LIST:
		if item.Type.(*arrow.FixedSizeListType).Elem().ID() == arrow.STRUCT {
			return "", table.Unsupportedf("schema: Lance has no type for %s", t)
		}
	case arrow.FIXED_SIZE_BINARY:
		if name, ok := item.Metadata.GetValue(extensionNameKey); ok && name == bfloat16 {
			return fmt.Sprintf("fixed_size_list:%s:%d", bfloat16, t.Len()), nil
		}
	}
	s, err := LogicalType(item.Type)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("fixed_size_list:%s:%d", s, t.Len()), nil
}

func structSuffix(item arrow.DataType) string {
	if item.ID() == arrow.STRUCT {
		return ".struct"
	}
	return ""
}

// legacyEncoding is the value of a field that only the first file format reads
// and that every writer still fills in.
func legacyEncoding(logical string) filepb.Encoding {
	kind, _, _ := strings.Cut(logical, ":")
	switch kind {
	case "string", "binary", "large_string", "large_binary", "json":
		return filepb.Encoding_VAR_BINARY
	case "dict":
		return filepb.Encoding_DICTIONARY
	case "struct", "null":
		return filepb.Encoding_NONE
	default:
		return filepb.Encoding_PLAIN
	}
}
