// Package verify checks that one version of a table keeps the invariants that
// readers and compactions rely on.
//
// It works on any [table.Engine], through its public methods alone, and goes on
// after a problem: a report lists everything that is wrong, each problem with the
// fragment, file or index that it was found in. Only what makes checking itself
// impossible (no such table or version, a table that needs a newer reader, a
// cancelled context) is an error.
//
// # What is checked
//
//   - The version can be read. Fragment ids are unique and below the next free id.
//   - Every data file exists and has the size that the version records. No two
//     files of a fragment claim the same field.
//   - Every deletion vector can be read, lies within its fragment and holds as
//     many rows as recorded.
//   - Every index names fields of the schema and has an id of its own.
//   - The fragment reuse index, if there is one, decodes; its transitions form a
//     history; no fragment that it says was rewritten is still in the table; the
//     destinations that are still there have the rows that it says; and every
//     address that an index may still hold translates to a row or to "deleted".
//   - What the engine itself knows to check ([table.Checker]): for Lance tables the
//     manifest's flags, the metadata of every data file and its pages, and that the
//     files of every index are there and whole.
//   - With Deep, every column of every fragment is decoded, the live rows are counted,
//     and their values are such as other engines can read (package arrowcheck: text is
//     UTF-8, decimals fit their precision, dates and times are within the calendar). The
//     first that is not is reported for each column of a fragment, with its row.
//
// # What is counted
//
// Files that no version of the table refers to, neither this one nor any other
// that is there, by engines that can tell ([table.OrphanFinder]). They are left
// behind by commits that failed and processes that died. They are information and
// no problem: nothing reads them, and what a writer has written and not yet
// committed looks the same. When what some version refers to cannot be told, they
// are not counted, and the report says why.
//
// The entries inside index files are not read: rehome has no readers for them yet.
package verify
