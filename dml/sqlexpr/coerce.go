package sqlexpr

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// The common types of two operands, by DataFusion's rules.

// commonNumber is the type in which two number types are computed and compared: a
// float if one is, double if one is; else a decimal if one is, or if neither a signed
// nor an unsigned whole number holds both.
func commonNumber(l, r arrow.DataType) arrow.DataType {
	if l.ID() == r.ID() && familyOf(l) != famDecimal {
		return l
	}
	lf, rf := familyOf(l), familyOf(r)
	switch {
	case lf == famFloat || rf == famFloat:
		if l.ID() == arrow.FLOAT64 || r.ID() == arrow.FLOAT64 {
			return arrow.PrimitiveTypes.Float64
		}
		return arrow.PrimitiveTypes.Float32
	case lf == famDecimal || rf == famDecimal:
		p1, s1, w1 := decimalType(decimalOf(l))
		p2, s2, w2 := decimalType(decimalOf(r))
		s := max(s1, s2)
		return newDecimalType(max(p1-s1, p2-s2)+s, s, w1 || w2)
	case lf == rf:
		if bits(l) >= bits(r) {
			return l
		}
		return r
	}
	signed, unsigned := l, r
	if lf == famUint {
		signed, unsigned = r, l
	}
	switch need := max(bits(signed), 2*bits(unsigned)); need {
	case 16:
		return arrow.PrimitiveTypes.Int16
	case 32:
		return arrow.PrimitiveTypes.Int32
	case 64:
		return arrow.PrimitiveTypes.Int64
	}
	return &arrow.Decimal128Type{Precision: 20}
}

// decimalOf is a decimal type that holds all of a type of whole numbers, or the type
// itself if it is a decimal.
func decimalOf(t arrow.DataType) arrow.DataType {
	switch t.ID() {
	case arrow.INT8, arrow.UINT8:
		return &arrow.Decimal128Type{Precision: 3}
	case arrow.INT16, arrow.UINT16:
		return &arrow.Decimal128Type{Precision: 5}
	case arrow.INT32, arrow.UINT32:
		return &arrow.Decimal128Type{Precision: 10}
	case arrow.INT64, arrow.UINT64:
		return &arrow.Decimal128Type{Precision: 20}
	}
	return t
}

// common is the type in which values of two types are compared, or put into one
// column.
func common(l, r arrow.DataType) (arrow.DataType, error) {
	lf, rf := familyOf(l), familyOf(r)
	switch {
	case arrow.TypeEqual(l, r), rf == famNull:
		return l, nil
	case lf == famNull:
		return r, nil
	case isNumeric(l) && isNumeric(r):
		return commonNumber(l, r), nil
	case lf == famString && rf == famString:
		if l.ID() == arrow.LARGE_STRING || r.ID() == arrow.LARGE_STRING {
			return arrow.BinaryTypes.LargeString, nil
		}
		return arrow.BinaryTypes.String, nil
	case lf == famBinary && rf == famBinary:
		if l.ID() == arrow.LARGE_BINARY || r.ID() == arrow.LARGE_BINARY {
			return arrow.BinaryTypes.LargeBinary, nil
		}
		return arrow.BinaryTypes.Binary, nil
	case lf == famDate && rf == famDate:
		return arrow.FixedWidthTypes.Date64, nil
	case lf == famDate && rf == famTimestamp:
		return r, nil
	case lf == famTimestamp && rf == famDate:
		return l, nil
	case lf == famTimestamp && rf == famTimestamp:
		return commonTimestamp(l.(*arrow.TimestampType), r.(*arrow.TimestampType)), nil
	case lf == rf && (lf == famTime || lf == famDuration):
		// The finer unit loses nothing.
		if l.(arrow.TemporalWithUnit).TimeUnit() > r.(arrow.TemporalWithUnit).TimeUnit() {
			return l, nil
		}
		return r, nil
	}
	return nil, fmt.Errorf("%s and %s have no common type", typeText(l), typeText(r))
}

// commonTimestamp is of the coarser unit, as in DataFusion: half a second past is
// equal to the second in a column of seconds. A time without a zone is one in the zone
// of the other.
func commonTimestamp(l, r *arrow.TimestampType) arrow.DataType {
	zone := l.TimeZone
	if zone == "" {
		zone = r.TimeZone
	}
	return &arrow.TimestampType{Unit: min(l.Unit, r.Unit), TimeZone: zone}
}

// typeText names a type for messages.
func typeText(t arrow.DataType) string {
	if s := t.String(); len(s) <= 60 {
		return s
	}
	return strings.ToLower(t.ID().String())
}
