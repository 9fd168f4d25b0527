package table

import "slices"

// UUID identifies an index segment: 16 bytes in RFC 4122 order.
type UUID [16]byte

const hexDigits = "0123456789abcdef"

// String prints the id in the usual hyphenated form.
func (u UUID) String() string {
	out := make([]byte, 0, 36)
	for i, b := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out = append(out, '-')
		}
		out = append(out, hexDigits[b>>4], hexDigits[b&15])
	}
	return string(out)
}

// ReuseSupport says how an index behaves when its files hold old addresses and
// the table publishes a fragment reuse index that translates them. It is a fact
// about every reader that the table may meet, so an engine answers for the worst
// of them.
type ReuseSupport int

// From the safest to the least safe.
const (
	// ReuseRefuses: some reader answers wrongly as soon as the table carries a
	// fragment reuse index. The zero value, so that an unknown kind refuses.
	ReuseRefuses ReuseSupport = iota
	// ReuseMasked: right only with its coverage emptied ("masked"): its rows are
	// scanned until it is remapped or rebuilt.
	ReuseMasked
	// ReuseThrough: every reader translates its addresses, also after other
	// engines' compactions of the new fragments.
	ReuseThrough
)

func (r ReuseSupport) String() string {
	switch r {
	case ReuseThrough:
		return "through"
	case ReuseMasked:
		return "masked"
	default:
		return "refuses"
	}
}

// IndexMeta describes one segment of a secondary index.
type IndexMeta struct {
	UUID UUID
	// Name is what people call the index; segments of one index share it.
	Name string
	// Kind is the field's name of the index type, for example "BTree" or
	// "IVF_PQ"; free text for kinds that the engine does not know.
	Kind string
	// Fields are the ids of the indexed fields; none for system indexes.
	Fields []int32
	// DatasetVersion is the version whose rows the index was built from.
	DatasetVersion uint64
	// Coverage lists, ascending, the fragments whose rows the index claims to
	// hold. It may name fragments that are gone. Without CoverageKnown it means
	// nothing.
	Coverage      []FragmentID
	CoverageKnown bool
	// System marks bookkeeping entries that index no data (the fragment reuse
	// index, write-ahead state); planners ignore them.
	System bool
	// Reuse is how readers treat the index behind a fragment reuse index.
	Reuse ReuseSupport
	// ByAddress says that the index holds row addresses, or may hold them, even in a
	// table with stable row ids, where other indexes hold ids.
	ByAddress bool
	// Handle is the engine's own.
	Handle any
}

// Covers says whether the index claims the fragment's rows.
func (m IndexMeta) Covers(id FragmentID) bool {
	_, ok := slices.BinarySearch(m.Coverage, id)
	return m.CoverageKnown && ok
}

// ReuseIndexMeta is the entry of the fragment reuse index itself. Its content is
// package fri's business; engines carry the bytes.
type ReuseIndexMeta struct {
	UUID UUID
	// IndexVersion is the codec: 0 or 1.
	IndexVersion int32
	// Bytes is the size of the content, and External says whether it lies in an
	// object of its own rather than in the version's metadata.
	Bytes    uint64
	External bool
	// Path is the external object, empty if inline.
	Path string
	// Handle is the engine's own.
	Handle any
}
