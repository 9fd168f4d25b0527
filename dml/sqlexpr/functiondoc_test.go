package sqlexpr_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml/sqlexpr"
)

var update = flag.Bool("update", false, "write the list of functions into docs/sql.md")

const (
	functionsStart = "<!-- functions: written by go test ./dml/sqlexpr -update -->"
	functionsEnd   = "<!-- end of functions -->"
)

// functionPage is the list of functions of docs/sql.md.
func functionPage() string {
	var b strings.Builder
	group := ""
	for _, f := range sqlexpr.Functions() {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "\n### %s\n\n| function | result | |\n|---|---|---|\n", group)
		}
		doc := f.Doc
		if f.Nulls == sqlexpr.NullIgnored {
			doc += "; nulls are left out"
		}
		if f.Differs != "" {
			doc += " (" + f.Differs + ")"
		}
		if len(f.Aliases) > 0 {
			doc += "; also `" + strings.Join(f.Aliases, "` `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Signature(), f.Result, strings.ReplaceAll(doc, "|", `\|`))
	}
	return b.String()
}

// TestReport28FunctionPageIsFresh: docs/sql.md lists what there is.
func TestReport28FunctionPageIsFresh(t *testing.T) {
	const path = "../../docs/sql.md"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(page), functionsStart)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, functionsEnd)
	require.True(t, ok)
	want := before + functionsStart + "\n" + functionPage() + "\n" + functionsEnd + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(page), "run go test ./dml/sqlexpr -update")
}

// TestReport28TableOfFunctions: every function says all that the page and the comparison
// with the engines need, under names that no other has.
func TestReport28TableOfFunctions(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range sqlexpr.Functions() {
		for _, name := range append([]string{f.Name}, f.Aliases...) {
			require.False(t, seen[name], name)
			require.Equal(t, strings.ToLower(name), name)
			seen[name] = true
		}
		require.NotEmpty(t, f.Doc, f.Name)
		require.NotEmpty(t, f.Result, f.Name)
		for _, p := range f.Params {
			require.NotZero(t, p.Kinds, f.Name)
		}
		least, most := f.Arity()
		require.True(t, most < 0 || least <= most, f.Name)
	}
	require.Greater(t, len(seen), 50)
}
