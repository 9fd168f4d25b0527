// Command generate has a stock engine make tables, larger than the golden ones and of
// every column type, and checks what anybody reads of them:
//
//	interop/setup.sh                          # once: the stock engines
//	go run ./benchmarks/generate -out tables -rows 1000000 -fragments 20 -deleted 5 -evolve
//	go run ./benchmarks/generate -out tables -types narrow,strings -format 2.2 -seed 7
//	rehome compact tables/strings/t.lance
//	go run ./benchmarks/generate -check tables
//
// A table is made for each family of types, at OUT/FAMILY/t.lance, and beside it
// made.json says what was done to it and what each of its versions must hold: the number
// of rows, and for each column a digest of all values, computed from what was drawn. The
// same flags make the same rows. -check reads the latest version of every table, and
// with -versions each one that was made, with rehome and the stock engines. A compaction
// does not change what a table holds, so the check is as good after one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/interop/workload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// options are the command's flags.
type options struct {
	engine, format, types, out, indexes string
	rows, fragments, perCommit, columns int
	deleted                             int
	clustered, evolve, stable, digests  bool
	seed                                uint64
	check, readers                      string
	versions                            bool
}

func run(ctx context.Context, args []string) error {
	var o options
	f := flag.NewFlagSet("generate", flag.ContinueOnError)
	f.StringVar(&o.engine, "engine", interop.PyLance14.Name, "who writes: pylance has every type; lancedb-0.39.0 and lancedb-0.31.0 have narrow, vectors, wide, texts and the tables of benchmarks/compact -sizes")
	f.StringVar(&o.format, "format", "2.1", "version of the data files: 2.0, 2.1, 2.2 or 2.3, which is not stable")
	f.StringVar(&o.types, "types", "all", "families of column types, separated by commas: all is those of every type; -types list names them")
	f.IntVar(&o.rows, "rows", 1_000_000, "rows of each table")
	f.IntVar(&o.fragments, "fragments", 20, "fragments of each table")
	f.IntVar(&o.perCommit, "per-commit", 1, "fragments written in one commit; more than 1 with pylance only")
	f.IntVar(&o.columns, "columns", 2000, "columns of the wide table")
	f.IntVar(&o.deleted, "deleted", 0, "percent of the rows that are deleted, all over the table")
	f.BoolVar(&o.clustered, "clustered", false, "delete runs of rows, half of every fourth fragment")
	f.BoolVar(&o.evolve, "evolve", false, "update rows, add, rename, retype and drop columns, and append after that")
	f.BoolVar(&o.stable, "stable-row-ids", false, "give rows ids that they keep")
	f.StringVar(&o.indexes, "indexes", "", "indexes to build, as COLUMN:KIND, separated by commas, for example id:BTREE")
	f.Uint64Var(&o.seed, "seed", 0, "what all values are drawn from")
	f.StringVar(&o.out, "out", "", "directory for the tables")
	f.BoolVar(&o.digests, "digests", true, "compute what the versions hold, for -check; takes about as long as making the rows")
	f.StringVar(&o.check, "check", "", "check the tables in this directory instead of making any")
	f.StringVar(&o.readers, "readers", "pylance-14.0.2,lancedb-0.39.0,lancedb-0.31.0", "with -check: the stock engines that read; old ones cannot read all that new ones write")
	f.BoolVar(&o.versions, "versions", false, "with -check: every version that was made, not only the latest")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("arguments %q are not understood", f.Args())
	}
	switch {
	case o.check != "":
		return checkAll(ctx, o.check, o.readers, o.versions)
	case o.types == "list":
		tables, err := o.all()
		for _, t := range tables {
			fmt.Println(t.Name)
		}
		return err
	case o.out == "":
		return errors.New("say where the tables go with -out")
	}
	return o.make(ctx)
}

// all are the tables that there are.
func (o options) all() ([]workload.Table, error) {
	tables, err := workload.Families(o.format)
	others := append(workload.Typed(o.rows, o.fragments), workload.Narrow(o.rows, o.fragments), workload.Vectors(o.rows, o.fragments),
		workload.Wide(o.rows, o.fragments, o.columns), workload.Texts(o.rows, o.fragments))
	for _, t := range others {
		// Some of the smaller ones have the names of families.
		if !slices.ContainsFunc(tables, func(f workload.Table) bool { return f.Name == t.Name }) {
			tables = append(tables, t)
		}
	}
	return tables, err
}

// tables are those that were asked for.
func (o options) tables() ([]workload.Table, error) {
	if o.types == "all" {
		return workload.Families(o.format)
	}
	all, err := o.all()
	if err != nil {
		return nil, err
	}
	var out []workload.Table
	for name := range strings.SplitSeq(o.types, ",") {
		i := slices.IndexFunc(all, func(t workload.Table) bool { return t.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no family %q in format %s; -types list names them", name, o.format)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func (o options) make(ctx context.Context) error {
	tables, err := o.tables()
	if err != nil {
		return err
	}
	indexes, err := parseIndexes(o.indexes)
	if err != nil {
		return err
	}
	e, err := start(ctx, o.engine)
	if err != nil {
		return err
	}
	defer e.Close()
	for _, t := range tables {
		t.Rows, t.Fragments, t.PerCommit, t.DeletePercent = o.rows, o.fragments, o.perCommit, o.deleted
		t.DataFormat, t.Seed = o.format, o.seed
		h := workload.History{Table: t, StableRowIDs: o.stable, Indexes: indexes, Clustered: o.clustered, Evolve: o.evolve}
		path := filepath.Join(o.out, t.Name, "t.lance")
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("%s is there already", path)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if !o.digests {
			if err := h.Write(ctx, e, path); err != nil {
				return err
			}
			continue
		}
		m, err := h.Make(ctx, e, path)
		if err != nil {
			return err
		}
		if err := m.Save(path); err != nil {
			return err
		}
		last := m.Latest()
		fmt.Printf("%s: %d versions, %d rows, %d columns\n", path, last.Version, last.Rows, len(last.Columns))
	}
	return nil
}

func start(ctx context.Context, engine string) (*interop.Engine, error) {
	spec, err := interop.SpecOf(engine)
	if err != nil {
		return nil, err
	}
	return interop.Start(ctx, spec)
}

func parseIndexes(list string) (out []workload.Index, err error) {
	if list == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(list, ",") {
		column, kind, ok := strings.Cut(part, ":")
		if !ok {
			return nil, fmt.Errorf("an index is COLUMN:KIND, not %q", part)
		}
		out = append(out, workload.Index{Column: column, Kind: interop.IndexKind(kind)})
	}
	return out, nil
}

// checkAll checks the tables below a directory.
func checkAll(ctx context.Context, dir, readers string, versions bool) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "t.lance"))
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		return fmt.Errorf("no tables in %s", dir)
	}
	var engines []*interop.Engine
	for name := range strings.FieldsFuncSeq(readers, func(c rune) bool { return c == ',' }) {
		e, err := start(ctx, name)
		if err != nil {
			return err
		}
		defer e.Close()
		engines = append(engines, e)
	}
	var errs []error
	for _, path := range paths {
		if err := checkTable(ctx, path, engines, versions); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
			continue
		}
		fmt.Printf("%s: as it was made\n", path)
	}
	return errors.Join(errs...)
}

func checkTable(ctx context.Context, path string, engines []*interop.Engine, versions bool) error {
	m, err := workload.LoadMade(path)
	if err != nil {
		return err
	}
	check := func(at uint64, want workload.Version) error {
		got, err := workload.ReadRehome(ctx, path, at, want)
		if err == nil {
			err = want.Check(got)
		}
		if err != nil {
			return fmt.Errorf("rehome: %w", err)
		}
		for _, e := range engines {
			got, err := m.ReadStock(ctx, e, path, at, want)
			if err == nil {
				err = want.Check(got)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
		}
		return nil
	}
	// The latest version may be a compaction's: it holds what the last one made does.
	if err := check(0, m.Latest()); err != nil {
		return err
	}
	if !versions {
		return nil
	}
	for _, v := range m.Versions {
		if err := check(v.Version, v); err != nil {
			return err
		}
	}
	return nil
}
