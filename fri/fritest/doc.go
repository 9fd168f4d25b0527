// Package fritest is a naive model of a table that is compacted, for tests: it
// writes down, one by one, what each rewrite made of every address, and answers by
// looking that up. What translates addresses through a fragment reuse index is
// tested against it.
//
// Nothing is ever forgotten, so every address that a row ever had can be asked for.
// The model takes no arithmetic of package fri: it uses a builder to make the
// transition of a rewrite, and its own list of surviving rows to know the answer.
//
// # Worked example
//
// Two fragments of 10 rows are written into destinations of 5 rows and of the rest,
// after row 4 of the first was deleted.
//
//	m := fritest.New(0)
//	m.Add(10)                                      // fragment 0
//	m.Add(10)                                      // fragment 1
//	m.Live[0].Dead = deletion.Of(4)
//	tr := m.Compact(t, []int{0, 1}, []uint64{5}, false) // into 2 and 3
//	m.Commit(t, tr)
//	m.Translate(table.NewRowAddr(0, 4))            // deleted
//	m.Translate(table.NewRowAddr(0, 6))            // moved to 3:0
//	m.Translate(table.NewRowAddr(2, 1))            // unaffected
//
// and m.History must say the same of all three.
//
// # Invariants
//
//   - A rewrite changes what the model knows of rows at once, and the history only
//     when it is committed: two rewrites can be one commit.
//   - Live is ascending by id. Empty fragments are in All and not in Live: nothing
//     rewrites them.
//   - A model is used by one goroutine at a time.
package fritest
