package fri

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of a transition of index version 1, which says how it maps rows:
//
//	Transition        { 1 sources, 2 destinations, one of 3 ordered, 4 partition }
//	OrderedCompaction { 1 changed_row_addrs }
//	StablePartition   { 1 map_id, 2 map_size_bytes, 3 base_id }
const (
	taggedSources      = 1
	taggedDestinations = 2
	taggedOrdered      = 3
	taggedPartition    = 4

	orderedSurvivors = 1

	partitionMapID = 1
	partitionSize  = 2
	partitionBase  = 3
)

// decodeTagged reads a transition of index version 1 and checks it.
func (d *decoder) decodeTagged(msg []byte) (*Transition, error) {
	m := &message{raw: msg}
	mappings := 0
	for f, err := range fields(msg) {
		if err != nil {
			return nil, broken(RuleWire, "transition: %w", err)
		}
		if f.num < taggedSources || f.num > taggedPartition {
			m.note("field %d of the transition", f.num)
			continue
		}
		if f.typ != protowire.BytesType {
			return nil, broken(RuleWire, "transition: field %d has wire type %d", f.num, f.typ)
		}
		switch f.num {
		case taggedSources:
			err = m.digest(&m.sources, f.bytes)
		case taggedDestinations:
			err = m.digest(&m.destinations, f.bytes)
		case taggedOrdered:
			mappings++
			m.mapping = OrderedCompaction
			err = m.ordered(f.bytes)
		case taggedPartition:
			mappings++
			m.mapping = StablePartition
			err = m.stablePartition(f.bytes)
		}
		if err != nil {
			return nil, err
		}
	}
	if mappings > 1 {
		return nil, broken(RuleOneMapping, "%d mappings", mappings)
	}
	if mappings == 0 && m.unknown == "" {
		return nil, broken(RuleOneMapping, "no mapping")
	}
	return d.transition(m)
}

func (m *message) ordered(msg []byte) error {
	found := false
	for f, err := range fields(msg) {
		switch {
		case err != nil:
			return broken(RuleWire, "ordered compaction: %w", err)
		case f.num != orderedSurvivors:
			m.note("field %d of the ordered compaction", f.num)
		case f.typ != protowire.BytesType:
			return broken(RuleWire, "ordered compaction: field %d has wire type %d", f.num, f.typ)
		case found:
			return broken(RuleWire, "ordered compaction: field %d occurs twice", f.num)
		default:
			found, m.treemap = true, f.bytes
		}
	}
	return nil
}

func (m *message) stablePartition(msg []byte) error {
	var base, seen uint64
	found := false
	p := &m.partition
	for f, err := range fields(msg) {
		if err == nil {
			switch f.num {
			case partitionMapID:
				if f.typ != protowire.BytesType || found {
					err = fmt.Errorf("field %d occurs twice or has wire type %d", f.num, f.typ)
				}
				found, p.MapID = true, string(f.bytes)
			case partitionSize:
				err = f.scalar(&seen, &p.Bytes)
			case partitionBase:
				err = f.scalar(&seen, &base)
				p.HasBase = true
			default:
				m.note("field %d of the stable partition", f.num)
			}
		}
		if err != nil {
			return broken(RuleWire, "stable partition: %w", err)
		}
	}
	if base > math.MaxUint32 {
		return broken(RuleMapReference, "base %d is out of range", base)
	}
	p.Base = uint32(base)
	return nil
}

// appendTagged writes a transition in the form of index version 1.
func appendTagged(dst []byte, t *Transition) []byte {
	if t.raw != nil { // not understood, or damaged: as it was read
		return append(dst, t.raw...)
	}
	for _, d := range t.sources {
		dst = appendBytes(dst, taggedSources, appendDigest(nil, d))
	}
	for _, d := range t.destinations {
		dst = appendBytes(dst, taggedDestinations, appendDigest(nil, d))
	}
	if t.mapping == OrderedCompaction {
		return appendBytes(dst, taggedOrdered, appendBytes(nil, orderedSurvivors, t.treemap))
	}
	p := t.partition
	msg := appendBytes(nil, partitionMapID, []byte(p.MapID))
	msg = appendScalar(msg, partitionSize, p.Bytes)
	if p.HasBase { // also if it is 0: the field is there or not
		msg = protowire.AppendVarint(protowire.AppendTag(msg, partitionBase, protowire.VarintType), uint64(p.Base))
	}
	return appendBytes(dst, taggedPartition, msg)
}

// MarshalBinary returns the transition as index version 1 stores it, so that the result
// of a rewrite can be sent to its committer. It does not contain the version.
func (t *Transition) MarshalBinary() ([]byte, error) {
	if !t.Followed() {
		return nil, t.obstacle()
	}
	return appendTagged(nil, t), nil
}

// ParseTransition reads what MarshalBinary wrote and checks it like [Decode]. One
// that is not understood is ErrUnsupported.
func ParseTransition(data []byte) (*Transition, error) {
	t, err := (&decoder{indexVersion: 1}).decodeTagged(data)
	if err != nil {
		return nil, err
	}
	if t.mapping == UnknownMapping {
		return nil, unknownError(t)
	}
	// It has been under way, and its bitmap is about to be committed.
	if err := t.validate(); err != nil {
		return nil, err
	}
	return t, nil
}
