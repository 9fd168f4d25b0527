package compaction

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// This file carries along what others deleted while a compaction was under way.
// The new fragments hold copies of rows that are dead by now, so they are
// published with deletion vectors: for each source the rows that are dead now and
// were alive when the task read it, at the addresses that the rewrite gave them. An
// update is a deletion here, too: its new rows are in fragments of their own.
//
// Vectors are stored for an attempt, for the ids that its fragments get; see
// [commit.Vectors].

// carry finds out what has to be carried for each result. Groups for which that is
// impossible, because rows that were dead came back, are lost.
func (p *publisher) carry(ctx context.Context, w window) (map[string]rebase.Relocated, error) {
	carried := map[string]rebase.Relocated{}
	conflicts := map[string]error{}
	for _, r := range p.results {
		moved, err := p.relocated(ctx, w, r)
		switch {
		case errors.Is(err, table.ErrConflict):
			conflicts[r.ID] = err
		case err != nil:
			return nil, fmt.Errorf("compaction: table %s version %d: deletions since fragments %s were read: %w", p.Table, w.base.Version, idList(r.Task.SourceIDs()), err)
		case moved.Rows > 0:
			carried[r.ID] = moved
		}
	}
	if len(conflicts) == 0 {
		return carried, nil
	}
	return carried, p.drop(ctx, w, func(r Result) verdict {
		if err := conflicts[r.ID]; err != nil {
			return lose("%v", err)
		}
		return verdict{keep: true}
	})
}

// relocated is what was deleted of the sources of r since its task read them, in
// the destinations. Only vectors that changed are read.
func (p *publisher) relocated(ctx context.Context, w window, r Result) (rebase.Relocated, error) {
	changed := false
	for _, then := range r.Task.Sources {
		now, ok := w.base.Fragment(then.ID)
		changed = changed || !ok || !now.Deletion.Same(then.Deletion)
	}
	if !changed {
		return rebase.Relocated{}, nil
	}
	var m rebase.Move
	for _, f := range r.Fragments {
		m.Destinations = append(m.Destinations, f.PhysicalRows)
	}
	now := make([]rebase.SourceNow, len(r.Task.Sources))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(p.threads)
	for i, then := range r.Task.Sources {
		deleted, err := r.deletedAt(i)
		if err != nil {
			return rebase.Relocated{}, errors.Join(err, g.Wait())
		}
		m.Sources = append(m.Sources, rebase.MoveSource{Fragment: then.ID, PhysicalRows: then.PhysicalRows, Deleted: deleted})
		f, ok := w.base.Fragment(then.ID)
		switch {
		case !ok:
			now[i].Removed = true
		case f.Deletion.Same(then.Deletion):
			now[i].Deleted = deleted
		default:
			g.Go(func() error {
				set, err := p.engine.ReadDeletions(gctx, w.base, f)
				if err == nil {
					now[i].Deleted = commit.VectorOf(set)
				}
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return rebase.Relocated{}, err
	}
	return m.Relocate(now)
}

// writeCarried stores the deletion vectors of the attempt's new fragments, which
// are those of the results, in order, and refers to them. What an attempt before
// stored for the same fragment, and is still right, is used again.
func (p *publisher) writeCarried(ctx context.Context, w window, carried map[string]rebase.Relocated, groups []table.RewriteGroup) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(p.threads)
	for i, r := range p.results {
		for d, v := range carried[r.ID].Deleted {
			if v == nil {
				continue
			}
			f := &groups[i].New[d]
			g.Go(func() (err error) {
				f.Deletion, err = p.vectors.Write(gctx, p.engine, f.ID, w.base.Version, v)
				return err
			})
		}
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("compaction: table %s version %d: deletions since the fragments were read: %w", p.Table, w.base.Version, err)
	}
	return nil
}

// dropVectors deletes the stored vectors that the committed transaction does not
// refer to.
func (p *publisher) dropVectors(ctx context.Context, committed map[string]bool) {
	objects := p.vectors.Unreferred(committed)
	p.vectors.Forget()
	var left *LeftoverError
	if errors.As(discard(ctx, p.engine, objects, p.ev), &left) {
		p.left = append(p.left, left.Objects...)
	}
}

// dropVectorsBut deletes the stored vectors that a version does not refer to. If
// that cannot be told any more none is deleted: a clean-up of unreferenced files
// finds those that nobody needs.
func (p *publisher) dropVectorsBut(ctx context.Context, version uint64) {
	if p.vectors.Empty() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commit.SettleTime)
	defer cancel()
	s, err := p.engine.Load(ctx, version)
	if err == nil {
		p.dropVectors(ctx, commit.Referred(s))
	}
}
