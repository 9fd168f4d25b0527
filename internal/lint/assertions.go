package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// optionalInterfaces are what an engine may implement beside its contract.
var optionalInterfaces = []string{
	"Cacher", "Checker", "HistoryWeigher", "OrphanFinder", "PartitionOpener", "Rememberer", "ReuseAdviser", "Rewriter", "RowIdentifier", "RowTaker",
}

// CheckAssertions finds where an engine is asked for an optional interface by a type
// assertion or a type switch: these ask the outermost engine alone.
func CheckAssertions(root fs.FS) (problems []string, err error) {
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return err
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ask := func(types ...ast.Expr) {
			for _, t := range types {
				if sel, ok := t.(*ast.SelectorExpr); ok {
					t = sel.Sel
				}
				if id, ok := t.(*ast.Ident); ok && slices.Contains(optionalInterfaces, id.Name) {
					problems = append(problems, fmt.Sprintf("%s:%d: ask table.As[%s], which looks into wrappers too", name, files.Position(t.Pos()).Line, id.Name))
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeAssertExpr:
				ask(n.Type)
			case *ast.TypeSwitchStmt:
				for _, c := range n.Body.List {
					ask(c.(*ast.CaseClause).List...)
				}
			}
			return true
		})
		return nil
	})
	slices.Sort(problems)
	return problems, err
}
