package rows

import (
	"context"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/table"
)

// newest22 is the first release of Lance that reads and writes format 2.2 as it is now.
const newest22 = 3

// kindOf22 returns which format 2.2 is written in place of fragments, or beside them.
// kind is that of the first of their files that tells, if any did.
//
// Files of the first kind stay of it while the whole table is of it. Where it has others
// as well, the readers of the first kind are lost already, and what is written is of the
// second, which Lance 2 reads and later ones do.
//
// The second and the third kind differ only by what pages may be. A page that only the
// third has shows that the table's readers know it, and so does the release that wrote
// the version. Else it is taken for the second: what is lost is a few bytes.
func (t *Table) kindOf22(ctx context.Context, s *table.Snapshot, fragments []table.Fragment, kind datafile.Version, found bool) (datafile.Version, error) {
	release, byLance, err := lanceWriter(s)
	if err != nil {
		return 0, err
	}
	if !found {
		return kind22ByWriter(release, byLance, len(s.Fragments) == 0), nil
	}
	if kind == datafile.V2_2Narrow {
		mixed := false
		for other, err := range t.kinds(ctx, s.Fragments) {
			if err != nil {
				return 0, err
			}
			if kind = other; kind != datafile.V2_2Narrow {
				mixed = true
				break
			}
		}
		if !mixed {
			return datafile.V2_2Narrow, nil
		}
	}
	if kind == datafile.V2_2 || byLance && release >= newest22 {
		return datafile.V2_2, nil
	}
	more := 0
	for other, err := range t.kinds(ctx, fragments) {
		if err != nil {
			return 0, err
		}
		if other == datafile.V2_2 {
			return other, nil
		}
		if more++; more == maxKindFiles {
			break
		}
	}
	return datafile.V2_2Plain, nil
}

// maxKindFiles bounds the files that are opened to find a page of the third kind.
const maxKindFiles = 16

// kind22ByWriter is for what no page tells of: the table is empty, or has only such
// columns as are the same in all kinds.
func kind22ByWriter(release int, byLance, empty bool) datafile.Version {
	switch {
	case byLance && release < newest22-1:
		return datafile.V2_2Narrow
	case byLance && release < newest22, !byLance && !empty:
		return datafile.V2_2Plain
	default:
		return datafile.V2_2
	}
}
