// Package enginetest is the contract of [table.Engine] as a test suite.
//
// Every sentence of the comments in package table that a test can check is
// checked here. An engine that passes can be compacted by rehome; run it again,
// under the race detector, whenever the engine changes.
//
// # Use
//
// In a test of the engine's own package:
//
//	func TestConformance(t *testing.T) {
//		enginetest.Run(t, enginetest.Config{
//			New: func(t *testing.T, schema table.Schema) (table.Engine, enginetest.Ops) {
//				e := myengine.Create(t.TempDir(), schema)
//				return e, enginetest.ThroughEngine(e)
//			},
//		})
//	}
//
// Rows are appended and deleted through [Ops], because the engine that rehome
// sees has no calls for that. If the engine has its own way of changing rows,
// hand that in: then the suite sees what the engine's users do to a table.
// [ThroughEngine] makes do with what [table.Engine] has.
//
// # What the suite assumes
//
//   - Config.New makes an empty table each time; each test has its own.
//   - [Ops.Append] makes one commit with one new fragment.
//   - Whatever a Commit returns as an error was refused; the suite cannot make
//     an outcome ambiguous. Neither can it crash the process: the atomicity of a
//     commit under a crash, and flushing to disk, are left to the engine's own
//     tests.
//
// Parts that need more than Ops (listing objects, adding an index) are skipped
// by name if Ops does not offer it; see [ObjectLister] and [Indexer].
package enginetest
