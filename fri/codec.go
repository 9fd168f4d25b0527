package fri

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/table"
)

// Field numbers of the content, and of what index version 0 has in it:
//
//	InlineContent   { 1 legacy_versions, 2 transitions }
//	Version         { 1 dataset_version, 3 groups }
//	Group           { 1 changed_row_addrs, 2 old_fragments, 3 new_fragments }
//	FragmentDigest  { 1 id, 2 physical_rows, 3 num_deleted_rows }
//
// Version 1 adds field 2, see tagged.go, and keeps field 1 as it is: content of
// version 0 is content of version 1.
const (
	contentVersions    = 1
	contentTransitions = 2

	versionDatasetVersion = 1
	versionGroups         = 3

	groupSurvivors    = 1
	groupSources      = 2
	groupDestinations = 3

	digestID           = 1
	digestPhysicalRows = 2
	digestDeletedRows  = 3
)

// MaxIndexVersion is the newest codec that is read and written.
const MaxIndexVersion = 1

// Decode reads the content of a fragment reuse index, as it lies inline in the
// table's metadata or in the external object, and checks all of it; no bitmap is
// decoded and no label file is opened. It takes time in proportion to the bytes.
// The history keeps pointing into content, which must not be changed any more.
//
// indexVersion is the codec that the index's entry in the manifest names; one
// above [MaxIndexVersion] is ErrUnsupported of package table. All other errors
// wrap ErrCorrupt; those about a transition are a [*TransitionError].
//
// A field that this release does not know is no error: the transition that has it
// is kept as bytes and not followed, and the history is not [History.Complete].
func Decode(content []byte, indexVersion int32) (*History, error) {
	return decode(content, decoder{indexVersion: indexVersion})
}

func decode(content []byte, d decoder) (*History, error) {
	if d.indexVersion < 0 || d.indexVersion > MaxIndexVersion {
		return nil, table.Unsupportedf("fri: index version %d; %d is the newest that is known", d.indexVersion, MaxIndexVersion)
	}
	d.content = content
	for f, err := range fields(content) {
		if err == nil {
			err = d.field(f)
		} else {
			err = table.Corruptf("fri: content: after %d transitions: %w", len(d.transitions), err)
		}
		if err != nil {
			return nil, err
		}
	}
	return newHistory(d.indexVersion, d.transitions, d.entries)
}

// decoder gathers what a content holds.
type decoder struct {
	indexVersion int32
	// recovers says that damaged transitions are set aside.
	recovers    bool
	transitions []*Transition
	entries     []entry
	content     []byte
	size        int // of what was read of it
}

func (d *decoder) field(f field) error {
	e := entry{field: f.num, raw: f.raw}
	switch f.num {
	case contentVersions, contentTransitions:
		if f.typ != protowire.BytesType {
			return table.Corruptf("fri: content: after %d transitions: field %d has wire type %d", len(d.transitions), f.num, f.typ)
		}
	default:
		// Not a transition, whatever it is: it is carried, and no address
		// depends on it. A change that readers had to know of would have a new
		// index version.
		d.add(e)
		return nil
	}
	first := len(d.transitions)
	if f.num == contentVersions {
		version, ts, err := d.decodeVersion(f.bytes, first)
		if err != nil {
			return err
		}
		e.datasetVersion = version
		d.transitions = append(d.transitions, ts...)
	} else {
		if d.indexVersion == 0 {
			return at(broken(RuleIndexVersion, "a tagged transition in an index of version 0"), first, 0)
		}
		t, err := d.decodeTagged(f.bytes)
		if err != nil {
			return at(err, first, 0)
		}
		d.transitions = append(d.transitions, t)
	}
	e.count = len(d.transitions) - first
	d.add(e)
	return nil
}

// add adds an entry, which is the bytes that follow those of the one before it. Those
// without transitions are kept as one: there may be as many of them as there are bytes.
func (d *decoder) add(e entry) {
	end := d.size + len(e.raw)
	if n := len(d.entries); n > 0 && e.count == 0 && d.entries[n-1].count == 0 && d.entries[n-1].field == e.field {
		last := &d.entries[n-1]
		last.raw = d.content[d.size-len(last.raw) : end : end]
		last.datasetVersion = e.datasetVersion
	} else {
		d.entries = append(d.entries, e)
	}
	d.size = end
}

// Encode returns the history's content. What was decoded is written byte for byte
// as it was read, whether it was understood or not.
func (h *History) Encode() []byte {
	raws := make([][]byte, len(h.entries))
	for i, e := range h.entries {
		raws[i] = e.raw
	}
	return slices.Concat(raws...)
}

// IndexVersion returns the codec in which Encode writes: that of the history that
// was decoded, raised by [History.Upgrade] or by appending a transition that
// version 0 has no form for.
func (h *History) IndexVersion() int32 { return h.indexVersion }

// decodeVersion reads what one commit recorded; first is the position of its first
// transition, for errors.
func (d *decoder) decodeVersion(msg []byte, first int) (datasetVersion uint64, ts []*Transition, err error) {
	var groups [][]byte
	var seen uint64
	unknown := protowire.Number(0)
	for f, err := range fields(msg) {
		switch {
		case err != nil:
			err = broken(RuleWire, "version: %w", err)
		case f.num == versionDatasetVersion:
			if err = f.scalar(&seen, &datasetVersion); err != nil {
				err = broken(RuleWire, "version: %w", err)
			}
		case f.num == versionGroups && f.typ == protowire.BytesType:
			groups = append(groups, f.bytes)
		case f.num == versionGroups:
			err = broken(RuleWire, "version: field %d has wire type %d", f.num, f.typ)
		default:
			unknown = f.num
		}
		if err != nil {
			return 0, nil, at(err, first+len(groups), datasetVersion)
		}
	}
	ts = make([]*Transition, 0, len(groups))
	for i, g := range groups {
		m, err := readGroup(g)
		if err == nil && unknown != 0 {
			m.note("field %d of the version", unknown)
		}
		var t *Transition
		if err == nil {
			t, err = d.transition(m)
		}
		if err != nil {
			return 0, nil, at(err, first+i, datasetVersion)
		}
		t.datasetVersion = datasetVersion
		ts = append(ts, t)
	}
	return datasetVersion, ts, nil
}

// readGroup reads a transition of index version 0.
func readGroup(msg []byte) (*message, error) {
	m := &message{raw: msg, mapping: OrderedCompaction}
	found := false
	for f, err := range fields(msg) {
		if err != nil {
			return nil, broken(RuleWire, "group: %w", err)
		}
		if f.num < groupSurvivors || f.num > groupDestinations {
			m.note("field %d of the group", f.num)
			continue
		}
		if f.typ != protowire.BytesType {
			return nil, broken(RuleWire, "group: field %d has wire type %d", f.num, f.typ)
		}
		switch f.num {
		case groupSurvivors:
			if found {
				return nil, broken(RuleWire, "group: field %d occurs twice", f.num)
			}
			found, m.treemap = true, f.bytes
		case groupSources:
			err = m.digest(&m.sources, f.bytes)
		case groupDestinations:
			err = m.digest(&m.destinations, f.bytes)
		}
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// message is a stored transition, of either version, taken apart but not checked.
type message struct {
	raw                   []byte
	mapping               MappingKind
	sources, destinations []Digest
	treemap               []byte
	partition             PartitionRef
	// unknown names what was found in it that this release does not know.
	unknown string
}

// note records something unknown: nothing that the message says is followed then,
// for any field may change what the others mean.
func (m *message) note(format string, args ...any) {
	if m.unknown == "" {
		m.unknown = fmt.Sprintf(format, args...)
	}
}

// transition checks what was read; if the decoder recovers, what breaks a rule is set
// aside.
func (d *decoder) transition(m *message) (*Transition, error) {
	t, err := m.transition()
	var damage *TransitionError
	if err != nil && d.recovers && errors.As(err, &damage) && errors.Is(err, table.ErrCorrupt) && len(m.sources) > 0 {
		return newDamaged(m, damage), nil
	}
	return t, err
}

// transition checks what was read.
func (m *message) transition() (*Transition, error) {
	switch {
	case m.unknown != "":
		return newUnknown(m)
	case m.mapping == StablePartition:
		return newPartition(m.sources, m.destinations, m.partition)
	default:
		return newTransition(m.sources, m.destinations, m.treemap)
	}
}

func (m *message) digest(into *[]Digest, msg []byte) error {
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
				m.note("field %d of a digest", f.num)
			}
		}
		if err != nil {
			return broken(RuleWire, "digest: %w", err)
		}
	}
	// The format has 64 bits for what an address has 32 for.
	if id > uint64(table.MaxFragmentID) {
		return broken(RuleFragmentID, "fragment id %d is out of range", id)
	}
	d.ID = table.FragmentID(id)
	*into = append(*into, d)
	return nil
}

func appendVersion(dst []byte, datasetVersion uint64, ts []*Transition) []byte {
	dst = appendScalar(dst, versionDatasetVersion, datasetVersion)
	for _, t := range ts {
		dst = appendBytes(dst, versionGroups, appendGroup(nil, t))
	}
	return dst
}

func appendGroup(dst []byte, t *Transition) []byte {
	if t.raw != nil { // damaged: as it was read
		return append(dst, t.raw...)
	}
	dst = appendBytes(dst, groupSurvivors, t.treemap)
	for _, d := range t.sources {
		dst = appendBytes(dst, groupSources, appendDigest(nil, d))
	}
	for _, d := range t.destinations {
		dst = appendBytes(dst, groupDestinations, appendDigest(nil, d))
	}
	return dst
}

// groupSize returns the length of what appendGroup appends. The bitmap is large and
// is not copied for its length.
func groupSize(t *Transition) int {
	n := protowire.SizeTag(groupSurvivors) + protowire.SizeBytes(len(t.treemap))
	var buf [32]byte
	for _, d := range t.sources {
		n += protowire.SizeTag(groupSources) + protowire.SizeBytes(len(appendDigest(buf[:0], d)))
	}
	for _, d := range t.destinations {
		n += protowire.SizeTag(groupDestinations) + protowire.SizeBytes(len(appendDigest(buf[:0], d)))
	}
	return n
}

func appendDigest(dst []byte, d Digest) []byte {
	dst = appendScalar(dst, digestID, uint64(d.ID))
	dst = appendScalar(dst, digestPhysicalRows, d.PhysicalRows)
	return appendScalar(dst, digestDeletedRows, d.DeletedRows)
}
