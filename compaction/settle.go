package compaction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rehome-db/rehome/table"
)

// giveUp ends a Publish that failed with cause: if an attempt turns out to have
// been committed after all, that is a success; if not, everything that was written
// is deleted; and if nobody can tell, it is kept.
func (p *publisher) giveUp(ctx context.Context, cause error) (Outcome, error) {
	// Also if this call committed nothing: an earlier one may have, with the same
	// results, and have been told that the outcome is unknown.
	out, settled, err := p.settle(ctx)
	if settled && out.Version > 0 {
		return out, nil
	}
	if !settled {
		return Outcome{}, p.ambiguous(errors.Join(cause, err))
	}
	var objects []table.Object
	for _, r := range p.results {
		objects = append(objects, r.Objects...)
	}
	err = discard(ctx, p.engine, objects, p.ev)
	if len(p.left) > 0 {
		err = errors.Join(err, &LeftoverError{Objects: p.left, Err: errors.New("their deletion failed before")})
	}
	return Outcome{}, errors.Join(cause, err)
}

// settle finds out whether the results were committed. It goes on looking for a
// while even if ctx is done. An Outcome with a version means yes, settled
// without a version no.
func (p *publisher) settle(ctx context.Context) (out Outcome, settled bool, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTime)
	defer cancel()
	const looks = 5
	for i := range looks {
		if i > 0 {
			if err = p.opts.sleep(ctx, 100*time.Millisecond<<i); err != nil {
				break
			}
		}
		var w window
		if w, err = p.look(ctx); err != nil {
			continue
		}
		if tx, ok := p.own(w); ok {
			return p.published(tx), true, nil
		}
		// Somebody else has the version, or the engine was sure that it changed
		// nothing. Otherwise what was sent may still arrive.
		if p.seen >= p.target || !p.unknown {
			return Outcome{}, true, nil
		}
	}
	return Outcome{}, false, err
}

// ambiguous says that nobody can tell. What led there is told and not wrapped: that
// it was a conflict, for example, must not make the caller start again.
func (p *publisher) ambiguous(cause error) error {
	n := 0
	for _, r := range p.results {
		n += len(r.Objects)
	}
	return fmt.Errorf("compaction: table %s: whether transaction %s was committed is unknown; %s written for it were kept; publish the same results again to find out: %w: %v",
		p.table, p.id, plural(uint64(n), "object"), table.ErrAmbiguousCommit, cause)
}

// published describes a commit of this publisher's that was found in the table.
func (p *publisher) published(tx table.Transaction) Outcome {
	out := p.outcome(tx.Version)
	if op, ok := tx.Operation.(table.Rewrite); ok {
		out.Published = nil
		for _, g := range op.Groups {
			out.Published = append(out.Published, PublishedGroup{Sources: fragmentIDs(g.Old), Destinations: fragmentIDs(g.New)})
		}
	}
	return out
}

// outcome completes what was proposed by the version that it became.
func (p *publisher) outcome(version uint64) Outcome {
	out := p.proposed
	out.Table, out.Version, out.ReadVersion, out.Attempts = p.table, version, p.readVersion, p.tried
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
