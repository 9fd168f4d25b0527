package fri

import "github.com/rehome-db/rehome/table"

// SegmentInfo describes what answering for one source fragment takes, for people.
type SegmentInfo struct {
	Fragment table.FragmentID `json:"fragment"`
	// Kind is the form of the fragment's blocks of 65,536 rows:
	//
	//	all      every row survived
	//	none     no row did
	//	ranges   ranges of rows did
	//	offsets  few rows did, listed one by one
	//	bits     one bit a row says which did
	//	mixed    more than one of these, of different blocks
	//	labels   a stable partition: rows went where their labels say
	//	unknown  the transition is not understood
	//	damaged  it breaks a rule, and rows cannot be followed through it
	Kind string `json:"kind"`
	// StoredBytes is what the fragment's bitmap takes in the history.
	StoredBytes int `json:"stored_bytes"`
	// Bytes is the memory that it takes beside that once an address of it was
	// asked for.
	Bytes int `json:"bytes"`
	// Decoded says that the history holds it in memory now. In a cache it may
	// be held where this does not see it.
	Decoded bool `json:"decoded"`
}

// Segments describes the sources of transition i, in their order. It reads the
// headers of the bitmaps and decodes none: kind and bytes are what decoding will
// make.
func (h *History) Segments(i int) []SegmentInfo {
	t := h.transitions[i]
	out := make([]SegmentInfo, len(t.sources))
	for j, d := range t.sources {
		out[j] = SegmentInfo{Fragment: d.ID, Kind: "unknown"}
		switch t.mapping {
		case OrderedCompaction:
			p := t.parts[j]
			plan, counts := planDirectory(d, p.bits)
			memo := p.memo.Load()
			out[j].Kind, out[j].StoredBytes = plan.kind(), len(p.bits)
			out[j].Bytes = plan.bytes() + 2*counts
			out[j].Decoded = h.attached == nil && memo != nil && memo.err == nil
		case StablePartition:
			out[j].Kind = "labels"
		case DamagedMapping:
			out[j].Kind = "damaged"
		}
	}
	return out
}

func (d *directory) kind() string {
	if len(d.blocks) == 0 {
		if d.all {
			return formAll.String()
		}
		return formNone.String()
	}
	for i := range d.blocks {
		if d.blocks[i].form != d.blocks[0].form {
			return "mixed"
		}
	}
	return d.blocks[0].form.String()
}

func (f blockForm) String() string {
	return [...]string{formNone: "none", formAll: "all", formOffsets: "offsets", formBits: "bits", formRanges: "ranges"}[f]
}
