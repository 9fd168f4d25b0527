// Package store is the object store that a Lance table lies in: named, immutable
// byte strings under one root, and one operation on which the whole commit
// protocol rests, [Store.PutIfAbsent].
//
// # Contract
//
// Names are slash-separated paths relative to the root. There are no directories;
// listing one that has no objects gives nothing. What Put and PutIfAbsent write
// appears whole: no reader ever sees half of it. What [Store.Create] writes has a
// unique name that nothing refers to yet, so a store may list it before it is
// complete. Nobody overwrites an object, with one exception, the hint file, for
// which [Store.Put] exists.
//
// PutIfAbsent is the commit point. Of any number of processes that put the same
// name, exactly one returns nil; the others get [ErrExists]. [ErrAmbiguous] says
// that nobody can tell: the object may or may not be there, and the caller must
// look. Every other error means that the object was not made.
//
// Writers say how an object is meant ([WriteOptions]): on the disk before Close
// returns, or not; in the page cache, where readers find it at once, or not, where it
// would take the place of what they read now.
//
// # Identity
//
// A name is not an identity: a table may be dropped and made again in the same place,
// with versions of the same names. What is remembered of an object is therefore kept
// under [Store.ID], name, size and token ([Info.Token]). A listing and an open file
// say all of it without a read.
//
// # Implementations
//
// [Local] keeps objects as files. A commit there is a hard link of a synced
// temporary file: a plain rename replaces what is there, and an exclusive create
// shows readers half a file. [Mem] keeps them in memory. Package store/fault wraps
// a store to fail at chosen operations; package store/storetest is the contract as
// a test suite.
//
// # Worked example
//
//	s, _ := store.NewLocal("/data/t.lance")
//	err := s.PutIfAbsent(ctx, "_versions/2.manifest", bytes)
//	switch {
//	case err == nil:                             // version 2 is ours, and durable
//	case errors.Is(err, store.ErrExists):        // somebody else's; nothing was changed
//	case errors.Is(err, store.ErrAmbiguous):     // read it back and compare
//	default:                                     // not written
//	}
package store
