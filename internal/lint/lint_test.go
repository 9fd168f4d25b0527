package lint

import (
	"flag"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

const root = "../.."

var update = flag.Bool("update", false, "write the import rules into docs/architecture.md")

func TestArchitecturePageShowsTheRules(t *testing.T) {
	const path = root + "/docs/architecture.md"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	want, err := WithRules(page)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, want, 0o644))
		return
	}
	require.Equal(t, string(want), string(page), "run go test ./internal/lint -update")
}

func TestImportRules(t *testing.T) {
	packages, err := List(root)
	require.NoError(t, err)
	require.NotEmpty(t, packages)
	for _, p := range packages {
		for _, problem := range CheckImports(p) {
			t.Error(problem)
		}
	}
}

func TestSource(t *testing.T) {
	problems, err := CheckTree(os.DirFS(root))
	require.NoError(t, err)
	for _, problem := range problems {
		t.Error(problem)
	}
}

// A type assertion asks the outermost engine alone, and misses what it wraps.
func TestOptionalInterfacesAreAskedForThroughWrappers(t *testing.T) {
	problems, err := CheckAssertions(os.DirFS(root))
	require.NoError(t, err)
	require.Empty(t, problems)

	problems, err = CheckAssertions(fstest.MapFS{
		"dml/scan.go":    {Data: []byte("package dml\n\nvar t, ok = e.(table.RowTaker)\n")},
		"dml/as.go":      {Data: []byte("package dml\n\nvar t, ok = table.As[table.RowTaker](e)\nvar u = e.(table.Engine)\n")},
		"table/reuse.go": {Data: []byte("package table\n\nfunc f(e any) {\n\tswitch e.(type) {\n\tcase RowTaker:\n\t}\n}\n")},
	})
	require.NoError(t, err)
	require.Equal(t, []string{
		"dml/scan.go:3: ask table.As[RowTaker], which looks into wrappers too",
		"table/reuse.go:5: ask table.As[RowTaker], which looks into wrappers too",
	}, problems)
}

// The rules must bite, and only where they should.
func TestImportRulesFindViolations(t *testing.T) {
	for name, c := range map[string]struct {
		pkg     Package
		problem string
	}{
		"compaction imports the Lance engine": {
			pkg:     Package{ImportPath: Module + "/compaction", Imports: []string{"fmt", Module + "/table", Module + "/lance"}},
			problem: "compaction must not import lance:",
		},
		"a test of compaction does": {
			pkg:     Package{ImportPath: Module + "/compaction", XTestImports: []string{Module + "/lance/store"}},
			problem: "tests of compaction must not import lance/store:",
		},
		"the model imports arrays": {
			pkg:     Package{ImportPath: Module + "/table", Imports: []string{arrowSchema, arrowSchema + "/array"}},
			problem: "table must not import github.com/apache/arrow-go/v18/arrow/array:",
		},
		"a library imports the command line": {
			pkg:     Package{ImportPath: Module + "/lance", Imports: []string{"github.com/spf13/cobra"}},
			problem: "lance must not import github.com/spf13/cobra:",
		},
		"a library imports the commands": {
			pkg:     Package{ImportPath: Module + "/fri", Imports: []string{Module + "/cli"}},
			problem: "fri must not import cli:",
		},
		"the file format imports the engine": {
			pkg:     Package{ImportPath: Module + "/lance/datafile/encoding", Imports: []string{Module + "/lance"}},
			problem: "lance/datafile/encoding must not import lance:",
		},
		"a library imports a test library": {
			pkg:     Package{ImportPath: Module + "/deletion", Imports: []string{"github.com/stretchr/testify/require"}},
			problem: "deletion must not import github.com/stretchr/testify/require:",
		},
		"a package without a rule": {
			pkg:     Package{ImportPath: Module + "/tables"},
			problem: "package tables has no import rule",
		},
		"tests import test libraries and memengine": {
			pkg: Package{ImportPath: Module + "/compaction", TestImports: []string{"github.com/stretchr/testify/require", Module + "/table/memengine"}},
		},
		"tests import what is below them": {
			pkg: Package{ImportPath: Module + "/lance/store", XTestImports: []string{Module + "/lance/store", Module + "/lance/store/storetest"}},
		},
		"commands import anything": {
			pkg: Package{ImportPath: Module + "/cli", Imports: []string{"github.com/spf13/cobra", Module + "/lance"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			expectProblem(t, c.problem, CheckImports(c.pkg))
		})
	}
}

func TestSourceRulesFindViolations(t *testing.T) {
	const header = "// Package p is a package.\npackage p\n"
	long := header + strings.Repeat("\n", MaxLines)
	for name, c := range map[string]struct{ file, src, problem string }{
		"panic":                 {"p/p.go", header + `func f() { panic("no") }`, "p/p.go:3: panic in a library package"},
		"exit":                  {"p/p.go", header + `import "os"; func f() { os.Exit(1) }`, "os.Exit in a library"},
		"print":                 {"p/p.go", header + `import "fmt"; func f() { fmt.Println() }`, "fmt.Println in a library"},
		"init":                  {"p/p.go", header + `func init() {}`, "p/p.go:3: init function"},
		"init in a test":        {"p/p_test.go", header + `func init() {}`, "init function"},
		"too long":              {"p/p.go", long, "602 lines, more than 600"},
		"leftover":              {"p/p.go", header + "// TO" + "DO: more\n", "p/p.go:3: TO" + "DO"},
		"leftover in a script":  {"x/run.sh", "# FIX" + "ME\n", "x/run.sh:1: FIX" + "ME"},
		"machine path":          {"docs/a.md", "see /ho" + "me/me/notes\n", "docs/a.md:1: names"},
		"does not parse":        {"p/p.go", "package", "p/p.go"},
		"no package comment":    {"p/p.go", "package p\n", "package p has no comment"},
		"other comment":         {"p/p.go", "// Copyright.\npackage p\n", "package p has no comment"},
		"panic in a test":       {"p/p_test.go", header + `func f() { panic("no") }`, ""},
		"exit in a program":     {"cmd/x/x.go", "// Command x does it.\npackage main\nimport \"os\"\nfunc main() { os.Exit(1) }", ""},
		"a method called init":  {"p/p.go", header + `type t int; func (t) init() {}`, ""},
		"long and generated":    {"p/p.go", "// Code generated by x. DO NOT EDIT.\n\n" + long, ""},
		"only generated":        {"p/p.go", "// Code generated by x. DO NOT EDIT.\n\npackage p\n", ""},
		"long test":             {"p/p_test.go", long, ""},
		"a word like leftovers": {"p/p.go", header + "// mas" + "todon TO" + "DOS\n", ""},
		"a path in a URL":       {"docs/a.md", "https://example.org/wo" + "rk/x and ./wo" + "rk/x\n", ""},
		"other files":           {"node_modules/x/x.go", "package", ""},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := CheckTree(fstest.MapFS{c.file: {Data: []byte(c.src)}})
			require.NoError(t, err)
			expectProblem(t, c.problem, problems)
		})
	}
}

func expectProblem(t *testing.T, want string, got []string) {
	t.Helper()
	if want == "" {
		require.Empty(t, got)
		return
	}
	require.NotEmpty(t, got)
	require.Contains(t, got[0], want)
}
