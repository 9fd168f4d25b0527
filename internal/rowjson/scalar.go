package rowjson

import (
	"encoding/base64"
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
)

func appendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }

func (e *Encoder) appendInt64(dst []byte, v int64) []byte {
	if e.enc == Raw {
		dst = append(dst, '"')
		return append(strconv.AppendInt(dst, v, 10), '"')
	}
	return strconv.AppendInt(dst, v, 10)
}

func (e *Encoder) appendUint64(dst []byte, v uint64) []byte {
	if e.enc == Raw {
		dst = append(dst, '"')
		return append(strconv.AppendUint(dst, v, 10), '"')
	}
	return strconv.AppendUint(dst, v, 10)
}

// appendFloat writes the shortest decimal of the double, with the exponent form
// that JavaScript uses (below 1e-6 and from 1e21), as encoding/json does.
func (e *Encoder) appendFloat(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	case v == 0 && math.Signbit(v):
		if e.enc == Raw {
			return append(dst, `"-0"`...)
		}
		// With the fraction, because some JSON readers take "-0" for the
		// integer 0.
		return append(dst, "-0.0"...)
	}
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, v, format, -1, 64)
	// e-09 to e-9, as JavaScript has it.
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// halfToDouble widens an IEEE 754 binary16, exactly. (arrow-go's float16.Float32
// is wrong for subnormals: it keeps their bits but not their exponent.)
func halfToDouble(h uint16) float64 {
	exponent, fraction := int(h>>10&0x1f), float64(h&0x3ff)
	var v float64
	switch {
	case exponent == 0x1f && fraction != 0:
		return math.NaN()
	case exponent == 0x1f:
		v = math.Inf(1)
	case exponent == 0:
		v = math.Ldexp(fraction, -24)
	default:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if h&0x8000 != 0 {
		return math.Copysign(v, -1)
	}
	return v
}

// appendBinary writes standard base64 with padding.
func (e *Encoder) appendBinary(dst, v []byte) []byte {
	if e.enc == Raw {
		dst = append(dst, `{"b64":`...)
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, v)
	dst = append(dst, '"')
	if e.enc == Raw {
		dst = append(dst, '}')
	}
	return dst
}

// appendDecimal writes an unscaled value of the given width in bytes.
func (e *Encoder) appendDecimal(dst []byte, unscaled *big.Int, width int, t arrow.DataType) []byte {
	if e.enc == Raw {
		le := make([]byte, width)
		v := unscaled
		if v.Sign() < 0 { // two's complement: 2^(8*width) + v
			v = new(big.Int).Add(v, new(big.Int).Lsh(big.NewInt(1), uint(8*width)))
		}
		v.FillBytes(le)
		for i, j := 0, width-1; i < j; i, j = i+1, j-1 {
			le[i], le[j] = le[j], le[i]
		}
		dst = append(dst, `{"dec":"`...)
		return append(hex.AppendEncode(dst, le), `"}`...)
	}
	scale := int(t.(arrow.DecimalType).GetScale())
	digits := new(big.Int).Abs(unscaled).Append(nil, 10)
	dst = append(dst, '"')
	if unscaled.Sign() < 0 {
		dst = append(dst, '-')
	}
	switch {
	case scale <= 0:
		dst = append(dst, digits...)
		if unscaled.Sign() != 0 {
			for ; scale < 0; scale++ {
				dst = append(dst, '0')
			}
		}
	case len(digits) > scale:
		point := len(digits) - scale
		dst = append(append(append(dst, digits[:point]...), '.'), digits[point:]...)
	default:
		dst = append(dst, '0', '.')
		for n := scale - len(digits); n > 0; n-- {
			dst = append(dst, '0')
		}
		dst = append(dst, digits...)
	}
	return append(dst, '"')
}

// appendString quotes s. Bytes that are not UTF-8 become U+FFFD, because a JSON
// text cannot carry them; they do not occur in a valid utf8 column.
func appendString(dst []byte, s string) []byte {
	const hexDigits = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' && c != 0x7f {
				i++
				continue
			}
			dst = append(dst, s[from:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default: // control characters, so that no terminal obeys them
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			from = i
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, s[from:i]...)
			dst = append(dst, "\ufffd"...)
			from = i + n
		}
		i += n
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}
