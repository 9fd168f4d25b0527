package rows

import (
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/table"
)

// kindByWriter goes by who wrote the version: of a table without rows nothing else
// tells.
func kindByWriter(s *table.Snapshot) (datafile.Version, error) {
	switch n, known, err := lanceWriter(s); {
	case err != nil:
		return 0, err
	case !known:
		return 0, table.Unsupportedf("lance: the table has format 2.3, which is one thing up to Lance 13 and another from Lance 14 on, and no rows that tell which: let a Lance engine write the first ones")
	case n >= 14:
		return datafile.V2_3Planar, nil
	default:
		return datafile.V2_3, nil
	}
}
