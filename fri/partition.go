package fri

import (
	"context"
	"iter"
	"slices"
	"strings"
)

// MaxPartitionDestinations is how many fragments a stable partition can write: a
// label has 16 bits.
const MaxPartitionDestinations = 1 << 16

// PartitionRef says where the labels of a stable partition lie: in a file that is
// written once, by the rewrite, and belongs to the transition as long as any version
// of the table keeps that.
type PartitionRef struct {
	// MapID names the file's directory. It is a UUID in its usual, hyphenated
	// form or in hexadecimal alone.
	MapID string `json:"map_id"`
	// Bytes is the size of the file.
	Bytes uint64 `json:"bytes"`
	// Base is the root that the file lies under, one of those that the table
	// records; HasBase is false for the table's own.
	Base    uint32 `json:"base,omitempty"`
	HasBase bool   `json:"has_base,omitempty"`
}

func (r PartitionRef) check() error {
	// The id becomes part of a path.
	if !isUUID(r.MapID) {
		return broken(RuleMapReference, "map id %.100q is no UUID", r.MapID)
	}
	if r.Bytes == 0 {
		return broken(RuleMapReference, "label file %s has no size", r.MapID)
	}
	return nil
}

// key is the map id without what the two forms differ in.
func (r PartitionRef) key() string {
	return strings.ToLower(strings.ReplaceAll(r.MapID, "-", ""))
}

func isUUID(s string) bool {
	const hyphenated, plain = 36, 32
	if len(s) != hyphenated && len(s) != plain {
		return false
	}
	for i, c := range []byte(s) {
		if len(s) == hyphenated && (i == 8 || i == 13 || i == 18 || i == 23) {
			if c != '-' {
				return false
			}
			continue
		}
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
			return false
		}
	}
	return true
}

// PartitionMap is an opened label file: for every physical row of the sources, laid
// end to end in their order, the position of its destination, or none if the row was
// deleted. An engine implements it over its own files. It is safe for concurrent use.
//
// Neither of its answers is trusted: both are checked against the transition and
// against each other.
type PartitionMap interface {
	// Counts returns the matrix of counts. It is asked for once.
	Counts(ctx context.Context) (*Counts, error)
	// Labels returns the labels of the rows [from, to), which are one block of
	// the matrix. It is asked for whenever a row of the block is and the block is
	// not in memory.
	Labels(ctx context.Context, from, to uint64) (LabelBlock, error)
}

// LabelBlock is the labels of consecutive rows. The receiver owns it.
type LabelBlock struct {
	// Labels has one element for each row. That of a deleted row means nothing.
	Labels []uint16
	// Live has one bit for each row, least significant first in each word, set if
	// the row was live; nil if all rows were. Bits past the last row mean nothing.
	Live []uint64
}

func (b *LabelBlock) live(i int) bool {
	return b.Live == nil || b.Live[i/wordBits]>>(i%wordBits)&1 == 1
}

const wordBits = 64

// PartitionSource opens label files. It is called from any goroutine, when the first
// row of a partition is asked for, and again if that failed.
type PartitionSource func(ctx context.Context, ref PartitionRef) (PartitionMap, error)

// labelSource is what WithPartitions was given.
type labelSource struct {
	ctx  context.Context
	open PartitionSource
}

// WithPartitions returns the history with a way to the label files of its stable
// partitions. Without one their rows are [Untranslatable]. Decoding a history opens
// no file, so the caller that decodes it says how to open them; histories made from
// this one inherit it.
//
// A translation has no context of its own: ctx is that of all reading of label files
// on behalf of the history, and they can be read as long as it is not over.
func (h *History) WithPartitions(ctx context.Context, open PartitionSource) *History {
	return h.withLabels(&labelSource{ctx, open}, nil)
}

// withPartitionsOf gives h the source of labels of the history that it was made of,
// and what is open already.
func (h *History) withPartitionsOf(other *History) *History {
	if other.labels == nil {
		return h
	}
	return h.withLabels(other.labels, other.hops)
}

func (h *History) withLabels(from *labelSource, had []hop) *History {
	out := *h
	out.labels = from
	out.hops = slices.Clone(h.hops)
	open := make(map[string]*labels)
	for _, hop := range had {
		if l, ok := hop.rows.(*labels); ok {
			open[l.ref.key()] = l
		}
	}
	for i := range out.hops {
		hop := &out.hops[i]
		t := out.transitions[hop.transition]
		if t.mapping != StablePartition {
			continue
		}
		l, ok := open[t.partition.key()]
		if !ok || !l.isOf(t) {
			l = newLabels(from, t)
			open[t.partition.key()] = l
		}
		hop.rows = l
	}
	return &out
}

// Partitions yields where the label files are that the history needs, each with
// the position of its transition.
func (h *History) Partitions() iter.Seq2[int, PartitionRef] {
	return func(yield func(int, PartitionRef) bool) {
		for i, t := range h.transitions {
			if t.mapping == StablePartition && !yield(i, t.partition) {
				return
			}
		}
	}
}
