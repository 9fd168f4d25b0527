package compaction

import (
	"context"
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// propose assembles the commit against the version that it replaces. Ids, coverage
// and the fragment reuse index depend on that version, so nothing of it is kept
// for the next attempt.
func (p *publisher) propose(ctx context.Context, w window) (table.Proposal, error) {
	if err := w.base.CheckSuccessor(); err != nil {
		return table.Proposal{}, fmt.Errorf("compaction: %w", err)
	}
	carried, err := p.carry(ctx, w)
	if err != nil {
		return table.Proposal{}, err
	}
	d, err := p.decide(ctx, w)
	if err != nil {
		return table.Proposal{}, err
	}
	next := w.base.NextFragmentID
	var groups []table.RewriteGroup
	var swaps []swap
	var change table.Change
	p.proposed = Outcome{Decision: d}
	for _, r := range p.results {
		g := table.RewriteGroup{Old: r.Task.Sources}
		for _, f := range r.Fragments {
			if next > table.MaxFragmentID {
				return table.Proposal{}, table.Unsupportedf("compaction: table %s version %d: no fragment ids are left", p.Table, w.base.Version)
			}
			g.New = append(g.New, table.Fragment{ID: next, PhysicalRows: f.PhysicalRows, Files: f.Files})
			next++
		}
		s := swap{old: fragmentIDs(g.Old), live: w.present(r.Task), new: fragmentIDs(g.New)}
		change.Remove = append(change.Remove, s.live...)
		groups, swaps = append(groups, g), append(swaps, s)
	}
	if err := p.writeCarried(ctx, w, carried, groups); err != nil {
		return table.Proposal{}, err
	}
	for _, g := range groups {
		change.Add = append(change.Add, g.New...)
		p.proposed.publishes(g)
	}
	change.SetCoverage = d.coverage(w.view.indexes, swaps)
	if d.PublishFRI {
		change.Reuse, p.proposed.Transitions, err = extend(ctx, p.engine, w.base, p.results, groups)
		if err != nil {
			return table.Proposal{}, err
		}
	}
	return table.Proposal{
		Base:        w.base,
		Transaction: table.Transaction{ID: p.ID, ReadVersion: p.readVersion, Operation: table.Rewrite{Groups: groups}},
		Change:      change,
	}, nil
}

// decide chooses the index policy for the groups that are left, and loses those
// that an index, built in the meantime, covers in part. Such a group costs less to
// make again than leaving every index behind for its sake.
func (p *publisher) decide(ctx context.Context, w window) (Decision, error) {
	indexes, may := w.view.indexes, retargetable(w.base)
	var all, whole [][]table.FragmentID
	for _, r := range p.results {
		ids := w.present(r.Task)
		all = append(all, ids)
		if straddles(indexes, may, r.Task.SourceIDs(), ids) == "" {
			whole = append(whole, ids)
		}
	}
	d, err := decide(w.base, w.view, p.publishing, all, anyGain(indexes, whole))
	if err != nil || !d.retargets() || len(whole) == len(all) {
		return d, err
	}
	err = p.drop(ctx, w, func(r Result) verdict {
		if why := straddles(indexes, may, r.Task.SourceIDs(), w.present(r.Task)); why != "" {
			return lose("%s, and it is to answer for the new ones", why)
		}
		return verdict{keep: true}
	})
	if err != nil {
		return d, err
	}
	return decide(w.base, w.view, p.publishing, whole, anyGain(indexes, whole))
}
