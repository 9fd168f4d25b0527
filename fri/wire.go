package fri

import (
	"fmt"
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// The messages are read by hand and not through generated code, because a history
// has to know where each transition's bytes lie: they are carried from version to
// version as they are.

// field is one field of a message, a varint or a length-delimited one.
type field struct {
	num    protowire.Number
	varint uint64
	bytes  []byte // within the message
	typ    protowire.Type
	raw    []byte // all of the field, with its tag, within the message
}

// fields yields the fields of a message. The last one has an error if the bytes
// are not a message.
func fields(msg []byte) iter.Seq2[field, error] {
	return func(yield func(field, error) bool) {
		for len(msg) > 0 {
			whole := msg
			num, typ, n := protowire.ConsumeTag(msg)
			if n < 0 {
				yield(field{}, protowire.ParseError(n))
				return
			}
			msg = msg[n:]
			f := field{num: num, typ: typ}
			switch typ {
			case protowire.VarintType:
				f.varint, n = protowire.ConsumeVarint(msg)
			case protowire.BytesType:
				f.bytes, n = protowire.ConsumeBytes(msg)
			default:
				n = protowire.ConsumeFieldValue(num, typ, msg)
			}
			if n < 0 {
				yield(field{}, protowire.ParseError(n))
				return
			}
			msg = msg[n:]
			f.raw = whole[: len(whole)-len(msg) : len(whole)-len(msg)]
			if !yield(f, nil) {
				return
			}
		}
	}
}

// scalar stores a varint field. A second occurrence is refused: parsers differ in
// which one they believe.
func (f field) scalar(seen *uint64, into *uint64) error {
	if f.typ != protowire.VarintType {
		return fmt.Errorf("field %d has wire type %d", f.num, f.typ)
	}
	if *seen&(1<<f.num) != 0 {
		return fmt.Errorf("field %d occurs twice", f.num)
	}
	*seen |= 1 << f.num
	*into = f.varint
	return nil
}

// appendScalar writes a varint field; zero is the default and left out.
func appendScalar(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

func appendBytes(dst []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), v)
}
