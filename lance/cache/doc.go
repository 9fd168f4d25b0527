// Package cache keeps what was decoded of immutable objects, in bounded memory.
//
// An [LRU] keeps values by key up to a total cost. A [Cache] is one, for values that are
// decoded of objects: each [Entry] is named by the [Kind] of value and the identity of
// the object, so nothing that is found is ever stale and nothing is ever invalidated.
//
// # Invariants
//
//   - Only time depends on it: a cache may forget or refuse any value, and whoever made
//     a value that was refused uses it all the same.
//   - Goroutines that miss the same entry at once make it once. The error of one is
//     nothing to the others.
//   - A value that costs more than the whole bound is not taken in.
//
// # Worked example
//
//	c := cache.New(32 << 20)
//	at := cache.Entry{Kind: cache.Deletions, Key: "store 7:_deletions/3-9-42.bin"}
//	v, err := cache.Load(ctx, c, at, func() (*deletion.Vector, int64, error) {
//		v, err := read()
//		return v, size(v), err
//	})
package cache
