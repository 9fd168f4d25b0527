package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/table"
)

// planDoc is the document of plan.
type planDoc struct {
	Table       string     `json:"table"`
	ReadVersion uint64     `json:"read_version"`
	Tasks       []planTask `json:"tasks"`
	// KeepsOrder says that a scan reads the rows in the same order afterwards.
	KeepsOrder  bool              `json:"keeps_order"`
	IndexPolicy string            `json:"index_policy"`
	PublishFRI  bool              `json:"publish_fri"`
	Indexes     []planIndex       `json:"indexes"`
	Kept        []compaction.Kept `json:"kept"`
}

type planTask struct {
	Fragments []table.FragmentID `json:"fragments"`
	Rows      uint64             `json:"rows"`
	Bytes     uint64             `json:"bytes"`
	Becomes   uint64             `json:"becomes"`
	Reason    string             `json:"reason"`
}

type planIndex struct {
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Action string `json:"action"`
	Reason string `json:"reason"`
}

func (a *app) planCommand() *cobra.Command {
	var f compactFlags
	cmd := &cobra.Command{
		Use:   "plan TABLE",
		Short: "Say what compact would do and why; writes nothing",
		Example: `  rehome plan ./t.lance
  rehome plan ./t.lance --target-rows 200000 --json | jq .tasks`,
		Args: exactly("a TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := f.options()
			if err != nil {
				return err
			}
			return a.plan(cmd.Context(), args[0], &f, opts)
		},
	}
	f.register(cmd)
	return cmd
}

func (a *app) plan(ctx context.Context, location string, f *compactFlags, opts compaction.Options) error {
	engine, err := a.openToCompact(ctx, location, f)
	if err != nil {
		return err
	}
	defer closeEngine(engine)
	plan, err := compaction.PlanLatest(ctx, engine, opts)
	if err != nil {
		return err
	}
	doc := planDoc{
		Table: plan.Table, ReadVersion: plan.ReadVersion, Tasks: []planTask{}, KeepsOrder: plan.KeepsOrder,
		IndexPolicy: string(plan.Decision.Policy), PublishFRI: plan.Decision.PublishFRI, Indexes: []planIndex{}, Kept: plan.Kept,
	}
	for _, t := range plan.Tasks {
		doc.Tasks = append(doc.Tasks, planTask{t.SourceIDs(), t.Rows, t.Bytes, t.Files, t.Reason})
	}
	for _, x := range plan.Decision.Indexes {
		doc.Indexes = append(doc.Indexes, planIndex{x.Name, x.Kind, string(x.Action), x.Reason})
	}
	if a.json {
		return a.printJSON(doc)
	}
	return printPlan(&printer{w: a.Stdout}, doc, plan.Decision.Reason, a.program())
}

func printPlan(p *printer, doc planDoc, why, program string) error {
	if len(doc.Tasks) == 0 {
		p.f("Nothing to compact in version %d.\n", doc.ReadVersion)
		printKept(p, doc.Kept)
		return p.err
	}
	p.f("Version %d: %s\n\n", doc.ReadVersion, plural(len(doc.Tasks), "task"))
	var rows [][]string
	for i, t := range doc.Tasks {
		rows = append(rows, []string{
			strconv.Itoa(i + 1), idRanges(t.Fragments), count(t.Rows), size(t.Bytes), t.Reason,
		})
	}
	p.table([]string{"TASK", "FRAGMENTS", "ROWS", "SIZE", "WHY"}, rows)
	p.f("\n")
	printKept(p, doc.Kept)
	if !doc.KeepsOrder {
		p.f("%s\n", orderChanges)
	}
	if len(doc.Indexes) > 0 {
		p.f("Indexes: policy %s, because %s.\n", doc.IndexPolicy, why)
		for _, x := range doc.Indexes {
			p.f("  %s (%s): %s, %s\n", x.Name, x.Kind, x.Action, x.Reason)
		}
	}
	if doc.PublishFRI {
		p.f("A fragment reuse index would be published.\n")
	}
	p.f("Nothing was written. `%s compact` does it.\n", program)
	return p.err
}

// orderChanges is said of what moves rows behind others.
const orderChanges = "Rows change their order in a scan: new fragments come after those that stay (--keep-order leaves alone what would do that)."

// printKept says why fragments stay, one line a reason.
func printKept(p *printer, kept []compaction.Kept) {
	var order []string
	byReason := map[string][]table.FragmentID{}
	for _, k := range kept {
		if byReason[k.Reason] == nil {
			order = append(order, k.Reason)
		}
		byReason[k.Reason] = append(byReason[k.Reason], k.Fragment)
	}
	for _, reason := range order {
		ids := byReason[reason]
		p.f("%s left alone (%s): %s\n", plural(len(ids), "fragment"), idRanges(ids), reason)
	}
}

// idRanges writes ascending ids shortly: 0-9,12 and so on; long lists are cut.
func idRanges(ids []table.FragmentID) string {
	const most = 6
	var parts []string
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if len(parts) == most {
			return strings.Join(parts, ",") + fmt.Sprintf(",... (%s)", count(len(ids)))
		}
		if i == j {
			parts = append(parts, fmt.Sprint(ids[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", ids[i], ids[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}
