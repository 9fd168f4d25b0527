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
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// friDoc is the document of fri.
type friDoc struct {
	Table   string `json:"table"`
	Version uint64 `json:"version"`
	// IndexVersion is null if the table has no fragment reuse index.
	IndexVersion *int32 `json:"index_version"`
	Bytes        uint64 `json:"bytes"`
	External     bool   `json:"external"`
	// Complete is false if a part of it is damaged, or of a kind that this release does
	// not know; Problem says which.
	Complete    bool            `json:"complete"`
	Problem     string          `json:"problem,omitempty"`
	Transitions []friTransition `json:"transitions"`
}

type friTransition struct {
	DatasetVersion uint64       `json:"dataset_version"`
	Sources        []fri.Digest `json:"sources"`
	Destinations   []fri.Digest `json:"destinations"`
	Mapping        string       `json:"mapping"`
	// Committed is the version that published it; 0 if that is not known any more, and
	// CommitUnknown says why then.
	Committed     uint64 `json:"committed"`
	CommitUnknown string `json:"commit_unknown,omitempty"`
	// Damage says what is wrong with it, if anything is: no row can be followed
	// through it then.
	Damage      string `json:"damage,omitempty"`
	MovedRows   uint64 `json:"moved_rows"`
	DroppedRows uint64 `json:"dropped_rows"`
	Bytes       int    `json:"bytes"`
	// Segments says, for each source, how it is held once an address of it was asked
	// for.
	Segments []fri.SegmentInfo `json:"segments"`
	// NeededBy names the indexes that may hold addresses from before it.
	NeededBy []string `json:"needed_by"`
}

// friSummary is what inspect shows.
type friSummary struct {
	Transitions int    `json:"transitions"`
	Bytes       uint64 `json:"bytes"`
	External    bool   `json:"external"`
	// ManifestBytes are read with every version, ExternalBytes when an address is
	// translated.
	ManifestBytes uint64 `json:"manifest_bytes"`
	ExternalBytes uint64 `json:"external_bytes"`
	MovedRows     uint64 `json:"moved_rows"`
	// StockReaderBytes is the memory that an older stock reader (Lance 8) needs for
	// it when it opens an index.
	StockReaderBytes uint64 `json:"stock_reader_bytes"`
	// Trimmable is the number of transitions that nothing needs.
	Trimmable int `json:"trimmable"`
	// Problem says why the content cannot be read, if it cannot.
	Problem string `json:"problem,omitempty"`
	// Damaged is the number of transitions that are damaged by themselves, and Damage
	// what is wrong with the first.
	Damaged int    `json:"damaged,omitempty"`
	Damage  string `json:"damage,omitempty"`
}

// openFRI reads the snapshot's fragment reuse index, an empty history if it has none,
// and checks all of it: a command says what is wrong before it answers anything. What
// is damaged by itself is set aside.
func openFRI(ctx context.Context, engine table.Engine, s *table.Snapshot) (*fri.History, error) {
	h, err := fri.Load(ctx, engine, s)
	if err != nil {
		return nil, err
	}
	if h, err = h.SetAsideDamage(); err != nil {
		return nil, fmt.Errorf("table %s version %d: fragment reuse index: %w", s.Table, s.Version, err)
	}
	return h, nil
}

func sorted(ids []table.FragmentID) []table.FragmentID { return slices.Sorted(slices.Values(ids)) }

// asReadersSee returns the opened version with its indexes as readers see them,
// and a summary of its fragment reuse index. Readers follow the coverage of an
// index through that: what is stored may name fragments that were rewritten since.
func asReadersSee(ctx context.Context, ss *opened) (*table.Snapshot, friSummary, error) {
	s := ss.snapshot
	if s.Reuse == nil {
		return s, friSummary{}, nil
	}
	summary := friSummary{Bytes: s.Reuse.Bytes, External: s.Reuse.External, ManifestBytes: s.Reuse.Bytes}
	if s.Reuse.External {
		summary.ManifestBytes, summary.ExternalBytes = 0, s.Reuse.Bytes
	}
	h, err := openFRI(ctx, ss.engine, s)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil, summary, err
	case err != nil: // inspect shows what there is, also where that is damage
		summary.Problem = oneLine(err)
		return s, summary, nil
	}
	summary.Transitions = h.Len()
	if bad := h.Damaged(); len(bad) > 0 {
		summary.Damaged, summary.Damage = len(bad), oneLine(h.Damage(bad[0]))
	}
	for _, t := range h.All() {
		summary.MovedRows += t.MovedRows()
	}
	summary.StockReaderBytes = summary.MovedRows * stockReaderBytes
	summary.Trimmable = trimmable(ctx, ss, s)
	view := *s
	view.Indexes = slices.Clone(s.Indexes)
	for i, m := range view.Indexes {
		if !m.System && m.CoverageKnown {
			view.Indexes[i].Coverage, _ = h.Follow(m.Coverage)
		}
	}
	return &view, summary, nil
}

func (a *app) friCommand() *cobra.Command {
	var version uint64
	cmd := &cobra.Command{
		Use:   "fri TABLE",
		Short: "Show the fragment reuse index: which fragments became which",
		Long: `fri shows the table's fragment reuse index, which leads from old row addresses to
current ones: its transitions, oldest first, each with the fragments it consumed
and produced and the indexes that may still hold addresses from before it.`,
		Args: exactly("a TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			doc, err := a.fri(cmd.Context(), args[0], version)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(doc)
			}
			return printFRI(&printer{w: a.Stdout}, doc)
		},
	}
	cmd.Flags().Var(number(&version, 1, math.MaxUint64), "version", "show that of version `N` instead of the latest")
	return cmd
}

func (a *app) fri(ctx context.Context, location string, version uint64) (*friDoc, error) {
	ss, err := a.load(ctx, location, version)
	if err != nil {
		return nil, err
	}
	defer ss.close()
	s := ss.snapshot
	doc := &friDoc{Table: s.Table, Version: s.Version, Transitions: []friTransition{}, Complete: true}
	if s.Reuse == nil {
		return doc, nil
	}
	doc.IndexVersion, doc.Bytes, doc.External = &s.Reuse.IndexVersion, s.Reuse.Bytes, s.Reuse.External
	h, err := openFRI(ctx, ss.engine, s)
	if err != nil {
		return nil, err
	}
	facts := factsOf(ctx, ss, s, h)
	if err := h.CheckComplete(); err != nil {
		doc.Complete, doc.Problem = false, oneLine(err)
	}
	for i, t := range h.All() {
		x := friTransition{
			DatasetVersion: t.DatasetVersion(), Sources: t.Sources(), Destinations: t.Destinations(), Mapping: t.Mapping().String(),
			Committed: facts[i].Committed, CommitUnknown: facts[i].CommitUnknown, Damage: facts[i].Damage, MovedRows: t.MovedRows(), DroppedRows: t.DroppedRows(), Bytes: t.EncodedSize(),
			Segments: h.Segments(i), NeededBy: facts[i].NeededBy,
		}
		if x.Destinations == nil {
			x.Destinations = []fri.Digest{}
		}
		doc.Transitions = append(doc.Transitions, x)
	}
	return doc, nil
}

// factsOf says of each transition which indexes need it and which version published it.
// The rule is that of a trim; for a history that cannot be trimmed it is what coverage
// and versions say by themselves.
func factsOf(ctx context.Context, ss *opened, s *table.Snapshot, h *fri.History) []compaction.TrimTransition {
	if plan, err := compaction.PlanTrim(ctx, ss.engine, s, compaction.TrimOptions{}); err == nil {
		return plan.Transitions
	}
	facts := make([]compaction.TrimTransition, h.Len())
	for i := range facts {
		facts[i].NeededBy = fri.Need{Indexes: h.NeededBy(i, 0, s.Indexes), Continues: -1}.IndexNames()
		facts[i].CommitUnknown = "commit version unknown"
	}
	return facts
}

func printFRI(p *printer, doc *friDoc) error {
	if doc.IndexVersion == nil {
		p.f("Version %d has no fragment reuse index: row addresses are what they are.\n", doc.Version)
		return p.err
	}
	where := "in the manifest"
	if doc.External {
		where = "in a file of its own"
	}
	p.f("Fragment reuse index of version %d: %s, %s %s, codec %d\n\n",
		doc.Version, plural(len(doc.Transitions), "transition"), size(doc.Bytes), where, *doc.IndexVersion)
	var rows [][]string
	for i, t := range doc.Transitions {
		needed := "-"
		if len(t.NeededBy) > 0 {
			needed = strings.Join(t.NeededBy, ",")
		}
		rows = append(rows, []string{
			strconv.Itoa(i + 1), idRanges(digestIDs(t.Sources)), orNothing(idRanges(digestIDs(t.Destinations))),
			count(t.MovedRows), count(t.DroppedRows), size(uint64(t.Bytes)), heldAs(t.Segments), needed,
		})
	}
	p.table([]string{"#", "FRAGMENTS", "BECAME", "ROWS MOVED", "ROWS DROPPED", "SIZE", "HELD AS", "NEEDED BY"}, rows)
	for i, t := range doc.Transitions {
		if t.CommitUnknown != "" {
			p.f("\nTransition %d: %s.\n", i+1, t.CommitUnknown)
		}
	}
	if !doc.Complete {
		p.f("\n! A part of it is damaged or not understood: %s. Rows that went through it cannot be translated.\n", doc.Problem)
	}
	if slices.ContainsFunc(doc.Transitions, func(t friTransition) bool { return t.Damage != "" }) {
		p.f("! rehome trim --drop-damaged drops what is damaged.\n")
	}
	return p.err
}

func versionOrNone(v uint64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatUint(v, 10)
}

// heldAs names the forms in which a transition's sources are held.
func heldAs(segments []fri.SegmentInfo) string {
	var kinds []string
	for _, s := range segments {
		if !slices.Contains(kinds, s.Kind) {
			kinds = append(kinds, s.Kind)
		}
	}
	return strings.Join(kinds, ",")
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

func digestIDs(ds []fri.Digest) []table.FragmentID {
	ids := make([]table.FragmentID, len(ds))
	for i, d := range ds {
		ids[i] = d.ID
	}
	slices.Sort(ids)
	return ids
}
