// Package interop proves on real engines what rehome does to their tables.
//
// A table that rehome compacts is somebody else's: a stock client wrote it and
// goes on using it. Reading our own commits with our own code proves nothing about
// that, so this package drives three stock engines and has them write, read, query
// and maintain the same tables as rehome:
//
//   - lancedb-0.39.0, the node client on Lance 12
//   - lancedb-0.31.0, the node client on Lance 8, old and widely deployed
//   - pylance-14.0.2, the Python client on Lance 14
//
// # Running it
//
// interop/setup.sh installs the engines into interop/.engines. Then
//
//	REHOME_INTEROP=1 go test -count=1 -timeout 30m ./interop/...
//
// Without the variable the tests skip; REHOME_INTEROP=all adds combinations that take
// minutes more and differ little. -count=1 is needed because the go command
// does not know that the binary under test, which the tests build, has changed.
// REHOME_ENGINES names another place for the engines.
//
// # How it works
//
// [Start] runs an engine as a long-lived process (driver/lancedb.mjs or
// driver/pylance.py) that answers one JSON line with another. Rows travel as Arrow
// IPC: the test makes them, so it knows what every table must hold, and what an
// engine answers comes back as the bytes that the engine itself produced. A driver
// keeps its table handles open between requests, so that the engines' caches meet
// the commits that others make, as they would in a service.
//
// The tests keep a model of each table (every row, in Go) and apply each step to
// both. After a step every answer is compared with the model by content: full
// scans, filters on every indexed column, text and vector search, and lookups of
// rows that were deleted. Whether an index took part is read from the query plan.
//
// Tables larger than that, of every column type, come from go run ./benchmarks/generate,
// which knows what each version must hold; generated_test.go has them made, compacted and
// read by everybody.
//
// # Everybody at once
//
// Other tests have rehome and the engines at work on one table at the same time: a
// client that writes all the time beside rehome's compactions (race_test.go,
// writers_test.go), rehome's row changes beside a stock optimize and a stock writer
// (rowchanges_test.go), and, step by step, a change that was computed before a
// compaction and is committed after it, and the reverse (meeting_test.go). Nobody may
// lose: what others write is never in the way of rehome, nor the other way about, and
// files that no version refers to are counted and told apart by who wrote them. The
// long forms are benchmarks: go run ./benchmarks/rebase beside, ./benchmarks/soak.
//
// # Controls
//
// Stock engines have faults of their own, and some show only after a compaction. A
// wrong answer therefore counts against rehome unless the same engine, on the same
// table and after the same steps, gives a wrong answer there too when its own
// optimize takes rehome's place, or when nothing is compacted at all. That control
// runs only when something was wrong, in the same test, and what it excuses is
// logged. Rows are never excused: a full scan must equal the model always.
//
// # Example
//
//	e, err := interop.Start(ctx, interop.PyLance14)
//	...
//	defer e.Close()
//	_, err = e.Create(ctx, dir+"/t.lance", record, interop.CreateOptions{})
//	_, err = e.Delete(ctx, dir+"/t.lance", "id % 10 = 3")
//	// ... rehome compact dir/t.lance ...
//	got, err := e.Query(ctx, dir+"/t.lance", interop.Query{Where: "id < 100"})
package interop
