package fri

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/table"
)

// Field numbers of the version 0 messages:
//
//	InlineContent   { 1 versions }
//	Version         { 1 dataset_version, 3 groups }
//	Group           { 1 changed_row_addrs, 2 old_fragments, 3 new_fragments }
//	FragmentDigest  { 1 id, 2 physical_rows, 3 num_deleted_rows }
const (
	contentVersions    = 1
	contentTransitions = 2 // index version 1 only

	versionDatasetVersion = 1
	versionGroups         = 3

	groupSurvivors    = 1
	groupSources      = 2
	groupDestinations = 3

	digestID           = 1
	digestPhysicalRows = 2
	digestDeletedRows  = 3
)

// Decode reads the content of a fragment reuse index, as it lies inline in the
// table's metadata or in the external object, and checks all of it; no bitmap is
// decoded. It takes time in proportion to the bytes. The history keeps pointing
// into content, which must not be changed any more.
//
// indexVersion is the codec that the index's entry in the manifest names. Version
// 0 is read; anything else is ErrUnsupported of package table. So is a field that
// version 0 does not define: it could change what a transition means, and no
// translation is better than a wrong one. An engine that only carries the index
// along carries its bytes and needs no Decode. All other errors wrap ErrCorrupt;
// those about a transition are a [*TransitionError].
func Decode(content []byte, indexVersion int32) (*History, error) {
	if indexVersion != 0 {
		return nil, table.Unsupportedf("fri: index version %d", indexVersion)
	}
	var ts []*Transition
	var entries []entry
	for f, err := range fields(content) {
		if err != nil {
			return nil, table.Corruptf("fri: content: after %d transitions: %w", len(ts), err)
		}
		switch {
		case f.num == contentTransitions:
			return nil, table.Unsupportedf("fri: tagged transitions in an index of version 0")
		case f.num != contentVersions:
			return nil, table.Unsupportedf("fri: unknown field %d of the content", f.num)
		case f.typ != protowire.BytesType:
			return nil, table.Corruptf("fri: content: after %d transitions: field %d has wire type %d", len(ts), f.num, f.typ)
		}
		e, added, err := decodeVersion(f.bytes, len(ts))
		if err != nil {
			return nil, err
		}
		ts = append(ts, added...)
		entries = append(entries, e)
	}
	return newHistory(ts, entries)
}

// Encode returns the history's content. Entries that were decoded are written
// byte for byte as they were read.
func (h *History) Encode() []byte {
	var out []byte
	for _, e := range h.entries {
		out = appendBytes(out, contentVersions, e.raw)
	}
	return out
}

// IndexVersion returns the codec in which Encode writes.
func (h *History) IndexVersion() int32 { return 0 }

// decodeVersion reads what one commit recorded; first is the position of its first
// transition, for errors.
func decodeVersion(msg []byte, first int) (entry, []*Transition, error) {
	e := entry{raw: msg}
	var groups [][]byte
	var seen uint64
	fail := func(err error) (entry, []*Transition, error) {
		return e, nil, at(err, first+len(groups), e.datasetVersion)
	}
	for f, err := range fields(msg) {
		switch {
		case err != nil:
			return fail(broken(RuleWire, "version: %w", err))
		case f.num == versionDatasetVersion:
			if err := f.scalar(&seen, &e.datasetVersion); err != nil {
				return fail(broken(RuleWire, "version: %w", err))
			}
		case f.num == versionGroups && f.typ == protowire.BytesType:
			groups = append(groups, f.bytes)
		case f.num == versionGroups:
			return fail(broken(RuleWire, "version: field %d has wire type %d", f.num, f.typ))
		default:
			return fail(violation(table.ErrUnsupported, RuleKnownFields, "unknown field %d of the version", f.num))
		}
	}
	ts := make([]*Transition, 0, len(groups))
	for i, g := range groups {
		t, err := decodeGroup(g)
		if err != nil {
			return e, nil, at(err, first+i, e.datasetVersion)
		}
		t.datasetVersion = e.datasetVersion
		ts = append(ts, t)
	}
	e.count = len(ts)
	return e, ts, nil
}

func decodeGroup(msg []byte) (*Transition, error) {
	var sources, destinations []Digest
	var treemap []byte
	for f, err := range fields(msg) {
		if err != nil {
			return nil, broken(RuleWire, "group: %w", err)
		}
		if f.num < groupSurvivors || f.num > groupDestinations {
			return nil, violation(table.ErrUnsupported, RuleKnownFields, "unknown field %d of the group", f.num)
		}
		if f.typ != protowire.BytesType {
			return nil, broken(RuleWire, "group: field %d has wire type %d", f.num, f.typ)
		}
		if f.num == groupSurvivors {
			if treemap != nil {
				return nil, broken(RuleWire, "group: field %d occurs twice", f.num)
			}
			treemap = f.bytes
			continue
		}
		d, err := decodeDigest(f.bytes)
		if err != nil {
			return nil, err
		}
		if f.num == groupSources {
			sources = append(sources, d)
		} else {
			destinations = append(destinations, d)
		}
	}
	return newTransition(sources, destinations, treemap)
}

func decodeDigest(msg []byte) (Digest, error) {
	var d Digest
	var id, seen uint64
	for f, err := range fields(msg) {
		if err == nil {
			switch f.num {
			case digestID:
				err = f.scalar(&seen, &id)
			case digestPhysicalRows:
				err = f.scalar(&seen, &d.PhysicalRows)
			case digestDeletedRows:
				err = f.scalar(&seen, &d.DeletedRows)
			default:
				return d, violation(table.ErrUnsupported, RuleKnownFields, "unknown field %d of a digest", f.num)
			}
		}
		if err != nil {
			return d, broken(RuleWire, "digest: %w", err)
		}
	}
	// The format has 64 bits for what an address has 32 for.
	if id > uint64(table.MaxFragmentID) {
		return d, broken(RuleFragmentID, "fragment id %d is out of range", id)
	}
	d.ID = table.FragmentID(id)
	return d, nil
}

func appendVersion(dst []byte, datasetVersion uint64, ts []*Transition) []byte {
	dst = appendScalar(dst, versionDatasetVersion, datasetVersion)
	for _, t := range ts {
		dst = appendBytes(dst, versionGroups, appendGroup(nil, t))
	}
	return dst
}

func appendGroup(dst []byte, t *Transition) []byte {
	dst = appendBytes(dst, groupSurvivors, t.treemap)
	for _, d := range t.sources {
		dst = appendBytes(dst, groupSources, appendDigest(nil, d))
	}
	for _, d := range t.destinations {
		dst = appendBytes(dst, groupDestinations, appendDigest(nil, d))
	}
	return dst
}

func appendDigest(dst []byte, d Digest) []byte {
	dst = appendScalar(dst, digestID, uint64(d.ID))
	dst = appendScalar(dst, digestPhysicalRows, d.PhysicalRows)
	return appendScalar(dst, digestDeletedRows, d.DeletedRows)
}

// MarshalBinary returns the transition as it is stored in a history, without the
// version, so that a rewrite's result can travel to whoever commits it.
func (t *Transition) MarshalBinary() ([]byte, error) { return appendGroup(nil, t), nil }

// ParseTransition reads what MarshalBinary wrote and checks it like Decode.
func ParseTransition(data []byte) (*Transition, error) { return decodeGroup(data) }
