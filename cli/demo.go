package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/internal/verify"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// What the demo does: so many compactions of a table that begins with so many
// fragments.
const (
	demoCompactions = 8
	demoFragments   = 20
	demoRows        = 1000 // of a fragment
)

// demoDoc is the document of demo.
type demoDoc struct {
	Table string `json:"table"`
	// Kept says that the table is still there.
	Kept bool `json:"kept"`
	// Compactions are those that were committed; Lost are groups of them that were
	// not published.
	Compactions int `json:"compactions"`
	Lost        int `json:"lost"`
	// RowsCarried are rows that were deleted or updated while a compaction rewrote
	// them, and whose deletion it carried over; RebasedOver are the versions in
	// which that and other things happened.
	RowsCarried  uint64        `json:"rows_carried"`
	RebasedOver  int           `json:"rebased_over"`
	Writer       demoWriterDoc `json:"writer"`
	RowsWritten  uint64        `json:"rows_written"`
	RowsExpected uint64        `json:"rows_expected"`
	RowsFound    uint64        `json:"rows_found"`
	// Verified: every row is what it must be, every old address leads to its row, and
	// verify --deep found no problem.
	Verified          bool              `json:"verified"`
	AddressesFollowed int               `json:"addresses_followed"`
	Translated        []demoTranslation `json:"translated"`
	Problems          []verify.Problem  `json:"problems"`
	ElapsedMS         int64             `json:"elapsed_ms"`
}

// demoWriterDoc is what the writer did.
type demoWriterDoc struct {
	Commits     int    `json:"commits"`
	RowsDeleted uint64 `json:"rows_deleted"`
	RowsUpdated uint64 `json:"rows_updated"`
	// RebasedOver are commits that met a version of somebody else's, and
	// RowsRelocated are the rows that a compaction had moved there.
	RebasedOver   int    `json:"rebased_over"`
	RowsRelocated uint64 `json:"rows_relocated"`
	// Retries is how often rows had to be looked for again.
	Retries int `json:"retries"`
}

type demoTranslation struct {
	translation
	ID int64 `json:"id"`
}

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo [DIR]",
		Short: "Compact a small table while it is written to, and show that nothing is lost",
		Long: `demo writes a small Lance table of its own, and then does two things at the same
time: it deletes and updates rows as fast as it can, and it compacts the table over
and over. Each compaction carries over what was deleted meanwhile, each change
follows the rows that a compaction moves, and none of them is lost. In the end it
compares every row with what it must be, and follows old row addresses to where the
rows are now.

It needs no service and takes a few seconds. The table is made in a temporary
directory and removed at the end, or kept in DIR if you name one.`,
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
	start := time.Now()
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
		p = &printer{w: io.Discard}
	}
	d := &demo{
		app: a, p: p, engine: engine, model: demoModel{},
		doc: demoDoc{Table: location, Kept: kept, Translated: []demoTranslation{}, Problems: []verify.Problem{}},
	}
	if err := d.run(ctx); err != nil {
		return err
	}
	d.doc.ElapsedMS = time.Since(start).Milliseconds()
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

// demo is one run.
type demo struct {
	app    *app
	p      *printer
	engine *lance.Engine
	doc    demoDoc
	model  demoModel
	// old is where each row was written.
	old map[int64]table.RowAddr
}

func (d *demo) run(ctx context.Context) error {
	d.p.f("A Lance table in %s\n\n", d.doc.Table)
	for _, step := range []func(context.Context) error{d.write, d.race, d.compare, d.follow, d.check} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return d.p.err
}

// write fills the table and remembers where its rows are.
func (d *demo) write(ctx context.Context) error {
	for i := range demoFragments {
		if err := d.append(ctx, int64(i*demoRows), demoRows); err != nil {
			return err
		}
	}
	s, err := d.engine.Load(ctx, 0)
	if err != nil {
		return err
	}
	d.old = map[int64]table.RowAddr{}
	for row, err := range d.rows(ctx, s) {
		if err != nil {
			return err
		}
		d.old[row.id] = row.addr
	}
	d.doc.RowsWritten = uint64(len(d.model))
	d.p.f("  written    %s in %s\n\n", plural(d.doc.RowsWritten, "row"), plural(len(s.Fragments), "small fragment"))
	return nil
}

// race compacts while a writer deletes and updates rows, as another process would.
func (d *demo) race(ctx context.Context) error {
	other, err := lance.Open(ctx, d.doc.Table, lance.Options{})
	if err != nil {
		return err
	}
	defer other.Close()
	d.p.f("Now a writer deletes and updates rows as fast as it can, and meanwhile:\n\n")
	w := startDemoWriter(ctx, other, d.model)
	rows, err := d.compactions(ctx, w)
	err = errors.Join(w.stop(), err)
	if err != nil {
		return err
	}
	d.p.table([]string{"  COMPACTION", "FRAGMENTS", "ROWS", "COMMITTED AS", "OVER VERSIONS OF OTHERS", "ROWS CARRIED OVER"}, rows)
	d.doc.Writer = w.doc
	d.p.f("\nThe writer committed %s changes: %s rows deleted, %s updated. %s of them met a compaction, and\n"+
		"followed %s rows to where that had moved them; %s had to be computed again.\n",
		count(w.doc.Commits), count(w.doc.RowsDeleted), count(w.doc.RowsUpdated), count(w.doc.RebasedOver),
		count(w.doc.RowsRelocated), count(w.doc.Retries))
	for _, x := range w.problems {
		d.problem("writer", "%s", x)
	}
	return nil
}

// compactions compacts back to back, and returns what there is to say of each.
func (d *demo) compactions(ctx context.Context, w *demoWriter) (rows [][]string, err error) {
	for i := range demoCompactions {
		// An update and a delete, so that there is something to compact.
		w.await(w.commits.Load() + 2)
		r, err := d.app.runCompaction(ctx, d.engine, compaction.Options{FRI: compaction.FRIAlways}, false)
		if err != nil {
			return nil, err
		}
		if !r.Committed {
			return nil, errors.New("demo: the compaction found nothing to do")
		}
		d.doc.Compactions++
		d.doc.Lost += r.GroupsLost
		d.doc.RowsCarried += r.RowsCarried
		d.doc.RebasedOver += len(r.RebasedOver)
		rows = append(rows, []string{
			"  " + count(i+1), fmt.Sprintf("%d into %d", r.FragmentsRemoved, r.FragmentsAdded), count(r.RowsWritten),
			"version " + count(r.Version), count(len(r.RebasedOver)), count(r.RowsCarried),
		})
	}
	return rows, nil
}

// compare holds every row against the model.
func (d *demo) compare(ctx context.Context) error {
	s, err := d.engine.Load(ctx, 0)
	if err != nil {
		return err
	}
	d.doc.RowsExpected = uint64(len(d.model))
	seen := map[int64]bool{}
	for row, err := range d.rows(ctx, s) {
		if err != nil {
			return err
		}
		want, live := d.model[row.id]
		switch {
		case !live:
			d.problem("row", "id %d was deleted and is there", row.id)
		case seen[row.id]:
			d.problem("row", "id %d is there twice", row.id)
		default:
			d.doc.RowsFound++
			if what := row.differs(want); what != "" {
				d.problem("row", "id %d: %s", row.id, what)
			}
		}
		seen[row.id] = true
	}
	for id := range d.model {
		if !seen[id] {
			d.problem("row", "id %d is lost", id)
		}
	}
	d.p.f("Compactions lost: %d. Expected %s rows, found %s, and compared every value of each.\n",
		d.doc.Lost, count(d.doc.RowsExpected), count(d.doc.RowsFound))
	return nil
}

func (d *demo) problem(kind, format string, args ...any) {
	const most = 20 // one fault can show at every row
	if len(d.doc.Problems) < most {
		d.doc.Problems = append(d.doc.Problems, verify.Problem{Kind: kind, Where: d.doc.Table, Message: fmt.Sprintf(format, args...)})
	}
}

// follow translates the address at which every row was written and checks that the
// row is there, if nobody updated or deleted it; it shows some.
func (d *demo) follow(ctx context.Context) error {
	s, err := d.engine.Load(ctx, 0)
	if err != nil {
		return err
	}
	h, err := openFRI(ctx, d.engine, s)
	if err != nil {
		return err
	}
	remapper := remap.New(h, remap.Options{Current: s})
	now := map[table.RowAddr]int64{}
	for row, err := range d.rows(ctx, s) {
		if err != nil {
			return err
		}
		now[row.addr] = row.id
	}
	shown := map[string][]string{} // the first row of each fate
	answers := map[string]demoTranslation{}
	for id := range int64(len(d.old)) {
		t, err := newTranslation(ctx, remapper, d.old[id])
		if err != nil {
			return err
		}
		d.doc.AddressesFollowed++
		text, at, live := t.text(), int64(0), false
		if t.To != nil {
			if at, live = now[*t.To]; !live {
				text += ", and is dead there"
			}
		}
		fate := d.model.fate(id)
		switch {
		case fate == untouched && (!live || at != id):
			d.problem("address", "id %d was written at %s, and that leads to another place: %s", id, d.old[id], text)
		case fate != untouched && live:
			d.problem("address", "id %d was written at %s and %s since, and that leads to id %d: %s", id, d.old[id], fate, at, text)
		}
		// Of the updated rows one that a compaction had moved before, if there is one:
		// where the writer is slow there need not be.
		if shown[fate] == nil || fate == updated && answers[fate].To == nil && t.To != nil {
			shown[fate] = []string{"  id " + count(id), d.old[id].String(), fate, text}
			answers[fate] = demoTranslation{t, id}
		}
	}
	var rows [][]string
	for _, fate := range []string{untouched, updated, deleted} {
		if shown[fate] != nil {
			rows = append(rows, shown[fate])
			d.doc.Translated = append(d.doc.Translated, answers[fate])
		}
	}
	d.p.f("\nEach row was remembered by the address at which it was written, as an index does. The fragment\n" +
		"reuse index that the compactions published leads on from there:\n\n")
	d.p.table([]string{"  ROW", "WRITTEN AT", "SINCE THEN", "THE ADDRESS NOW"}, rows)
	return nil
}

func (d *demo) check(ctx context.Context) error {
	report, err := verify.Table(ctx, d.engine, verify.Options{Deep: true})
	if err != nil {
		return err
	}
	if n := report.Checked[verify.OrphanFiles]; n > 0 {
		d.problem("file", "%s left that no version refers to", plural(n, "file"))
	}
	d.doc.Problems = append(d.doc.Problems, report.Problems...)
	d.doc.Verified = len(d.doc.Problems) == 0 && d.doc.RowsFound == d.doc.RowsExpected && d.doc.Lost == 0
	if d.doc.Verified {
		d.p.f("\nAll verified: every row, file, deletion and address; and no file is left that no version refers\nto.\n")
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
