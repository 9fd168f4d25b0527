package rebase

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/table"
)

// RowSet is a set of row addresses: for each fragment, the offsets of its rows in the
// set. It is plain data: its JSON form is an object of base64-encoded portable Roaring
// bitmaps by fragment id.
//
// The vectors are immutable and may be shared; only [RowSet.Add] and [RowSet.AddAll]
// change the map. A fragment with a nil or an empty vector has no rows in the set. The
// nil RowSet is the empty set, for all methods but these two.
type RowSet map[table.FragmentID]*deletion.Vector

// Rows returns the set of the rows at the given addresses, in any order, duplicates
// allowed.
func Rows(addrs ...table.RowAddr) RowSet {
	offsets := map[table.FragmentID][]uint32{}
	for _, a := range addrs {
		offsets[a.Fragment()] = append(offsets[a.Fragment()], a.Offset())
	}
	s := RowSet{}
	for id, o := range offsets {
		s[id] = deletion.Of(o...)
	}
	return s
}

// Add adds rows of one fragment.
func (s RowSet) Add(id table.FragmentID, offsets *deletion.Vector) {
	switch was := s[id]; {
	case offsets.IsEmpty():
	case was.IsEmpty():
		s[id] = offsets
	default:
		s[id] = was.Union(offsets)
	}
}

// AddAll adds the rows of another set.
func (s RowSet) AddAll(t RowSet) {
	for id, v := range t {
		s.Add(id, v)
	}
}

// Rows is the number of rows in the set.
func (s RowSet) Rows() (n uint64) {
	for _, v := range s {
		n += v.Cardinality()
	}
	return n
}

// IsEmpty says whether the set has no rows.
func (s RowSet) IsEmpty() bool {
	for _, v := range s {
		if !v.IsEmpty() {
			return false
		}
	}
	return true
}

// Fragments are the fragments that have rows in the set, ascending.
func (s RowSet) Fragments() []table.FragmentID {
	var ids []table.FragmentID
	for id, v := range s {
		if !v.IsEmpty() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Contains says whether the row at an address is in the set.
func (s RowSet) Contains(a table.RowAddr) bool { return s[a.Fragment()].Contains(a.Offset()) }

// Addrs yields the addresses of the rows, ascending.
func (s RowSet) Addrs() iter.Seq[table.RowAddr] {
	return func(yield func(table.RowAddr) bool) {
		for _, id := range s.Fragments() {
			for o := range s[id].All() {
				if !yield(table.NewRowAddr(id, o)) {
					return
				}
			}
		}
	}
}

// Equal says whether two sets have the same rows.
func (s RowSet) Equal(t RowSet) bool {
	for _, pair := range [][2]RowSet{{s, t}, {t, s}} {
		for id, v := range pair[0] {
			if !v.Equal(pair[1][id]) {
				return false
			}
		}
	}
	return true
}

// Clone returns a set that can be added to without changing s.
func (s RowSet) Clone() RowSet {
	if s == nil {
		return RowSet{}
	}
	return maps.Clone(s)
}

// String names the first few rows, for messages.
func (s RowSet) String() string {
	const shown = 4
	rows := s.Rows()
	if rows == 0 {
		return "no rows"
	}
	out := "row"
	if rows > 1 {
		out = "rows"
	}
	n := uint64(0)
	for a := range s.Addrs() {
		if n == shown {
			return fmt.Sprintf("%s and %d more", out, rows-shown)
		}
		if n > 0 {
			out += ","
		}
		out += " " + a.String()
		n++
	}
	return out
}

// MarshalJSON implements json.Marshaler.
func (s RowSet) MarshalJSON() ([]byte, error) {
	out := map[table.FragmentID][]byte{}
	for _, id := range s.Fragments() {
		out[id] = deletion.EncodeRuns(s[id])
	}
	return json.Marshal(out)
}

// UnmarshalJSON implements json.Unmarshaler. It checks the bitmaps; whether the
// fragments have such rows shows when the set is used.
func (s *RowSet) UnmarshalJSON(data []byte) error {
	var in map[table.FragmentID][]byte
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("rebase: row set: %w", err)
	}
	out := RowSet{}
	for id, bitmap := range in {
		v, err := deletion.DecodeBitmap(bitmap, math.MaxUint32+1)
		if err != nil {
			return table.Corruptf("rebase: row set: fragment %d: %w", id, err)
		}
		out.Add(id, v)
	}
	*s = out
	return nil
}
