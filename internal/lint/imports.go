package lint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// Package is what "go list" says of a package.
type Package struct {
	ImportPath   string
	Dir          string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// List runs "go list" on the whole module, whose root is dir.
func List(dir string) ([]Package, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("lint: go list: %w", err)
	}
	var packages []Package
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p Package
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("lint: output of go list: %w", err)
		}
		packages = append(packages, p)
	}
}

// CheckImports holds a package's imports against the rules and returns what is
// wrong. Checking the direct imports of every package covers the indirect ones:
// whatever is reached is imported by some package, which has a rule too.
func CheckImports(p Package) (problems []string) {
	name := local(p.ImportPath)
	rule, ok := ruleFor(name)
	if !ok {
		return []string{fmt.Sprintf("package %s has no import rule: add one to internal/lint/rules.go, and the package to the list in docs/architecture.md", name)}
	}
	check := func(what string, imports []string, allowed ...[]string) {
		for _, path := range imports {
			// A package's tests see the package itself and what is below it.
			if std(path) || path == "C" || what == "tests of " && matches(name+"/...", local(path)) {
				continue
			}
			if !slices.ContainsFunc(slices.Concat(allowed...), func(pattern string) bool { return matches(pattern, local(path)) }) {
				problems = append(problems, fmt.Sprintf("%s%s must not import %s: its rule in internal/lint/rules.go allows %s",
					what, name, local(path), list(allowed[0])))
			}
		}
	}
	check("", p.Imports, rule.May)
	check("tests of ", p.TestImports, rule.May, rule.Tests, forTests)
	check("tests of ", p.XTestImports, rule.May, rule.Tests, forTests)
	return problems
}

// local is the path below the module, or the whole path of another module's.
func local(path string) string {
	return strings.TrimPrefix(path, Module+"/")
}

// std says whether a path is of the standard library, whose first element has no
// dot, and not of this module cut short.
func std(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func list(allowed []string) string {
	if len(allowed) == 0 {
		return "the standard library only"
	}
	return "the standard library, " + strings.Join(allowed, ", ")
}
