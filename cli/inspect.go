package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/table"
)

// inspectDoc is the document of inspect.
type inspectDoc struct {
	Table        string            `json:"table"`
	Version      uint64            `json:"version"`
	Timestamp    anyTime           `json:"timestamp"`
	DataFormat   string            `json:"data_format"`
	StableRowIDs bool              `json:"stable_row_ids"`
	Rows         rowCounts         `json:"rows"`
	Bytes        uint64            `json:"bytes"`
	Fragments    []inspectFragment `json:"fragments"`
	Indexes      []inspectIndex    `json:"indexes"`
	FRI          friSummary        `json:"fri"`
	Health       []hint            `json:"health"`
	Gain         gain              `json:"compaction"`
	// History is what old versions hold; null if the engine cannot tell.
	History *table.History `json:"history"`
}

type rowCounts struct {
	Live     uint64 `json:"live"`
	Deleted  uint64 `json:"deleted"`
	Physical uint64 `json:"physical"`
}

type inspectFragment struct {
	ID           table.FragmentID `json:"id"`
	PhysicalRows uint64           `json:"physical_rows"`
	DeletedRows  uint64           `json:"deleted_rows"`
	Files        int              `json:"files"`
	Bytes        uint64           `json:"bytes"`
}

// inspectIndex is one index; its segments are taken together.
type inspectIndex struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Fields   []string `json:"fields"`
	Segments int      `json:"segments"`
	// CoveredFragments are the fragments of this version that the index claims;
	// null if it does not say.
	CoveredFragments []table.FragmentID `json:"covered_fragments"`
	// CoveredRows are the live rows of those fragments.
	CoveredRows uint64 `json:"covered_rows"`
	// Policy is what a compaction would do to the index.
	Policy string `json:"policy"`
	Reason string `json:"policy_reason"`
}

type hint struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// gain is what a compaction with default options would do.
type gain struct {
	Possible        bool   `json:"possible"`
	Reason          string `json:"reason"`
	Tasks           int    `json:"tasks"`
	FragmentsBefore int    `json:"fragments_before"`
	FragmentsAfter  int    `json:"fragments_after"`
	DeletedRows     uint64 `json:"deleted_rows_dropped"`
	Rows            uint64 `json:"rows_rewritten"`
	Bytes           uint64 `json:"bytes_read"`
	// BytesNeeded is the free space that it takes, roughly and rather too much. The old
	// files stay until the versions that refer to them are cleaned up.
	BytesNeeded uint64 `json:"bytes_needed"`
}

func (a *app) inspectCommand() *cobra.Command {
	var version uint64
	var all bool
	cmd := &cobra.Command{
		Use:   "inspect TABLE",
		Short: "Show fragments, deletions, indexes, health, and what compacting would gain",
		Long: `inspect shows what a table is made of, and what a compaction with default options
would do to it. It reads metadata only, so it works on tables whose data
cannot be read, too.`,
		Example: `  rehome inspect ./t.lance
  rehome inspect ./t.lance --version 3 --json | jq .fragments`,
		Args: exactly("a TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := a.inspect(cmd.Context(), args[0], version)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(doc)
			}
			return a.printInspect(&printer{w: a.Stdout}, doc, all)
		},
	}
	cmd.Flags().Var(number(&version, 1, math.MaxUint64), "version", "show version `N` instead of the latest")
	cmd.Flags().BoolVar(&all, "all", false, "list every fragment, however many there are")
	return cmd
}

func (a *app) inspect(ctx context.Context, location string, version uint64) (*inspectDoc, error) {
	ss, err := a.load(ctx, location, version)
	if err != nil {
		return nil, err
	}
	defer ss.close()
	s, reuse, err := asReadersSee(ctx, ss)
	if err != nil {
		return nil, err
	}
	doc := &inspectDoc{
		Table: s.Table, Version: s.Version, Timestamp: anyTime{s.Timestamp}, DataFormat: s.DataFormat, StableRowIDs: s.StableRowIDs,
		FRI: reuse, Fragments: []inspectFragment{}, Indexes: []inspectIndex{}, Health: []hint{},
	}
	for _, f := range s.Fragments {
		doc.Fragments = append(doc.Fragments, inspectFragment{
			ID: f.ID, PhysicalRows: f.PhysicalRows, DeletedRows: f.DeletedRows(), Files: len(f.Files), Bytes: f.Bytes(),
		})
		doc.Rows.Physical += f.PhysicalRows
		doc.Rows.Deleted += f.DeletedRows()
		doc.Bytes += f.Bytes()
	}
	doc.Rows.Live = doc.Rows.Physical - doc.Rows.Deleted
	plan, planErr := compaction.PlanSnapshot(ctx, ss.engine, ss.snapshot, compaction.Options{})
	doc.Indexes = indexesOf(s, plan, planErr)
	if doc.Gain, err = gainOf(ctx, ss, plan, planErr); err != nil {
		return nil, err
	}
	if doc.History, err = weigh(ctx, ss); err != nil {
		return nil, err
	}
	doc.Health = a.healthOf(s, doc)
	return doc, nil
}

// weighed is how many versions inspect looks into for what they hold.
const weighed = 200

func weigh(ctx context.Context, ss *opened) (*table.History, error) {
	w, ok := table.As[table.HistoryWeigher](ss.engine)
	if !ok {
		return nil, nil
	}
	h, err := w.WeighHistory(ctx, ss.snapshot, weighed)
	if err != nil {
		return nil, err
	}
	return &h, nil
}

// indexesOf puts the segments of each index together.
func indexesOf(s *table.Snapshot, plan compaction.Planned, planErr error) []inspectIndex {
	decisions := map[string]compaction.IndexDecision{}
	for _, d := range plan.Decision.Indexes {
		decisions[d.Segment] = d
	}
	out := []inspectIndex{}
	known := map[int]bool{}
	for _, m := range s.Indexes {
		if m.System {
			continue
		}
		i := slices.IndexFunc(out, func(x inspectIndex) bool { return x.Name == m.Name })
		if i < 0 {
			i = len(out)
			out = append(out, inspectIndex{
				Name: m.Name, Kind: m.Kind, Fields: fieldNames(s.Schema, m.Fields), CoveredFragments: []table.FragmentID{},
			})
			known[i] = true
		}
		x := &out[i]
		x.Segments++
		known[i] = known[i] && m.CoverageKnown
		for _, f := range s.Fragments {
			if m.Covers(f.ID) {
				x.CoveredFragments = append(x.CoveredFragments, f.ID)
			}
		}
		d, decided := decisions[m.UUID.String()]
		switch {
		case planErr != nil:
			x.Policy, x.Reason = "refused", oneLine(planErr)
		case decided && (x.Policy == "" || x.Policy == string(compaction.ActionNone)):
			x.Policy, x.Reason = string(d.Action), d.Reason
		}
	}
	for i := range out {
		slices.Sort(out[i].CoveredFragments)
		out[i].CoveredFragments = slices.Compact(out[i].CoveredFragments)
		if !known[i] {
			out[i].CoveredFragments = nil
		}
		out[i].CoveredRows = coveredRows(s, out[i].CoveredFragments)
	}
	return out
}

// gainOf says what the plan comes to, and whether it can be carried out.
func gainOf(ctx context.Context, ss *opened, plan compaction.Planned, planErr error) (gain, error) {
	n := len(ss.snapshot.Fragments)
	g := gain{FragmentsBefore: n, FragmentsAfter: n}
	if planErr != nil {
		g.Reason = oneLine(planErr)
		return g, nil
	}
	if len(plan.Tasks) == 0 {
		g.Reason = "nothing to do"
		return g, nil
	}
	g.Possible, g.Tasks = true, len(plan.Tasks)
	var reasons []string
	for _, t := range plan.Tasks {
		g.FragmentsAfter += int(t.Files) - len(t.Sources)
		g.Rows += t.Rows
		g.Bytes += t.Bytes
		g.BytesNeeded += t.Bytes
		for _, f := range t.Sources {
			g.DeletedRows += f.DeletedRows()
		}
		if !slices.Contains(reasons, t.Reason) {
			reasons = append(reasons, t.Reason)
		}
	}
	g.Reason = strings.Join(reasons, "; ")
	if rw, ok := table.As[table.Rewriter](ss.engine); ok {
		var sources []table.FragmentID
		for _, t := range plan.Tasks {
			sources = append(sources, t.SourceIDs()...)
		}
		switch err := rw.CanRewrite(ctx, ss.snapshot, sources); {
		case err == nil:
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			return g, err
		default:
			return gain{FragmentsBefore: n, FragmentsAfter: n, Reason: oneLine(err)}, nil
		}
	}
	return g, nil
}

// healthOf gives hints about what slows the table down or blocks its compaction.
func (a *app) healthOf(s *table.Snapshot, doc *inspectDoc) []hint {
	hints := []hint{}
	add := func(kind, format string, args ...any) {
		hints = append(hints, hint{kind, fmt.Sprintf(format, args...)})
	}
	if small := countSmall(s); small > 1 && doc.Gain.FragmentsAfter < len(s.Fragments) {
		rows, bytes := smallShare(s)
		add("small_fragments", "%d of %s are small, and every query opens each of them: they have %s of the rows and %s of %s",
			small, plural(len(s.Fragments), "fragment"), percent(rows, doc.Rows.Physical), size(bytes), size(doc.Bytes))
	}
	if doc.Rows.Physical > 0 && float64(doc.Rows.Deleted)/float64(doc.Rows.Physical) > 0.1 {
		add("deleted_rows", "%s of the rows are deleted and still read: %s of %s",
			percent(doc.Rows.Deleted, doc.Rows.Physical), count(doc.Rows.Deleted), count(doc.Rows.Physical))
	}
	for _, x := range doc.Indexes {
		switch {
		case x.CoveredFragments == nil:
			add("unknown_coverage", "index %s does not record which fragments it covers", x.Name)
		case len(x.CoveredFragments) < len(s.Fragments):
			add("unindexed_fragments", "index %s covers %d of %s: queries scan the rest, %s of %s (%s)",
				x.Name, len(x.CoveredFragments), plural(len(s.Fragments), "fragment"),
				count(doc.Rows.Live-x.CoveredRows), plural(doc.Rows.Live, "row"), percent(doc.Rows.Live-x.CoveredRows, doc.Rows.Live))
		}
	}
	if n := doc.FRI.Trimmable; n > 0 {
		add("trim", "nothing needs %d of %s in the fragment reuse index: %s trim drops them", n, plural(doc.FRI.Transitions, "transition"), a.program())
	}
	if b := doc.FRI.StockReaderBytes; a.lance && b >= heavyReader {
		add("stock_reader_memory", "the fragment reuse index moved %s rows: older stock readers (Lance 8) need about %s of memory for it when they open an index",
			count(doc.FRI.MovedRows), size(b))
	}
	if n := doc.FRI.Damaged; n > 0 {
		add("fragment_reuse_index", "%d of %s in the fragment reuse index cannot be followed: %s; rehome trim --drop-damaged drops what is damaged",
			n, plural(doc.FRI.Transitions, "transition"), doc.FRI.Damage)
	}
	if doc.FRI.Problem != "" {
		add("fragment_reuse_index", "the fragment reuse index cannot be read: %s", doc.FRI.Problem)
	}
	if !doc.Gain.Possible && doc.Gain.Reason != "nothing to do" {
		add("cannot_compact", "cannot be compacted: %s", doc.Gain.Reason)
	}
	return hints
}

func smallShare(s *table.Snapshot) (rows, bytes uint64) {
	var defaults compaction.Options
	defaults.EnsureDefaults()
	for _, f := range s.Fragments {
		if isSmall(f, defaults) {
			rows, bytes = rows+f.PhysicalRows, bytes+f.Bytes()
		}
	}
	return rows, bytes
}

func isSmall(f table.Fragment, full compaction.Options) bool {
	return f.PhysicalRows < full.TargetRows && f.Bytes() < full.MaxBytesPerFile
}

func countSmall(s *table.Snapshot) int {
	var defaults compaction.Options
	defaults.EnsureDefaults()
	n := 0
	for _, f := range s.Fragments {
		if isSmall(f, defaults) {
			n++
		}
	}
	return n
}

// listed is how many fragments text shows before it leaves the rest out.
const listed = 20

func (a *app) printInspect(p *printer, doc *inspectDoc, all bool) error {
	rowKind := "row addresses"
	if doc.StableRowIDs {
		rowKind = "stable row ids"
	}
	p.f("Table    %s\n", doc.Table)
	p.f("Version  %d, of %s\n", doc.Version, doc.Timestamp.UTC().Format("2006-01-02 15:04:05 MST"))
	p.f("Format   data files %s, %s\n", doc.DataFormat, rowKind)
	p.f("Rows     %s", count(doc.Rows.Live))
	if doc.Rows.Deleted > 0 {
		p.f(" live, %s deleted (%s)", count(doc.Rows.Deleted), percent(doc.Rows.Deleted, doc.Rows.Physical))
	}
	p.f(" in %s, %s\n", plural(len(doc.Fragments), "fragment"), size(doc.Bytes))
	printHistory(p, doc)

	if len(doc.Fragments) > 0 {
		p.f("\n")
		show := doc.Fragments
		if !all && len(show) > listed {
			show = show[:listed]
		}
		var rows [][]string
		for _, f := range show {
			deleted := "-"
			if f.DeletedRows > 0 {
				deleted = fmt.Sprintf("%s (%s)", count(f.DeletedRows), percent(f.DeletedRows, f.PhysicalRows))
			}
			rows = append(rows, []string{
				strconv.FormatUint(uint64(f.ID), 10), count(f.PhysicalRows), deleted, strconv.Itoa(f.Files), size(f.Bytes),
			})
		}
		p.table([]string{"FRAGMENT", "ROWS", "DELETED", "FILES", "SIZE"}, rows)
		if left := len(doc.Fragments) - len(show); left > 0 {
			p.f("... and %s more (--all lists them)\n", count(left))
		}
	}
	if len(doc.Indexes) > 0 {
		p.f("\n")
		var rows [][]string
		for _, x := range doc.Indexes {
			covers := "unknown"
			if x.CoveredFragments != nil {
				covers = fmt.Sprintf("%d of %d", len(x.CoveredFragments), len(doc.Fragments))
				rows := percent(x.CoveredRows, doc.Rows.Live)
				covers += " (" + rows + " of rows)"
			}
			rows = append(rows, []string{x.Name, x.Kind, strings.Join(x.Fields, ","), covers, describePolicy(x)})
		}
		p.table([]string{"INDEX", "KIND", "ON", "COVERS", "WHEN COMPACTED"}, rows)
	}
	p.f("\n")
	if doc.FRI.Transitions > 0 || doc.FRI.Bytes > 0 {
		where := "in the manifest"
		if doc.FRI.External {
			where = "in a file of its own"
		}
		p.f("Fragment reuse index: %s of %s moved, %s %s", plural(doc.FRI.Transitions, "transition"), plural(doc.FRI.MovedRows, "row"), size(doc.FRI.Bytes), where)
		if a.lance {
			p.f("; an older stock reader (Lance 8) holds up to %s for it", size(doc.FRI.StockReaderBytes))
		}
		p.f("\n")
	}
	for _, h := range doc.Health {
		p.f("! %s\n", h.Message)
	}
	switch g := doc.Gain; {
	case g.Possible:
		p.f("%s compact would make %s out of %d", a.program(), plural(g.FragmentsAfter, "fragment"), g.FragmentsBefore)
		if g.DeletedRows > 0 {
			p.f(" and drop %s", plural(g.DeletedRows, "deleted row"))
		}
		p.f(" (reads %s, and needs up to %s of free space;\nthe old files stay until old versions are cleaned up).\n", size(g.Bytes), size(g.BytesNeeded))
	case g.Reason == "nothing to do":
		p.f("Nothing to compact.\n")
	}
	return p.err
}

func printHistory(p *printer, doc *inspectDoc) {
	h := doc.History
	if h == nil || h.Versions < 2 {
		return
	}
	p.f("History  %s; %s in %s that only others than this need", plural(h.Versions, "version"), size(h.HeldBytes), plural(h.HeldFiles, "file"))
	if h.Read < h.Versions {
		p.f(" (at least: %s looked into)", count(h.Read))
	}
	p.f("\n")
}

func describePolicy(x inspectIndex) string {
	switch x.Policy {
	case "refused":
		return "refused"
	case "":
		return "-"
	default:
		return x.Policy + ": " + x.Reason
	}
}
