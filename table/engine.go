package table

import (
	"context"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
)

// Engine is what rehome needs of a storage engine. Methods are safe for
// concurrent use. An engine that can rewrite a group of fragments better than row
// by row also implements [Rewriter].
type Engine interface {
	Loader
	RowReader
	FragmentWriter
	DeletionStore
	Committer
	ObjectStore
}

// Loader reads versions.
type Loader interface {
	// Load reads the given version, or the latest if version is 0. A version
	// that does not exist is ErrNotFound, a place that holds no table
	// ErrNotTable.
	Load(ctx context.Context, version uint64) (*Snapshot, error)

	// TransactionsSince returns the transactions of the versions after, up to and
	// including, upTo (0: the latest), oldest first and without gaps. A version
	// whose transaction cannot be read is an error: a writer that cannot see what
	// happened must not commit over it.
	TransactionsSince(ctx context.Context, after, upTo uint64) ([]Transaction, error)

	// ReuseIndex returns the content of the snapshot's fragment reuse index, nil
	// if it has none.
	ReuseIndex(ctx context.Context, s *Snapshot) ([]byte, error)
}

// Batch is some consecutive live rows. Record is released by whoever produced
// it as soon as the consumer asks for the next batch: retain what you keep.
type Batch struct {
	Record arrow.RecordBatch
	// Addrs are the rows' addresses, one a row; nil unless asked for.
	Addrs []RowAddr
}

// ReadOptions narrows a read.
type ReadOptions struct {
	// Columns are top-level column names, in the order wanted. The default is
	// all, in schema order.
	Columns []string
	// WithAddrs asks for Batch.Addrs. The default is false.
	WithAddrs bool
	// BatchRows bounds the rows a batch. The default is 8192.
	BatchRows int
}

// RowReader reads rows.
type RowReader interface {
	// Rows yields the live rows of the given fragments of s: fragments in the
	// order given, rows by ascending offset. It stops at the first error. Memory
	// is bounded by a few pages a column, not by the fragments. An object that s
	// refers to and that is not there is ErrCorrupt: the version has a hole.
	Rows(ctx context.Context, s *Snapshot, ids []FragmentID, opts ReadOptions) iter.Seq2[Batch, error]
}

// WriteOptions bounds what is written.
type WriteOptions struct {
	// MaxRows is the number of rows at which a fragment is closed, exactly.
	// The default is 1048576.
	MaxRows uint64
	// MaxBytes is the size after which a fragment is closed, approximately.
	// The default is no bound.
	MaxBytes uint64
	// NoSync leaves flushing of data files to the operating system: faster, and
	// a power failure may then lose files that a commit refers to. The default
	// is false.
	NoSync bool
	// KeepCached asks a [Rewriter] to leave large files that it wrote in the
	// operating system's page cache, where readers find them at once. The default
	// is false: it may keep them out, so that the memory stays with what is there.
	KeepCached bool
}

// NewFragment is a written fragment that has no id yet: ids are given at commit.
type NewFragment struct {
	PhysicalRows uint64     `json:"physical_rows"`
	Files        []DataFile `json:"files"`
	// Kept are the identities of the fragment's first rows, in a table with stable
	// row ids. The same change deletes the rows that had them. The rows after these are
	// new, and get their ids at commit.
	Kept []RowIdentity `json:"kept,omitempty"`
}

// Written is what a write produced. Objects names every object that was created,
// also when an error is returned with it: the caller deletes them.
type Written struct {
	Fragments    []NewFragment `json:"fragments"`
	Objects      []Object      `json:"objects"`
	BytesRead    uint64        `json:"bytes_read"`
	BytesWritten uint64        `json:"bytes_written"`
}

// FragmentWriter writes rows.
type FragmentWriter interface {
	// WriteFragments writes rows, which have schema's columns in order, into as
	// many new fragments as opts asks for. Nothing refers to them until a commit
	// does. Zero rows give zero fragments.
	WriteFragments(ctx context.Context, schema Schema, rows iter.Seq2[Batch, error], opts WriteOptions) (Written, error)
}

// PageCopy says when encoded data may be taken over as it is stored.
type PageCopy int

const (
	// CopyAuto: where it is faster and leaves the table as good as encoding anew.
	CopyAuto PageCopy = iota
	// CopyAlways: wherever it is right, however small the pieces.
	CopyAlways
	// CopyNever: everything is decoded and encoded again.
	CopyNever
)

// RewriteRequest asks for the live rows of Sources, in order, as new fragments.
type RewriteRequest struct {
	Snapshot *Snapshot
	Sources  []FragmentID
	Options  WriteOptions
	// Copy says which encoded data may be copied. The default is CopyAuto.
	Copy PageCopy
	// Threads bounds the parallelism inside the group. The default is 1.
	Threads int
	// MemoryLimit bounds the bytes held at a time, roughly; 0 is the engine's
	// own choice.
	MemoryLimit uint64
	// Progress, if set, is told of the bytes read and written since its last
	// call. It is called from several goroutines and must not block.
	Progress func(bytesRead, bytesWritten uint64)
}

// Rewriter is implemented by an engine that takes the rewrite of a whole group
// into its own hands. It is optional.
type Rewriter interface {
	// RewriteGroup does what reading the rows of req.Sources and writing them
	// with WriteFragments would do: same rows, same order. If it cannot handle
	// some column it returns ErrUnsupported before it has written anything.
	RewriteGroup(ctx context.Context, req RewriteRequest) (Written, error)
	// CanRewrite reports, without writing, why the sources cannot be rewritten
	// (ErrUnsupported, ErrCorrupt), or nil.
	CanRewrite(ctx context.Context, s *Snapshot, sources []FragmentID) error
}

// OffsetSet is a set of row offsets of one fragment; *deletion.Vector is one.
type OffsetSet interface {
	Cardinality() uint64
	Contains(offset uint32) bool
	// All yields the offsets in ascending order.
	All() iter.Seq[uint32]
}

// DeletionStore reads and writes deletion vectors.
type DeletionStore interface {
	// ReadDeletions returns the deleted offsets of f, an empty set if none. It
	// checks them: all below f.PhysicalRows, as many as recorded. A vector that s
	// refers to and that is not there is ErrCorrupt.
	ReadDeletions(ctx context.Context, s *Snapshot, f Fragment) (OffsetSet, error)
	// WriteDeletions stores a complete deletion vector for the fragment id.
	// readVersion is the newest version that the vector accounts for. Every call
	// makes a new object.
	WriteDeletions(ctx context.Context, id FragmentID, readVersion uint64, deleted OffsetSet) (DeletionRef, error)
}

// Committer publishes versions.
type Committer interface {
	// Commit applies p.Change to p.Base and publishes the result as version
	// p.Base.Version+1, with p.Transaction, if no such version exists; else it
	// returns ErrVersionTaken and has changed nothing. The step is atomic: after
	// a crash the version is there whole or not at all. When the outcome cannot
	// be known it returns ErrAmbiguousCommit. Objects that the failed attempt
	// itself made (transaction file, external reuse index) are deleted, unless
	// the outcome is unknown.
	//
	// In a table with stable row ids the engine assigns ids to the rows of added
	// fragments. Rows that a Rewrite moved keep their ids, by the rewrite's groups. In
	// any other fragment the first rows take the identities in Fragment.Kept, and the
	// rest get new ids. A kept identity must belong to a live row of Base that the
	// change deletes; if no live row has it, Commit returns ErrConflict.
	//
	// The engine refuses, before it writes, a change that breaks the model: an
	// id that was used before, a fragment to remove that is not there, a file
	// that does not exist.
	Commit(ctx context.Context, p Proposal) (*Snapshot, error)

	// ReserveFragments commits a reservation of count fragment ids, for work that
	// must know its ids before it commits, and returns the version that holds it.
	// The ids are the count ids below the returned snapshot's NextFragmentID.
	// Later commits honour it. Compaction does not need it.
	ReserveFragments(ctx context.Context, count uint32) (*Snapshot, error)
}

// ObjectStore handles the objects that an attempt wrote.
type ObjectStore interface {
	// Stat returns the object's size, or ErrNotFound.
	Stat(ctx context.Context, o Object) (uint64, error)
	// Delete removes the object; a missing object is no error. Callers delete only
	// objects that they made and that no version refers to.
	Delete(ctx context.Context, o Object) error
}
