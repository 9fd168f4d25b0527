package rowjson

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
)

// numberAppender reads integers, floats and decimals; nil if t is none of them.
func numberAppender(t arrow.DataType, b array.Builder) appender {
	switch b := b.(type) {
	case *array.Int8Builder:
		return intAppender(t, 8, func(v int64) { b.Append(int8(v)) })
	case *array.Int16Builder:
		return intAppender(t, 16, func(v int64) { b.Append(int16(v)) })
	case *array.Int32Builder:
		return intAppender(t, 32, func(v int64) { b.Append(int32(v)) })
	case *array.Int64Builder:
		return intAppender(t, 64, b.Append)
	case *array.Uint8Builder:
		return uintAppender(t, 8, func(v uint64) { b.Append(uint8(v)) })
	case *array.Uint16Builder:
		return uintAppender(t, 16, func(v uint64) { b.Append(uint16(v)) })
	case *array.Uint32Builder:
		return uintAppender(t, 32, func(v uint64) { b.Append(uint32(v)) })
	case *array.Uint64Builder:
		return uintAppender(t, 64, b.Append)

	case *array.Float16Builder:
		return floatAppender(t, func(text string) error {
			v, err := strconv.ParseFloat(text, 64)
			half := doubleToHalf(v)
			if err == nil && !math.IsInf(v, 0) && half&0x7fff == halfInfinity {
				err = strconv.ErrRange
			}
			b.Append(float16.FromBits(half))
			return err
		})
	case *array.Float32Builder:
		return floatAppender(t, func(text string) error {
			v, err := strconv.ParseFloat(text, 32)
			b.Append(float32(v))
			return err
		})
	case *array.Float64Builder:
		return floatAppender(t, func(text string) error {
			v, err := strconv.ParseFloat(text, 64)
			if math.IsNaN(v) {
				v = engineNaN
			}
			b.Append(v)
			return err
		})

	case *array.Decimal32Builder:
		return decimalAppender(t, func(v *big.Int) { b.Append(decimal.Decimal32(v.Int64())) })
	case *array.Decimal64Builder:
		return decimalAppender(t, func(v *big.Int) { b.Append(decimal.Decimal64(v.Int64())) })
	case *array.Decimal128Builder:
		return decimalAppender(t, func(v *big.Int) { b.Append(decimal128.FromBigInt(v)) })
	case *array.Decimal256Builder:
		return decimalAppender(t, func(v *big.Int) { b.Append(decimal256.FromBigInt(v)) })
	}
	return nil
}

// numeral takes a number, or the string that another program wrote it as so that no
// reader would round it.
func numeral(s *scanner, t arrow.DataType) (string, error) {
	if s.peek() == '"' {
		text, err := s.str()
		return string(text), err
	}
	text, err := s.number()
	if err != nil {
		return "", s.unexpected("a number (" + t.String() + ")")
	}
	return string(text), nil
}

func intAppender(t arrow.DataType, bits int, add func(int64)) appender {
	return func(s *scanner) error {
		text, err := numeral(s, t)
		if err != nil {
			return err
		}
		v, err := strconv.ParseInt(text, 10, bits)
		if err != nil || text[0] == '+' {
			return badInt(t, text, err)
		}
		add(v)
		return nil
	}
}

func uintAppender(t arrow.DataType, bits int, add func(uint64)) appender {
	return func(s *scanner) error {
		text, err := numeral(s, t)
		if err != nil {
			return err
		}
		v, err := strconv.ParseUint(text, 10, bits)
		if err != nil {
			return badInt(t, text, err)
		}
		add(v)
		return nil
	}
}

func badInt(t arrow.DataType, text string, err error) error {
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%.40s is outside the range of %s", text, t)
	}
	return fmt.Errorf("%s is no whole number (%s)", shorten(text, 40), t)
}

// floatAppender reads a number, or the name of a value that is none.
func floatAppender(t arrow.DataType, add func(text string) error) appender {
	return func(s *scanner) error {
		var text string
		if s.peek() == '"' {
			name, err := s.str()
			if err != nil {
				return err
			}
			switch string(name) {
			case "NaN", "Infinity", "-Infinity":
				text = string(name)
			default:
				return fmt.Errorf("%s is no number (%s)", shorten(name, 40), t)
			}
		} else {
			number, err := s.number()
			if err != nil {
				return s.unexpected("a number (" + t.String() + ")")
			}
			text = string(number)
		}
		if err := add(text); err != nil {
			return fmt.Errorf("%.40s is outside the range of %s", text, t)
		}
		return nil
	}
}

const halfInfinity = 0x7c00

// engineNaN is the NaN that engines write; that of Go's strconv and math has a bit more,
// and stock engines compare keys by their bits. Rounded to fewer bits both are the same.
var engineNaN = math.Float64frombits(0x7ff8 << 48)

// doubleToHalf rounds to the nearest IEEE 754 binary16, ties to even. (arrow-go's
// float16.New cuts bits off and knows no subnormals.)
func doubleToHalf(v float64) uint16 {
	sign := uint16(0)
	if math.Signbit(v) {
		sign = 0x8000
	}
	v = math.Abs(v)
	switch {
	case math.IsNaN(v):
		return sign | 0x7e00
	case v >= 65520: // half way from the largest to what would come after it
		return sign | halfInfinity
	case v < math.Ldexp(1, -14): // subnormal: a multiple of 2^-24
		return sign | uint16(math.RoundToEven(math.Ldexp(v, 24)))
	}
	fraction, exponent := math.Frexp(v)                    // 0.5 <= fraction < 1
	mantissa := math.RoundToEven(math.Ldexp(fraction, 11)) // 1024 to 2048, the first bit implied
	return sign | (uint16(exponent+13)<<10 + uint16(mantissa))
}

// decimalAppender reads a decimal that the type can hold exactly: nothing is rounded.
func decimalAppender(t arrow.DataType, add func(*big.Int)) appender {
	dec := t.(arrow.DecimalType)
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(dec.GetPrecision())), nil)
	return func(s *scanner) error {
		text, err := numeral(s, t)
		if err != nil {
			return err
		}
		v, err := parseDecimal(text, int(dec.GetScale()))
		if err == nil && v.CmpAbs(limit) >= 0 {
			err = errTooLong
		}
		if err != nil {
			return fmt.Errorf("%s as %s: %w", shorten(text, 60), t, err)
		}
		add(v)
		return nil
	}
}

var (
	errNoDecimal = errors.New("it is no decimal number like -12.34")
	errTooLong   = errors.New("it has too many digits")
	errNoPlace   = errors.New("it has digits that the type's scale has no place for")
)

// parseDecimal returns the unscaled value of a decimal with the given scale.
func parseDecimal(text string, scale int) (*big.Int, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	switch {
	case whole == "", point && fraction == "", strings.Trim(whole+fraction, "0123456789") != "":
		return nil, errNoDecimal
	case len(digits) > 1000: // longer than that of any type
		return nil, errTooLong
	}
	fraction += strings.Repeat("0", max(scale-len(fraction), 0))
	all := whole + fraction
	// What is beyond the scale must be zeros, and with a negative scale that may be
	// all of it.
	kept := max(len(whole)+scale, 0)
	if strings.Trim(all[kept:], "0") != "" {
		return nil, errNoPlace
	}
	v, ok := new(big.Int).SetString("0"+all[:kept], 10)
	if !ok {
		return nil, errNoDecimal
	}
	if negative {
		v.Neg(v)
	}
	return v, nil
}

// bytesAppender reads strings and binary; nil if t is none of them.
func bytesAppender(t arrow.DataType, b array.Builder) appender {
	switch b := b.(type) {
	case *array.StringBuilder:
		return textAppender(func(v []byte) { b.Append(string(v)) })
	case *array.LargeStringBuilder:
		return textAppender(func(v []byte) { b.Append(string(v)) })
	case *array.StringViewBuilder:
		return textAppender(func(v []byte) { b.Append(string(v)) })
	case *array.BinaryBuilder: // large binary has the same
		return binaryAppender(-1, b.Append)
	case *array.BinaryViewBuilder:
		return binaryAppender(-1, b.Append)
	case *array.FixedSizeBinaryBuilder:
		return binaryAppender(t.(*arrow.FixedSizeBinaryType).ByteWidth, b.Append)
	}
	return nil
}

func textAppender(add func([]byte)) appender {
	return func(s *scanner) error {
		text, err := s.str()
		if err != nil {
			return err
		}
		add(text)
		return nil
	}
}

// binaryAppender reads n bytes in base64; any number if n is negative.
func binaryAppender(n int, add func([]byte)) appender {
	return func(s *scanner) error {
		text, err := s.str()
		if err != nil {
			return err
		}
		// The decoder skips line ends, and they are a sign of something else.
		if bytes.ContainsAny(text, "\r\n") {
			return errors.New("base64 with line ends in it")
		}
		v := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
		k, err := base64.StdEncoding.Strict().Decode(v, text)
		if err != nil {
			return fmt.Errorf("%s is no base64 with padding: %w", shorten(text, 40), err)
		}
		if n >= 0 && k != n {
			return fmt.Errorf("%d bytes, and the column's values have %d", k, n)
		}
		add(v[:k])
		return nil
	}
}
