package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/internal/verify"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// demoDoc is the document of demo.
type demoDoc struct {
	Table string `json:"table"`
	// Kept says that the table is still there.
	Kept bool `json:"kept"`
	// Compactions that were committed, and groups of them that were lost.
	Compactions  int    `json:"compactions"`
	Lost         int    `json:"lost"`
	RowsWritten  uint64 `json:"rows_written"`
	RowsDeleted  uint64 `json:"rows_deleted"`
	RowsExpected uint64 `json:"rows_expected"`
	RowsFound    uint64 `json:"rows_found"`
	// Verified: every row is where its old address leads, and verify --deep found
	// no problem.
	Verified   bool              `json:"verified"`
	Translated []demoTranslation `json:"translated"`
	Problems   []verify.Problem  `json:"problems"`
}

type demoTranslation struct {
	translation
	ID int64 `json:"id"`
}

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo [DIR]",
		Short: "Make a small table, compact it, and show that no row and no address is lost",
		Long: `demo writes a small Lance table of its own, deletes rows, compacts it twice, follows
old row addresses to where the rows are now, and checks everything. It needs no
service and takes a second. The table is made in a temporary directory and
removed at the end, or kept in DIR if you name one.`,
		Example: `  rehome demo
  rehome demo ./try && rehome inspect ./try/demo.lance`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usagef("demo takes at most a DIR, got %s (see %s --help)", plural(len(args), "argument"), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			dir := ""
			if len(args) == 1 {
				dir = args[0]
			}
			return a.demo(cmd.Context(), dir)
		},
	}
}

func (a *app) demo(ctx context.Context, dir string) (err error) {
	kept := dir != ""
	if !kept {
		if dir, err = os.MkdirTemp("", "rehome-demo-"); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	location := filepath.Join(dir, "demo.lance")
	if _, err := os.Stat(location); err == nil {
		return fmt.Errorf("demo: %s is there already: name another directory, or remove it", location)
	}
	engine, err := lance.Create(ctx, location, demoColumns(), lance.CreateOptions{}, lance.Options{})
	if err != nil {
		return err
	}
	defer engine.Close()

	p := &printer{w: a.Stdout}
	if a.json {
		p = &printer{w: discard{}}
	}
	d := &demo{
		app: a, p: p, engine: engine,
		table: &demoTable{engine: engine, live: map[int64]bool{}},
		doc:   demoDoc{Table: location, Kept: kept, Translated: []demoTranslation{}, Problems: []verify.Problem{}},
		old:   map[int64]table.RowAddr{},
	}
	if err := d.run(ctx); err != nil {
		return err
	}
	if a.json {
		if err := a.printJSON(d.doc); err != nil {
			return err
		}
	}
	if p.err != nil {
		return p.err
	}
	if !d.doc.Verified {
		return &problemsError{max(1, len(d.doc.Problems))}
	}
	return nil
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// demo is one run.
type demo struct {
	app    *app
	p      *printer
	engine *lance.Engine
	table  *demoTable
	doc    demoDoc
	// old is where each row was written.
	old map[int64]table.RowAddr
}

func (d *demo) run(ctx context.Context) error {
	d.p.f("A Lance table in %s\n\n", d.doc.Table)
	steps := []func(context.Context) error{
		func(ctx context.Context) error { return d.write(ctx, 8, 1000) },
		func(ctx context.Context) error { return d.delete(ctx, 10) },
		d.compact,
		func(ctx context.Context) error { return d.write(ctx, 3, 1000) },
		func(ctx context.Context) error { return d.delete(ctx, 7) },
		d.compact,
		d.follow,
		d.check,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return d.p.err
}

// write appends fragments and remembers where their rows are.
func (d *demo) write(ctx context.Context, fragments, rows int) error {
	for range fragments {
		if err := d.table.append(ctx, rows); err != nil {
			return err
		}
	}
	s, err := d.engine.Load(ctx, 0)
	if err != nil {
		return err
	}
	addrs, err := d.table.addresses(ctx, s)
	if err != nil {
		return err
	}
	for id, addr := range addrs {
		if _, known := d.old[id]; !known {
			d.old[id] = addr
		}
	}
	d.doc.RowsWritten += uint64(fragments * rows)
	d.p.f("  written    %s in %s\n", plural(fragments*rows, "row"), plural(fragments, "small fragment"))
	return nil
}

// delete deletes every n-th row that is there.
func (d *demo) delete(ctx context.Context, n int64) error {
	gone, err := d.table.delete(ctx, func(id int64) bool { return id%n == n/2 })
	if err != nil {
		return err
	}
	d.doc.RowsDeleted += uint64(gone)
	d.p.f("  deleted    %s: marked, and still in the files\n", plural(gone, "row"))
	return nil
}

func (d *demo) compact(ctx context.Context) error {
	opts := compaction.Options{FRI: compaction.FRIAlways}
	r, err := d.app.runCompaction(ctx, d.engine, opts, false)
	if err != nil {
		return err
	}
	if !r.Committed {
		return errors.New("demo: the compaction found nothing to do")
	}
	d.doc.Compactions++
	d.doc.Lost += r.GroupsLost
	d.p.f("  compacted  %s into %d: %s, every one at a new address (version %d)\n",
		plural(r.FragmentsRemoved, "fragment"), r.FragmentsAdded, plural(r.RowsWritten, "row"), r.Version)
	return nil
}

// follow translates the address at which every row was written, and checks that
// the row is there; it shows a few.
func (d *demo) follow(ctx context.Context) error {
	s, err := d.engine.Load(ctx, 0)
	if err != nil {
		return err
	}
	h, err := openFRI(ctx, d.engine, s)
	if err != nil {
		return err
	}
	history := h.Translator()
	now, err := d.table.addresses(ctx, s)
	if err != nil {
		return err
	}
	d.doc.RowsExpected, d.doc.RowsFound = uint64(len(d.table.live)), 0
	for id := range now {
		if !d.table.live[id] {
			d.problem("row", "id %d was deleted and is there", id)
			continue
		}
		d.doc.RowsFound++
	}
	for id, addr := range d.old {
		t, err := newTranslation(history, addr)
		if err != nil {
			return err
		}
		at, found := now[id]
		switch live := d.table.live[id]; {
		case live != found:
			// Counted above.
		case live && (t.To == nil || *t.To != at):
			d.problem("address", "id %d is at %s, its old address %s: %s", id, at, addr, t.text())
		case !live && t.To != nil:
			d.problem("address", "id %d was deleted, its old address %s: %s", id, addr, t.text())
		}
	}
	d.p.f("\nEach row was remembered by the address at which it was written, as an index does.\n")
	d.p.f("The fragment reuse index that the compactions published leads on from there:\n\n")
	var rows [][]string
	for _, id := range []int64{0, 5, 10, 7777, 10999} {
		t, err := newTranslation(history, d.old[id])
		if err != nil {
			return err
		}
		d.doc.Translated = append(d.doc.Translated, demoTranslation{t, id})
		rows = append(rows, []string{"  id " + count(id), d.old[id].String(), t.text()})
	}
	d.p.table([]string{"  ROW", "WRITTEN AT", "NOW"}, rows)
	return nil
}

func (d *demo) problem(kind, format string, args ...any) {
	const most = 20 // one fault can show at every row
	if len(d.doc.Problems) < most {
		d.doc.Problems = append(d.doc.Problems, verify.Problem{Kind: kind, Where: d.doc.Table, Message: fmt.Sprintf(format, args...)})
	}
}

func (d *demo) check(ctx context.Context) error {
	report, err := verify.Table(ctx, d.engine, verify.Options{Deep: true})
	if err != nil {
		return err
	}
	d.doc.Problems = append(d.doc.Problems, report.Problems...)
	d.doc.Verified = len(d.doc.Problems) == 0 && d.doc.RowsFound == d.doc.RowsExpected
	d.p.f("\nExpected %s, found %s; compactions lost: %d; addresses followed: %s.\n",
		plural(d.doc.RowsExpected, "row"), count(d.doc.RowsFound), d.doc.Lost, count(len(d.old)))
	if d.doc.Verified {
		d.p.f("All verified: every file, deletion and address was read again.\n")
	}
	for _, x := range d.doc.Problems {
		d.p.f("PROBLEM %s: %s\n", x.Kind, x.Message)
	}
	if d.doc.Kept {
		d.p.f("\nThe table is yours to look at: rehome inspect %s\n", d.doc.Table)
	} else {
		d.p.f("\nThe table was temporary and is gone. Now yours: rehome inspect PATH/TO/TABLE.lance\n")
	}
	return nil
}
