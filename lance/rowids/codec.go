package rowids

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/table"
)

// Decode reads the ids of a fragment with the given number of physical rows. Bytes
// that break the format, or another number of ids, are [table.ErrCorrupt]; a form of
// segment that is not known is [table.ErrUnsupported].
func Decode(data []byte, rows uint64) (*Sequence, error) {
	s, err := decode(data)
	if err != nil {
		return nil, err
	}
	if s.Len() != rows {
		return nil, table.Corruptf("rowids: %d ids for %d rows", s.Len(), rows)
	}
	return s, nil
}

func decode(data []byte) (*Sequence, error) {
	s, i := &Sequence{}, 0
	var pb tablepb.U64Segment
	err := eachMessage(data, func(body []byte) error {
		defer func() { i++ }()
		pb.Reset()
		if err := proto.Unmarshal(body, &pb); err != nil {
			return table.Corruptf("rowids: decode segment %d: %w", i, err)
		}
		g, err := decodeSegment(&pb)
		if err != nil {
			return fmt.Errorf("rowids: segment %d: %w", i, err)
		}
		if g.n > math.MaxUint64-s.Len() {
			return table.Corruptf("rowids: segment %d: the sequence has more than 2^64 ids", i)
		}
		s.add(g)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// eachMessage calls a function with each message in field 1. A list is decoded one by
// one: a message of a few bytes takes a hundred in memory, and there may be millions.
func eachMessage(data []byte, do func(body []byte) error) error {
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return table.Corruptf("rowids: decode a list: %w", protowire.ParseError(n))
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(num, typ, data); n < 0 {
			return table.Corruptf("rowids: decode a list: %w", protowire.ParseError(n))
		}
		if num == 1 && typ == protowire.BytesType {
			body, _ := protowire.ConsumeBytes(data)
			if err := do(body); err != nil {
				return err
			}
		}
		data = data[n:]
	}
	return nil
}

// decodeSegment returns a segment without ids if it has none.
func decodeSegment(pb *tablepb.U64Segment) (segment, error) {
	switch f := pb.GetSegment().(type) {
	case *tablepb.U64Segment_Range_:
		return decodeRange(formRange, f.Range.GetStart(), f.Range.GetEnd())
	case *tablepb.U64Segment_RangeWithHoles_:
		return decodeHoles(f.RangeWithHoles)
	case *tablepb.U64Segment_RangeWithBitmap_:
		return decodeBitmap(f.RangeWithBitmap)
	case *tablepb.U64Segment_SortedArray:
		return decodeArray(formSorted, f.SortedArray)
	case *tablepb.U64Segment_Array:
		return decodeArray(formArray, f.Array)
	}
	if len(pb.ProtoReflect().GetUnknown()) > 0 {
		return segment{}, table.Unsupportedf("a segment of a form that is not known")
	}
	return segment{}, table.Corruptf("a segment has no form")
}

// decodeRange makes a segment with every number of a range.
func decodeRange(f form, start, end uint64) (segment, error) {
	if start > end {
		return segment{}, table.Corruptf("the range from %d to %d goes backwards", start, end)
	}
	return segment{form: f, n: end - start, low: start, high: end - 1}, nil
}

func decodeHoles(pb *tablepb.U64Segment_RangeWithHoles) (segment, error) {
	s, err := decodeRange(formHoles, pb.GetStart(), pb.GetEnd())
	if err != nil {
		return s, err
	}
	if s.array, err = decodeNumbers(pb.GetHoles()); err != nil {
		return s, err
	}
	holes := s.array.len()
	switch {
	case holes == 0:
		s.form = formRange
		return s, nil
	case !s.array.ascends():
		return s, table.Corruptf("the holes of a range do not ascend")
	case s.array.at(0) < pb.GetStart() || s.array.at(holes-1) >= pb.GetEnd():
		return s, table.Corruptf("the holes from %d to %d are not all in the range from %d to %d",
			s.array.at(0), s.array.at(holes-1), pb.GetStart(), pb.GetEnd())
	}
	s.n -= uint64(holes)
	return s, nil
}

func decodeBitmap(pb *tablepb.U64Segment_RangeWithBitmap) (segment, error) {
	s, err := decodeRange(formBitmap, pb.GetStart(), pb.GetEnd())
	if err != nil {
		return s, err
	}
	b := pb.GetBitmap()
	if want := s.n/8 + min(s.n%8, 1); uint64(len(b)) != want {
		return s, table.Corruptf("a bitmap of %d bytes for the range from %d to %d", len(b), pb.GetStart(), pb.GetEnd())
	}
	if n := s.n % 8; n != 0 && b[len(b)-1]>>n != 0 {
		return s, table.Corruptf("a bitmap has bits past the end of its range from %d to %d", pb.GetStart(), pb.GetEnd())
	}
	s.bitmap = newBitmap(b)
	s.n = s.bitmap.ones
	return s, nil
}

func decodeArray(f form, pb *tablepb.EncodedU64Array) (segment, error) {
	a, err := decodeNumbers(pb)
	if err != nil || a.len() == 0 {
		return segment{}, err
	}
	s := segment{form: f, n: uint64(a.len()), array: a}
	s.low, s.high = a.bounds()
	if f == formSorted && !a.ascends() {
		return s, table.Corruptf("the ids of a sorted array do not ascend")
	}
	return s, nil
}

// decodeNumbers checks that no number overflows, so that at never does.
func decodeNumbers(pb *tablepb.EncodedU64Array) (array, error) {
	var a array
	switch f := pb.GetArray().(type) {
	case *tablepb.EncodedU64Array_U16Array_:
		a = array{width: 2, base: f.U16Array.GetBase(), bytes: f.U16Array.GetOffsets()}
	case *tablepb.EncodedU64Array_U32Array_:
		a = array{width: 4, base: f.U32Array.GetBase(), bytes: f.U32Array.GetOffsets()}
	case *tablepb.EncodedU64Array_U64Array_:
		a = array{width: 8, bytes: f.U64Array.GetValues()}
	default:
		if pb != nil && len(pb.ProtoReflect().GetUnknown()) > 0 {
			return a, table.Unsupportedf("an array of a form that is not known")
		}
		return a, table.Corruptf("an array has no form")
	}
	if len(a.bytes)%a.width != 0 {
		return a, table.Corruptf("an array of %d bytes cannot hold numbers of %d bytes", len(a.bytes), a.width)
	}
	if a.width == 8 || a.base <= math.MaxUint64-math.MaxUint32 {
		return a, nil
	}
	base := a.base
	a.base = 0
	if _, most := a.bounds(); a.len() > 0 && most > math.MaxUint64-base {
		return a, table.Corruptf("the number %d+%d of an array has more than 64 bits", base, most)
	}
	a.base = base
	return a, nil
}

// Encode returns the bytes of the sequence.
func (s *Sequence) Encode() []byte {
	m := &tablepb.RowIdSequence{}
	if s != nil {
		for i := range s.segments {
			m.Segments = append(m.Segments, s.segments[i].message())
		}
	}
	return marshal(m)
}

// marshal writes fields in a fixed order, so that the same rows give the same bytes.
// What it is given holds no strings, the only thing that it could refuse.
func marshal(m proto.Message) []byte {
	b, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if b == nil {
		b = []byte{}
	}
	return b
}

func (s *segment) message() *tablepb.U64Segment {
	switch s.form {
	case formRange:
		return rangeMessage(s.low, s.high+1)
	case formHoles:
		return &tablepb.U64Segment{Segment: &tablepb.U64Segment_RangeWithHoles_{RangeWithHoles: &tablepb.U64Segment_RangeWithHoles{
			Start: s.low, End: s.high + 1, Holes: s.array.message(),
		}}}
	case formBitmap:
		return &tablepb.U64Segment{Segment: &tablepb.U64Segment_RangeWithBitmap_{RangeWithBitmap: &tablepb.U64Segment_RangeWithBitmap{
			Start: s.low, End: s.high + 1, Bitmap: s.bitmap.bytes,
		}}}
	case formSorted:
		return &tablepb.U64Segment{Segment: &tablepb.U64Segment_SortedArray{SortedArray: s.array.message()}}
	default:
		return &tablepb.U64Segment{Segment: &tablepb.U64Segment_Array{Array: s.array.message()}}
	}
}

func rangeMessage(start, end uint64) *tablepb.U64Segment {
	return &tablepb.U64Segment{Segment: &tablepb.U64Segment_Range_{Range: &tablepb.U64Segment_Range{Start: start, End: end}}}
}

func (a array) message() *tablepb.EncodedU64Array {
	switch a.width {
	case 2:
		return &tablepb.EncodedU64Array{Array: &tablepb.EncodedU64Array_U16Array_{U16Array: &tablepb.EncodedU64Array_U16Array{Base: a.base, Offsets: a.bytes}}}
	case 4:
		return &tablepb.EncodedU64Array{Array: &tablepb.EncodedU64Array_U32Array_{U32Array: &tablepb.EncodedU64Array_U32Array{Base: a.base, Offsets: a.bytes}}}
	default:
		return &tablepb.EncodedU64Array{Array: &tablepb.EncodedU64Array_U64Array_{U64Array: &tablepb.EncodedU64Array_U64Array{Values: a.bytes}}}
	}
}
