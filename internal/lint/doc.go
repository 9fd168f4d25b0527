// Package lint holds the rules of this module that no general tool knows, as
// tests: who may import whom, and what source files must and must not contain.
//
// The import rules are what makes the packages usable one by one. An engine
// author who imports package compaction gets neither the Lance format nor a
// command-line library with it, and package table costs little more than Arrow's
// schema types. The rules are the table in rules.go; every package of the module
// has one, and a package without one fails the test.
//
//	go test ./internal/lint
//
// A failure says which file breaks which rule and what to do instead. The table
// is shown in docs/architecture.md; after changing it run the test with -update.
package lint
