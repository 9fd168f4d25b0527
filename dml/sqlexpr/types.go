package sqlexpr

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// typesByName are the types of CAST and of literals such as date '2020-01-01', with
// the names of Lance's dialect and a few more that mean the same.
var typesByName = map[string]arrow.DataType{
	"tinyint": arrow.PrimitiveTypes.Int8, "smallint": arrow.PrimitiveTypes.Int16, "int": arrow.PrimitiveTypes.Int32,
	"integer": arrow.PrimitiveTypes.Int32, "bigint": arrow.PrimitiveTypes.Int64,
	"tinyint unsigned": arrow.PrimitiveTypes.Uint8, "smallint unsigned": arrow.PrimitiveTypes.Uint16, "int unsigned": arrow.PrimitiveTypes.Uint32,
	"integer unsigned": arrow.PrimitiveTypes.Uint32, "bigint unsigned": arrow.PrimitiveTypes.Uint64,
	"float": arrow.PrimitiveTypes.Float32, "real": arrow.PrimitiveTypes.Float32, "double": arrow.PrimitiveTypes.Float64,
	"string": arrow.BinaryTypes.String, "text": arrow.BinaryTypes.String, "varchar": arrow.BinaryTypes.String, "binary": arrow.BinaryTypes.Binary,
	"boolean": arrow.FixedWidthTypes.Boolean, "bool": arrow.FixedWidthTypes.Boolean, "date": arrow.FixedWidthTypes.Date32,
	"timestamp": timestampOf(arrow.Microsecond), "datetime": timestampOf(arrow.Microsecond),
}

func timestampOf(unit arrow.TimeUnit) *arrow.TimestampType { return &arrow.TimestampType{Unit: unit} }

// isTypeName says whether a type may begin with a word.
func isTypeName(s string) bool {
	s = strings.ToLower(s)
	return typesByName[s] != nil || s == "decimal" || s == "numeric"
}

// typeName reads the name of a type and returns it written in one way, and how many
// tokens it took.
func typeName(src source, tokens []token) (name string, n int, err error) {
	if len(tokens) == 0 || tokens[0].kind != word {
		return "", 0, src.errorf(span{len(src.sql), len(src.sql)}, "a type is expected")
	}
	name, n = strings.ToLower(tokens[0].val), 1
	at := tokens[0].at
	if n < len(tokens) && tokens[n].upper == "UNSIGNED" {
		name, n = name+" unsigned", n+1
	} else if n < len(tokens) && name == "double" && tokens[n].upper == "PRECISION" {
		n++
	}
	if n < len(tokens) && tokens[n].is("(") {
		end := n
		for end < len(tokens) && !tokens[end].is(")") {
			end++
		}
		if end == len(tokens) {
			return "", 0, src.errorf(tokens[n].at, "a bracket that is not closed")
		}
		at = at.until(tokens[end].at)
		name += "("
		for _, t := range tokens[n+1 : end] {
			if t.kind != number && !t.is(",") {
				return "", 0, src.errorf(at, "not a type")
			}
			name += t.val
		}
		name, n = name+")", end+1
	}
	if _, err := dataType(name); err != nil {
		return "", 0, src.unsupportedf(at, "%w", err)
	}
	return name, n, nil
}

// dataType is the type with a name as typeName writes it.
func dataType(name string) (arrow.DataType, error) {
	if t, ok := typesByName[name]; ok {
		return t, nil
	}
	base, args, sized := strings.Cut(strings.TrimSuffix(name, ")"), "(")
	switch {
	case sized && (base == "timestamp" || base == "datetime"):
		if unit, ok := map[string]arrow.TimeUnit{"0": arrow.Second, "3": arrow.Millisecond, "6": arrow.Microsecond, "9": arrow.Nanosecond}[args]; ok {
			return timestampOf(unit), nil
		}
		return nil, fmt.Errorf("the precision of %s: it is 0, 3, 6 or 9", name)
	case base == "decimal" || base == "numeric":
		p, s, ok := strings.Cut(args, ",")
		precision, err1 := strconv.ParseInt(p, 10, 32)
		scale, err2 := strconv.ParseInt(s, 10, 32)
		if !ok || err1 != nil || err2 != nil || precision < 1 || precision > maxPrecision128 || scale < 0 || scale > precision {
			return nil, fmt.Errorf("the type %s: decimals are decimal(precision, scale), of up to %d digits", name, maxPrecision128)
		}
		return &arrow.Decimal128Type{Precision: int32(precision), Scale: int32(scale)}, nil
	}
	return nil, fmt.Errorf("the type %s", name)
}

const (
	maxPrecision128 = 38
	maxPrecision256 = 76
)

// family sorts the types into those that are handled alike.
type family uint8

const (
	famOther family = iota // nothing but IS NULL
	famNull
	famBool
	famInt
	famUint
	famFloat
	famDecimal
	famString
	famBinary
	famDate
	famTimestamp
	famTime
	famDuration
	famStruct
	famList
)

func familyOf(t arrow.DataType) family {
	switch t.ID() {
	case arrow.NULL:
		return famNull
	case arrow.BOOL:
		return famBool
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64:
		return famInt
	case arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
		return famUint
	case arrow.FLOAT32, arrow.FLOAT64:
		return famFloat
	case arrow.DECIMAL128, arrow.DECIMAL256:
		return famDecimal
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return famString
	case arrow.BINARY, arrow.LARGE_BINARY, arrow.FIXED_SIZE_BINARY, arrow.BINARY_VIEW:
		return famBinary
	case arrow.DATE32, arrow.DATE64:
		return famDate
	case arrow.TIMESTAMP:
		return famTimestamp
	case arrow.TIME32, arrow.TIME64:
		return famTime
	case arrow.DURATION:
		return famDuration
	case arrow.STRUCT:
		return famStruct
	case arrow.LIST, arrow.LARGE_LIST, arrow.FIXED_SIZE_LIST:
		return famList
	}
	return famOther
}

func isInteger(t arrow.DataType) bool { f := familyOf(t); return f == famInt || f == famUint }

func isNumeric(t arrow.DataType) bool {
	f := familyOf(t)
	return isInteger(t) || f == famFloat || f == famDecimal
}

// isScalar says whether values of the type can be ordered.
func isScalar(t arrow.DataType) bool {
	f := familyOf(t)
	return f >= famBool && f <= famDuration
}

// bits is the width of a number type.
func bits(t arrow.DataType) int {
	if w, ok := t.(arrow.FixedWidthDataType); ok {
		return w.BitWidth()
	}
	return 0
}
