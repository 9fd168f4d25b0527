package table

import "context"

// History is what the versions of a table hold beside one of them.
type History struct {
	// Versions is how many versions there are, and Read how many of them were looked
	// into: if it is less, HeldBytes is what those need, and the others may need more.
	Versions int `json:"versions"`
	Read     int `json:"versions_read"`
	// HeldFiles and HeldBytes count the files that only other versions refer to.
	HeldFiles int    `json:"held_files"`
	HeldBytes uint64 `json:"held_bytes"`
}

// HistoryWeigher is implemented by an engine that can tell what old versions hold. It
// is optional.
type HistoryWeigher interface {
	// WeighHistory lists the table's files and reads the metadata of at most limit
	// versions beside s. Versions that are damaged or not understood are not counted
	// as read.
	WeighHistory(ctx context.Context, s *Snapshot, limit int) (History, error)
}
