package table

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// FragmentID identifies a fragment. It is the high half of a [RowAddr], so it
// has 32 bits although table formats may store it in more. Ids are never reused.
type FragmentID uint32

// MaxFragmentID is the largest id that a fragment can have. The next one,
// 2^32-1, is taken by readers that mark dead addresses with it.
const MaxFragmentID FragmentID = math.MaxUint32 - 1

// RowAddr is the physical address of a row: fragment id in the high 32 bits,
// physical offset (deleted rows count) in the low 32.
type RowAddr uint64

// RowID is a stable row id: it stays with the row when the row moves. It is not
// an address, and the two are never converted into each other by arithmetic.
type RowID uint64

// NewRowAddr returns the address of the row at offset in the fragment id.
func NewRowAddr(id FragmentID, offset uint32) RowAddr {
	return RowAddr(uint64(id)<<32 | uint64(offset))
}

// Fragment returns the id of the fragment that the address points into.
func (a RowAddr) Fragment() FragmentID { return FragmentID(a >> 32) }

// Offset returns the row's physical offset in its fragment.
func (a RowAddr) Offset() uint32 { return uint32(a) }

// String prints the address as "fragment:offset".
func (a RowAddr) String() string {
	return strconv.FormatUint(uint64(a>>32), 10) + ":" + strconv.FormatUint(uint64(uint32(a)), 10)
}

// ParseRowAddr reads an address written as a decimal number or as
// "fragment:offset".
func ParseRowAddr(s string) (RowAddr, error) {
	frag, off, pair := strings.Cut(s, ":")
	if !pair {
		v, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("table: %q is no row address: want a decimal number or fragment:offset", s)
		}
		return RowAddr(v), nil
	}
	f, err := strconv.ParseUint(frag, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("table: %q is no row address: the fragment id is not a 32-bit number", s)
	}
	o, err := strconv.ParseUint(off, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("table: %q is no row address: the offset is not a 32-bit number", s)
	}
	return NewRowAddr(FragmentID(f), uint32(o)), nil
}

// FragmentList prints ascending ids as ranges, for people: a group may have thousands.
func FragmentList(ids []FragmentID) string {
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if len(parts) == 8 {
			parts = append(parts, "...")
			break
		}
		if i == j {
			parts = append(parts, fmt.Sprint(ids[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", ids[i], ids[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
