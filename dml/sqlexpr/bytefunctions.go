package sqlexpr

import (
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

func byteFunctions() []*Function {
	x := param("x", KindText|KindBytes)
	how := param("encoding", KindText).constant().like("'hex'", "'base64'")
	digest := func(name string, of func(s string) []byte) *Function {
		return &Function{Name: name, Params: []Param{x}, Result: "bytes", Doc: "digest of a text or of bytes", bind: func(b *binder, e *call, args []*node) (*node, error) {
			return b.texts(e, arrow.BinaryTypes.Binary, false, func(r *row) (string, bool, error) { return string(of(r.s(0))), true, nil }, args...)
		}}
	}
	return []*Function{
		{Name: "md5", Params: []Param{x}, Result: "text", Doc: "digest of a text or of bytes, in hexadecimal digits", bind: func(b *binder, e *call, args []*node) (*node, error) {
			return b.texts(e, arrow.BinaryTypes.String, false, func(r *row) (string, bool, error) {
				sum := md5.Sum([]byte(r.s(0)))
				return hex.EncodeToString(sum[:]), true, nil
			}, args...)
		}},
		digest("sha224", func(s string) []byte { d := sha256.Sum224([]byte(s)); return d[:] }),
		digest("sha256", func(s string) []byte { d := sha256.Sum256([]byte(s)); return d[:] }),
		digest("sha384", func(s string) []byte { d := sha512.Sum384([]byte(s)); return d[:] }),
		digest("sha512", func(s string) []byte { d := sha512.Sum512([]byte(s)); return d[:] }),
		{Name: "encode", Params: []Param{x, how}, Result: "text", Doc: "as hex or base64, which is not padded", bind: (*binder).encode},
		{Name: "decode", Params: []Param{param("x", KindText|KindBytes).like("'ff00'", "'YWI'", "'YWI='", "''", "'zz'", "s2"), how}, Result: "bytes", Doc: "read as hex or base64, padded or not", bind: (*binder).decode},
	}
}

// encodingOf reads the constant that names an encoding.
func (b *binder) encodingOf(e *call, n *node) (string, error) {
	name, err := b.constantText(n)
	if err == nil && name != "hex" && name != "base64" {
		err = fmt.Errorf("the encodings are hex and base64")
	}
	if err != nil {
		return "", b.src.errorf(n.at, "%s: %w", e.name, err)
	}
	return name, nil
}

// constantText is the value of a constant text, in small letters.
func (b *binder) constantText(n *node) (string, error) {
	v, err := n.eval(constantFrame())
	if err != nil {
		return "", err
	}
	if v.IsNull(0) {
		return "", fmt.Errorf("null where a text is expected")
	}
	return strings.ToLower(stringsOf(v.Array).Value(0)), nil
}

func (b *binder) encode(e *call, args []*node) (*node, error) {
	how, err := b.encodingOf(e, args[1])
	if err != nil {
		return nil, err
	}
	return b.texts(e, arrow.BinaryTypes.String, true, func(r *row) (string, bool, error) {
		if how == "hex" {
			return hex.EncodeToString([]byte(r.s(0))), true, nil
		}
		return base64.RawStdEncoding.EncodeToString([]byte(r.s(0))), true, nil
	}, args[0])
}

func (b *binder) decode(e *call, args []*node) (*node, error) {
	how, err := b.encodingOf(e, args[1])
	if err != nil {
		return nil, err
	}
	return b.texts(e, arrow.BinaryTypes.Binary, true, func(r *row) (string, bool, error) {
		var out []byte
		var err error
		if how == "hex" {
			out, err = hex.DecodeString(r.s(0))
		} else {
			out, err = base64.RawStdEncoding.Strict().DecodeString(strings.TrimRight(r.s(0), "="))
		}
		if err != nil {
			return "", false, fmt.Errorf("%q is no %s: %w", r.s(0), how, err)
		}
		return string(out), true, nil
	}, args[0])
}
