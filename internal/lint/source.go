package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// MaxLines is how long a hand-written source file may be, tests excepted.
const MaxLines = 600

// bannedCalls are the functions that no library package calls, and why.
var bannedCalls = map[string]string{
	"panic":       "return an error: input must never bring the caller down",
	"print":       "return the text or report an event",
	"println":     "return the text or report an event",
	"os.Exit":     "return an error: only a main function ends the process",
	"log.Fatal":   "return an error: only a main function ends the process",
	"log.Fatalf":  "return an error: only a main function ends the process",
	"log.Panic":   "return an error",
	"log.Panicf":  "return an error",
	"fmt.Print":   "write to an io.Writer that the caller chose",
	"fmt.Printf":  "write to an io.Writer that the caller chose",
	"fmt.Println": "write to an io.Writer that the caller chose",
}

// programs are the trees whose packages are not libraries: they may end the
// process and print.
var programs = []string{"cmd/...", "benchmarks/...", "interop/...", "lance/internal/genpb"}

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	// Unfinished work belongs in an issue, where somebody looks for it.
	leftovers = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	// Absolute paths of somebody's machine; nothing in the tree may need one.
	machinePath = regexp.MustCompile("(^|[\\s\"'`(=:])/(home|root|Users|wo" + `rk)/\w`)
)

// CheckGo checks one Go file, given by its path below the module root, and
// returns what is wrong with it.
func CheckGo(name string, src []byte) (problems []string) {
	problems = checkText(name, src)
	if generated.Match(src) {
		return problems
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return append(problems, fmt.Sprintf("%s: %v", name, err))
	}
	at := func(n ast.Node) string { return fmt.Sprintf("%s:%d", name, files.Position(n.Pos()).Line) }
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Name.Name == "init" && fn.Recv == nil {
			problems = append(problems, at(fn)+": init function: importing a package must have no effect; make it a constructor or a composite literal")
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return problems
	}
	if lines := files.Position(file.FileEnd).Line; lines > MaxLines {
		problems = append(problems, fmt.Sprintf("%s: %d lines, more than %d: split it by concept", name, lines, MaxLines))
	}
	if inAny(programs, path.Dir(name)) {
		return problems
	}
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		callee := calleeName(call.Fun)
		if why, banned := bannedCalls[callee]; banned {
			problems = append(problems, fmt.Sprintf("%s: %s in a library package: %s", at(call), callee, why))
		}
		return true
	})
	return problems
}

func inAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

// calleeName is the called function as it is written: "panic" or "os.Exit".
func calleeName(fun ast.Expr) string {
	switch f := fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if pkg, ok := f.X.(*ast.Ident); ok {
			return pkg.Name + "." + f.Sel.Name
		}
	}
	return ""
}

// checkText checks what holds for text of any kind.
func checkText(name string, src []byte) (problems []string) {
	for i, line := range strings.Split(string(src), "\n") {
		if m := leftovers.FindString(line); m != "" {
			problems = append(problems, fmt.Sprintf("%s:%d: %s: finish it, or open an issue and leave no note here", name, i+1, m))
		}
		if m := machinePath.FindString(line); m != "" {
			problems = append(problems, fmt.Sprintf("%s:%d: names %q, a path that exists on one machine only", name, i+1, strings.TrimSpace(m)))
		}
	}
	return problems
}

// CheckTree checks every file below the module root, and that every package has
// a comment.
func CheckTree(root fs.FS) (problems []string, err error) {
	documented := map[string]bool{} // by directory, for those with Go files
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			// What the go command ignores, and what package managers fetch.
			if base := d.Name(); name != "." && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		switch path.Ext(name) {
		case ".go", ".md", ".sh", ".mjs", ".js", ".py", ".proto":
		default:
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if path.Ext(name) != ".go" {
			problems = append(problems, checkText(name, src)...)
			return nil
		}
		problems = append(problems, CheckGo(name, src)...)
		if !strings.HasSuffix(name, "_test.go") && !generated.Match(src) {
			documented[path.Dir(name)] = documented[path.Dir(name)] || hasPackageComment(src)
		}
		return nil
	})
	for dir, ok := range documented {
		if !ok {
			problems = append(problems, fmt.Sprintf("package %s has no comment: write a doc.go that says what it is, its invariants and an example", dir))
		}
	}
	slices.Sort(problems)
	return problems, err
}

func hasPackageComment(src []byte) bool {
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.ParseComments|parser.PackageClauseOnly)
	return err == nil && file.Doc != nil && strings.HasPrefix(file.Doc.Text(), "Package "+file.Name.Name+" ") ||
		err == nil && file.Doc != nil && file.Name.Name == "main"
}
