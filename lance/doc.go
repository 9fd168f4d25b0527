// Package lance is the engine for Lance tables: it implements table.Engine on the
// files that stock Lance and LanceDB engines read and write, while they do.
//
// # A table
//
// A table is a directory of immutable objects in a [store.Store]:
//
//	_versions/<name>.manifest        one for each version, which names everything else
//	_transactions/<read>-<id>.txn    what a version's commit did, for older readers
//	_deletions/<frag>-<read>-<n>.*   deletion vectors
//	_indices/<uuid>/                 index files, and large fragment reuse indexes
//	_fri/<uuid>/                     labels of stable partitions
//	data/<name>.lance                data files
//
// A version is the manifest by that number. Committing is putting the next one in
// place if nobody else has ([store.Store.PutIfAbsent]); everything that it refers
// to was written before. There are no locks, no leases and no other state.
//
// # Layers
//
//	store          named objects; the atomic put
//	manifest       the bytes of a version, its name, its flags
//	schema         fields, ids and logical types
//	datafile       data files: level space, encodings, Arrow
//	lance          versions as table.Snapshot; commit; rows
//
// In this package, history.go finds versions, snapshot.go, fragments.go,
// indexes.go and transaction.go translate between the format's messages and
// package table, apply.go makes the next version's contents and commit.go
// publishes them. scan.go and write.go move rows, rewrite.go takes the rewrite of a
// group into its own hands. reuse.go keeps the fragment reuse index and partition.go
// the label files that it refers to.
//
// # Invariants
//
//   - What is not understood is kept: the next version is made from the messages
//     of the one before, unknown fields included. Unknown reader flags refuse
//     reading, unknown writer flags refuse committing.
//   - Opening and reading never depend on a transaction; committing over one that
//     cannot be read is refused.
//   - Fragment ids only grow, whatever the writer of an earlier version recorded.
//   - A version is published only after every new object that it names was seen to
//     exist with its recorded size, and after its bytes were read back.
//   - An attempt that failed takes away what it wrote, unless it may have
//     succeeded.
//
// # Worked example
//
// The rows of a table, whichever engine wrote it:
//
//	e, err := lance.Open(ctx, "people.lance", lance.Options{})
//	...
//	defer e.Close()
//	s, err := e.Load(ctx, 0) // the latest version
//	...
//	var all []table.FragmentID
//	for _, f := range s.Fragments {
//		all = append(all, f.ID)
//	}
//	for batch, err := range e.Rows(ctx, s, all, table.ReadOptions{}) {
//		...
//	}
package lance
