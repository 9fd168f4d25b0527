// Package objects finds, opens and deletes the objects of one Lance table, wherever they
// lie.
//
// A [Root] is a table's own store and the stores of other tables that it shares files
// with, its bases. It knows where objects of each kind lie and what they are called,
// keeps data files open between reads, and reads and writes deletion files. It knows
// nothing of versions: callers say which object they mean.
//
// # Invariants
//
//   - An object is immutable once it is there, so what is decoded of it is kept in a
//     [cache.Cache] by its identity: the store's, the name, size and token.
//   - An object that a version refers to and that is not there is damage
//     (table.ErrCorrupt, see [Missing]).
//   - What is to be deleted lies where objects of its kind do; any other path is refused.
//   - Nothing is left open once the root is closed and the last user of a [DataFile] has
//     released it.
//
// # Worked example
//
//	root := objects.NewRoot(s, cache.New(32<<20), 256, openBase)
//	defer root.Close()
//	dead, err := root.Deletions(ctx, fragment)
//	...
//	file, err := root.OpenData(ctx, fragment, fragment.Files[0])
//	...
//	defer file.Release()
package objects
