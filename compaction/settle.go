package compaction

import (
	"context"
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// abandon ends a Publish that failed with cause: everything that was written is
// deleted or, if nobody can tell whether it was committed, kept.
func (p *publisher) abandon(ctx context.Context, cause error) error {
	var objects []table.Object
	for _, r := range p.results {
		objects = append(objects, r.Objects...)
	}
	if errors.Is(cause, table.ErrAmbiguousCommit) {
		objects = append(objects, p.vectors.Unreferred(nil)...)
		return fmt.Errorf("compaction: table %s: whether transaction %s was committed is unknown; %s written for it were kept; publish the same results again to find out: %w",
			p.Table, p.ID, plural(uint64(len(objects)), "object"), cause)
	}
	p.dropVectors(ctx, nil)
	err := discard(ctx, p.engine, objects, p.ev)
	if len(p.left) > 0 {
		err = errors.Join(err, &LeftoverError{By: "compaction", Objects: p.left, Err: errors.New("their deletion failed before")})
	}
	return errors.Join(cause, err)
}

// published describes a commit of this publisher's that was found in the table.
func (p *publisher) published(ctx context.Context, tx table.Transaction) Outcome {
	p.dropVectorsBut(ctx, tx.Version)
	if op, ok := tx.Operation.(table.Rewrite); ok {
		p.proposed.Published, p.proposed.RowsCarried = nil, 0
		for _, g := range op.Groups {
			p.proposed.publishes(g)
		}
	}
	return p.outcome(tx.Version)
}

// publishes adds a group to what is published.
func (o *Outcome) publishes(g table.RewriteGroup) {
	out := PublishedGroup{Sources: fragmentIDs(g.Old), Destinations: fragmentIDs(g.New)}
	for _, f := range g.New {
		out.RowsCarried += f.DeletedRows()
		if f.LiveRows() == 0 {
			out.Emptied = append(out.Emptied, f.ID)
		}
	}
	o.RowsCarried += out.RowsCarried
	o.Published = append(o.Published, out)
}

// outcome completes what was proposed by the version that it became.
func (p *publisher) outcome(version uint64) Outcome {
	out := p.proposed
	out.Table, out.Version, out.ReadVersion, out.Attempts = p.Table, version, p.readVersion, p.Attempts()
	out.RebasedOver = []uint64{}
	for v := p.readVersion + 1; v < version; v++ {
		out.RebasedOver = append(out.RebasedOver, v)
	}
	out.Lost, out.Leftover = p.lost, p.left
	if out.Lost == nil {
		out.Lost = []LostGroup{}
	}
	return out
}

func fragmentIDs(fragments []table.Fragment) []table.FragmentID {
	ids := make([]table.FragmentID, len(fragments))
	for i, f := range fragments {
		ids[i] = f.ID
	}
	return ids
}
