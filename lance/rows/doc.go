// Package rows reads, writes and rewrites the rows of a Lance table.
//
// A [Table] finds where the columns of a fragment lie and moves their rows in level space
// (package datafile/level), one leaf column at a time: levels and values, of which rows
// are dropped and which are gathered, but never nested arrays. Arrow appears at the edges:
// in the rows that [Table.Rows] and [Table.Take] return, and in those that
// [Table.WriteFragments] is given.
//
//	scan, take          the live rows of fragments, and rows at given addresses
//	write               new data files of a stream of rows
//	rewrite             the live rows of a group of fragments into new files; its parts
//	                    are rewrite_plan, rewrite_run, rewrite_tasks and rewrite_slice,
//	                    and rewrite_copy for pages that lose no row
//	places              which column of which file a leaf is
//	blobs, sidecars     large values in files beside a data file, read and written
//	formatkinds         what a table's files have to be like for its other readers
//
// # Invariants
//
//   - Nothing here commits. Whoever writes objects returns their names, with an error too,
//     so that the caller can delete them.
//   - What makes a rewrite impossible is found out before any of it is done.
//   - Memory is bounded by pages: a few for each column that is being worked on.
//   - No goroutine and no file outlives the call, or the iteration, that began it.
//   - New files have the format of the table, and of its kind where one name stands for
//     several.
//
// # Worked example
//
//	t := rows.NewTable(root, history, 32<<20)
//	s, err := history.Load(ctx, 0) // the latest version
//	...
//	for batch, err := range t.Rows(ctx, s, []table.FragmentID{3}, table.ReadOptions{WithAddrs: true}) {
//		...
//	}
//	written, err := t.RewriteGroup(ctx, table.RewriteRequest{Snapshot: s, Sources: []table.FragmentID{3, 4}})
package rows
