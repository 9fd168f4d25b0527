// Package compaction merges the small fragments of a table, drops deleted rows, and
// publishes the result without blocking other writers. It drives any engine that
// implements [table.Engine].
//
// # Three steps
//
//	                 Plan             Execute              Publish
//	table ─────────▶ tasks ─────────▶ results ──────────▶ one new version
//	(a snapshot)     (plain data)     (plain data,        (or none)
//	                                   new objects)
//
//	                 pure: no I/O     writes, commits     the only step that
//	                                  nothing; may run    commits
//	                                  on other machines
//
// [Plan] chooses groups of fragments in one snapshot of the table and says why. A
// [Task] carries everything that its execution needs, the caller's options
// included. [Task.Execute] writes the group's live rows as new fragments, which nothing
// refers to, and returns a [Result] that names every object it wrote. [Publish]
// replaces old fragments by new ones, for all results in one commit. [Compact] is
// the three in a row.
//
// # Others go on writing
//
// A compaction reads one version and is committed over a later one. At every attempt
// Publish loads the newest version and judges each group anew (package rebase): may it
// still replace its sources, which of its rows have died since, which ids do the new
// fragments get? Then it chooses the coverage of indexes and extends the history of
// addresses (publish.go). Deletes and updates rarely cost a group: the rows that died
// are published as deleted, at their new addresses; only a group without a live row is
// lost. So is one whose fragments were rewritten or whose columns were replaced: its
// objects are deleted, and the rest is published. Nothing that depends on the version
// being replaced outlives the attempt.
//
// # Invariants
//
//   - A compaction changes no row and loses none: the new fragments of a group hold
//     the rows that were alive in its sources, in order, when it was read.
//   - Only Publish commits the rewrite, and at most once, whatever answers get lost:
//     its transaction is named after the executions that it publishes, and Publish looks
//     for that name before it concludes anything from an error.
//   - Every object that was written is committed, deleted, or listed in an error or
//     report: [commit.Leftovers], Publication.Leftover. No object is deleted while an
//     unknown version might refer to it.
//   - The read version of a transaction is the oldest version that its tasks read.
//   - A history that is committed with the compaction translates every survivor's old
//     address: it records the rows that were alive when the task read, not those that
//     are alive at the commit.
//   - Secondary indexes answer right afterwards; see policy.go.
//   - Compacting twice in a row does nothing the second time.
//
// # Trimming
//
// Every commit with a fragment reuse index makes the history of addresses longer, and
// readers pay for all of it. [Trim] drops the transitions that nothing needs any more.
// The rule is package fri's ([fri.History.Trim]). It needs facts about the table, above
// all the version in which each transition was committed and what indexes covered
// before; this package finds them in the versions that exist (trim_commits.go). Trim
// uses the same loop as Publish (package commit): at each attempt it applies the rule
// to the version being replaced.
//
// # Errors
//
// They wrap the sentinels of package table: [table.ErrConflict] (run again; nothing
// was published), [table.ErrUnsupported] and [table.ErrCorrupt] (the table; nothing
// was written), [table.ErrTerminal] (the task is out of date; plan again), and
// [table.ErrAmbiguousCommit] (publish the same results again to find out).
//
// # Example
//
// A table of three fragments of 4 rows. Row 1 of fragment 0 and rows 0 and 3 of
// fragment 2 are deleted.
//
//	fragment 0   0:0 0:1†0:2 0:3      group 0-2, 9 live rows
//	fragment 1   1:0 1:1 1:2 1:3  ──▶ fragment 3   3:0 3:1 ... 3:8
//	fragment 2   2:0†2:1 2:2 2:3†
//
// Row 2:1 was live row number 3 + 4 + 0 of the group, so it is row 3:7 now. With a
// fragment reuse index in the commit anybody can work that out from 12 bits and
// four row counts: see package fri.
//
// As a library, with progress and a choice of what becomes of indexes:
//
//	report, err := compaction.Compact(ctx, engine, compaction.Options{
//		TargetRows:  1 << 20,
//		IndexPolicy: compaction.IndexLeave,
//		Events: compaction.Tee(
//			compaction.LogEvents(slog.Default()),
//			compaction.Events{Progress: func(p compaction.ProgressInfo) { bar.Set(p.BytesDone) }},
//		),
//	})
//	if table.Classify(err) == table.OutcomeRetryable {
//		// somebody else rewrote what was being compacted: run again
//	}
//
// Spread over machines, the middle step travels as JSON; see Example_distributed.
package compaction
