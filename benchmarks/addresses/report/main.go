// Command report makes the tables and plots of docs/benchmarks.md from what
// `benchmarks/addresses` saved:
//
//	go run ./benchmarks/addresses/report
//
// It is a command of its own so that nothing else needs the plotting library.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/rehome-db/rehome/benchmarks/addresses/results"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	_, file, _, _ := runtime.Caller(0)
	root := filepath.Join(filepath.Dir(file), "..", "..", "..")
	f := flag.NewFlagSet("report", flag.ContinueOnError)
	in := f.String("results", filepath.Join(root, "benchmarks", "results", "addresses.json"), "the results")
	page := f.String("page", filepath.Join(root, "docs", "benchmarks.md"), "the page whose tables are replaced")
	images := f.String("images", filepath.Join(root, "docs", "img"), "where the plots go")
	if err := f.Parse(args); err != nil {
		return err
	}
	r, err := results.Load(*in)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*images, 0o755); err != nil {
		return err
	}
	if err := draw(r, *images); err != nil {
		return err
	}
	b, err := os.ReadFile(*page)
	if err != nil {
		return err
	}
	if b, err = replace(b, tables(r)); err != nil {
		return err
	}
	return os.WriteFile(*page, b, 0o644)
}

const (
	begin = "<!-- addresses: begin, made by go run ./benchmarks/addresses/report -->\n"
	end   = "<!-- addresses: end -->\n"
)

// replace puts the tables between the two marks of the page.
func replace(page []byte, tables string) ([]byte, error) {
	before, rest, ok := bytes.Cut(page, []byte(begin))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, fmt.Errorf("the page has no place for the tables: the lines %q and %q", begin, end)
	}
	return bytes.Join([][]byte{before, []byte(begin), []byte(tables), []byte(end), after}, nil), nil
}
