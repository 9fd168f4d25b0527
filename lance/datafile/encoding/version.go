package encoding

import (
	"fmt"
)

// Version is a minor version of file format 2.
type Version uint16

// The versions that are read and written.
const (
	V2_0 Version = 0 // its pages are those of package encoding20
	V2_1 Version = 1
	V2_2 Version = 2
	V2_3 Version = 3 // its pages are those of V2_2, and some more
	// V2_3Planar is format 2.3 too, but its pages describe themselves in other words:
	// see [Dense]. Lance up to 13 reads and writes V2_3, Lance from 14 on V2_3Planar,
	// and neither reads the other. Files do not say which they are but by their pages.
	V2_3Planar Version = planar | 3
	// V2_2Narrow and V2_2Plain are format 2.2 before it was finished, see [Kind].
	V2_2Narrow Version = narrow | 2
	V2_2Plain  Version = plain | 2
)

// These set versions apart that call themselves the same.
const (
	planar = 1 << (8 + iota)
	narrow
	plain
)

// Minor returns the minor version that files and tables state.
func (v Version) Minor() uint16 { return uint16(v & 0xff) }

// wideWords says whether mini-block pages describe chunks by words of 32 bits, and what
// came with those: dictionaries of fixed-width values, and compressed ones.
func (v Version) wideWords() bool { return v >= V2_2 && v != V2_2Narrow }

// finished says whether pages of one value and runs of levels are known.
func (v Version) finished() bool { return v.wideWords() && v != V2_2Plain }

// Planar says whether pages have planar layouts.
func (v Version) Planar() bool { return v&planar != 0 }

// String prints the version as tables record it, for example "2.1".
func (v Version) String() string { return fmt.Sprintf("2.%d", v.Minor()) }
