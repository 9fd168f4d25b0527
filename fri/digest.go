package fri

import (
	"fmt"
	"math"

	"github.com/rehome-db/rehome/table"
)

// Digest is all that a transition records about a fragment.
type Digest struct {
	// ID of the fragment. Ids are never reused, so it names the fragment for good.
	ID table.FragmentID `json:"id"`
	// PhysicalRows counts deleted rows too. At most 2^32-1.
	PhysicalRows uint64 `json:"physical_rows"`
	// DeletedRows is the number of rows that were deleted when the rewrite read
	// the fragment; 0 for destinations, which are written without deletions.
	DeletedRows uint64 `json:"deleted_rows"`
}

// DigestOf returns the digest of a fragment as it is.
func DigestOf(f table.Fragment) Digest {
	return Digest{ID: f.ID, PhysicalRows: f.PhysicalRows, DeletedRows: f.DeletedRows()}
}

// LiveRows returns the number of rows that were not deleted.
func (d Digest) LiveRows() uint64 { return d.PhysicalRows - d.DeletedRows }

// String prints the digest as "id(physical)" or "id(physical-deleted)".
func (d Digest) String() string {
	if d.DeletedRows == 0 {
		return fmt.Sprintf("%d(%d)", d.ID, d.PhysicalRows)
	}
	return fmt.Sprintf("%d(%d-%d)", d.ID, d.PhysicalRows, d.DeletedRows)
}

func (d Digest) check() error {
	switch {
	case d.ID > table.MaxFragmentID:
		return broken(RuleFragmentID, "fragment id %d is reserved", d.ID)
	case d.PhysicalRows > math.MaxUint32:
		return broken(RulePhysicalRows, "fragment %d claims %d rows, at most %d are possible", d.ID, d.PhysicalRows, uint32(math.MaxUint32))
	case d.DeletedRows > d.PhysicalRows:
		return broken(RuleDeletedRows, "fragment %d claims %d of %d rows deleted", d.ID, d.DeletedRows, d.PhysicalRows)
	}
	return nil
}
