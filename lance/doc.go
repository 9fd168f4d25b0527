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
//	cache          what was decoded of them
//	objects        which objects a table has, and where; data files kept open
//	manifest       the bytes of a version, its name, its flags
//	schema         fields, ids and logical types
//	rowids         stable row ids, and the versions of rows: read, and given at every commit
//	datafile       data files: level space, encodings, Arrow
//	version        history, snapshots, transactions; the next version's contents
//	rows           rows read, written and rewritten
//	lance          the engine: open, create, commit, check
//
// In this package, engine.go opens tables and create.go makes them. versions.go, rows.go,
// objects.go and rowidentifier.go hand on what the packages above answer; changes.go
// appends and deletes rows; commit.go publishes what version made. partition.go keeps the
// label files that a fragment reuse index refers to. What was decoded is kept for one
// engine or, in a [Session], for any number. verify.go checks what the format says of a
// version.
//
// # Invariants
//
//   - What is not understood is kept: the next version is made from the messages
//     of the one before, unknown fields included. Unknown reader flags refuse
//     reading, unknown writer flags refuse committing.
//   - Opening and reading never depend on a transaction; committing over one that
//     cannot be read is refused.
//   - Fragment ids only grow, whatever the writer of an earlier version recorded.
//   - A stable row id is that of one live row at most, wherever rows go.
//   - A version is published only after every new object that it names was seen to
//     exist with its recorded size, and after its bytes were read back.
//   - An attempt that failed takes away what it wrote, unless it may have
//     succeeded.
//   - Which version is the latest is asked of the store each time. What is remembered
//     is found by the identity of immutable objects, so it is never stale.
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
//
// Tables that share what was decoded of them, in a process that goes on:
//
//	session, err := lance.NewSession(lance.SessionOptions{})
//	...
//	defer session.Close()
//	people, err := lance.Open(ctx, "people.lance", lance.Options{Session: session})
//	orders, err := lance.Open(ctx, "orders.lance", lance.Options{Session: session})
package lance
