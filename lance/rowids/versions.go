package rowids

import (
	"fmt"
	"iter"
	"math"
	"sort"

	"google.golang.org/protobuf/proto"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/table"
)

// Versions holds a table version for each row of a fragment, in physical order: the one
// that created the row, or that last updated it. The zero value, and nil, have no rows.
type Versions struct {
	versions []uint64 // of each run of rows
	ends     []uint64 // positions at which each run ends
}

// Uniform gives all rows the same version.
func Uniform(rows, version uint64) *Versions {
	v := &Versions{}
	v.add(rows, version)
	return v
}

// VersionsOf gives each row the version of the list.
func VersionsOf(versions ...uint64) *Versions {
	v := &Versions{}
	for _, version := range versions {
		v.add(1, version)
	}
	return v
}

// add appends rows of one version.
func (v *Versions) add(rows, version uint64) {
	if rows == 0 {
		return
	}
	if k := len(v.versions) - 1; k >= 0 && v.versions[k] == version {
		v.ends[k] += rows
		return
	}
	v.ends = append(v.ends, v.Len()+rows)
	v.versions = append(v.versions, version)
}

// Len returns the number of rows.
func (v *Versions) Len() uint64 {
	if v == nil || len(v.ends) == 0 {
		return 0
	}
	return v.ends[len(v.ends)-1]
}

// At returns the version of the row at a position; false if there is no such row.
func (v *Versions) At(position uint64) (uint64, bool) {
	if position >= v.Len() {
		return 0, false
	}
	return v.versions[v.locate(position)], true
}

// locate returns the run of a position below Len.
func (v *Versions) locate(position uint64) int {
	return sort.Search(len(v.ends), func(k int) bool { return v.ends[k] > position })
}

// Max returns the newest version, 0 if there are no rows.
func (v *Versions) Max() (newest uint64) {
	for _, version := range v.Runs() {
		newest = max(newest, version)
	}
	return newest
}

// Runs yields how many rows there are of a version, and the version, for each run of
// rows of one version.
func (v *Versions) Runs() iter.Seq2[uint64, uint64] {
	return func(yield func(uint64, uint64) bool) {
		if v == nil {
			return
		}
		start := uint64(0)
		for i, version := range v.versions {
			if !yield(v.ends[i]-start, version) {
				return
			}
			start = v.ends[i]
		}
	}
}

// Select returns the versions of the rows at the positions that ranges yields; see
// [Sequence.Select].
func (v *Versions) Select(ranges iter.Seq2[uint64, uint64]) *Versions {
	out := &Versions{}
	total := v.Len()
	for start, end := range ranges {
		end = min(end, total)
		if start >= end {
			continue
		}
		for k := v.locate(start); start < end; k++ {
			to := min(end, v.ends[k])
			out.add(to-start, v.versions[k])
			start = to
		}
	}
	return out
}

// Slice returns the versions of the rows at the positions [from, to).
func (v *Versions) Slice(from, to uint64) *Versions {
	return v.Select(func(yield func(uint64, uint64) bool) { yield(from, to) })
}

// ConcatVersions returns the rows of all lists, one after the other.
func ConcatVersions(lists ...*Versions) *Versions {
	out := &Versions{}
	for _, v := range lists {
		for rows, version := range v.Runs() {
			out.add(rows, version)
		}
	}
	return out
}

// RechunkVersions is [Rechunk] for versions.
func RechunkVersions(lists []*Versions, lengths ...uint64) ([]*Versions, bool) {
	all := ConcatVersions(lists...)
	if !addsUp(all.Len(), lengths) {
		return nil, false
	}
	out := make([]*Versions, len(lengths))
	at := uint64(0)
	for i, n := range lengths {
		out[i] = all.Slice(at, at+n)
		at += n
	}
	return out, true
}

// DecodeVersions reads the versions of a fragment's rows. Errors are those of
// [Decode].
func DecodeVersions(data []byte, rows uint64) (*Versions, error) {
	v, err := decodeVersions(data)
	if err != nil {
		return nil, err
	}
	if v.Len() != rows {
		return nil, table.Corruptf("rowids: versions of %d rows for %d rows", v.Len(), rows)
	}
	return v, nil
}

func decodeVersions(data []byte) (*Versions, error) {
	v, i := &Versions{}, 0
	var run tablepb.RowDatasetVersionRun
	err := eachMessage(data, func(body []byte) error {
		defer func() { i++ }()
		run.Reset()
		if err := proto.Unmarshal(body, &run); err != nil {
			return table.Corruptf("rowids: decode run %d of versions: %w", i, err)
		}
		if run.GetSpan() == nil {
			return table.Corruptf("rowids: run %d of versions has no rows", i)
		}
		// Writers put positions or ids into a span, whole or with what was
		// deleted taken out: only its length says anything.
		g, err := decodeSegment(run.GetSpan())
		if err != nil {
			return fmt.Errorf("rowids: run %d of versions: %w", i, err)
		}
		if g.n > math.MaxUint64-v.Len() {
			return table.Corruptf("rowids: run %d of versions: more than 2^64 rows", i)
		}
		v.add(g.n, run.GetVersion())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Encode returns the bytes of the versions. Spans are the positions of their rows.
func (v *Versions) Encode() []byte {
	m := &tablepb.RowDatasetVersionSequence{}
	start := uint64(0)
	for rows, version := range v.Runs() {
		m.Runs = append(m.Runs, &tablepb.RowDatasetVersionRun{Span: rangeMessage(start, start+rows), Version: version})
		start += rows
	}
	return marshal(m)
}
