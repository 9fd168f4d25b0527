package compaction

import (
	"context"
	"errors"
	"time"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/table"
)

// newLoop returns the commit loop of package commit, with its events told as those
// of a compaction.
func newLoop(e table.Engine, ev Events, maxAttempts int, sleep func(context.Context, time.Duration) error) commit.Loop {
	return commit.Loop{
		Engine: e, By: "compaction", MaxAttempts: maxAttempts, Sleep: sleep,
		Hooks: commit.Hooks{
			Begin: func(i commit.Info) { ev.CommitBegin(commitInfo(i)) },
			End:   func(i commit.Info) { ev.CommitEnd(commitInfo(i)) },
			Pause: func(attempt int, d time.Duration) { ev.Backoff(BackoffInfo{Attempt: attempt, Pause: d}) },
		},
	}
}

func commitInfo(i commit.Info) CommitInfo {
	p := i.Proposal
	info := CommitInfo{Attempt: i.Attempt, Base: p.Base.Version, PublishFRI: p.Change.Reuse != nil, Version: i.Version, Err: i.Err}
	switch op := p.Transaction.Operation.(type) {
	case table.CreateIndex:
		info.Trim = true
	case table.Rewrite:
		info.Groups = len(op.Groups)
		for _, g := range op.Groups {
			for _, f := range g.New {
				info.RowsCarried += f.DeletedRows()
			}
		}
	}
	return info
}

// overtaken makes the loop's running out of attempts a conflict like the others.
func overtaken(err error) error {
	var o *commit.OvertakenError
	if errors.As(err, &o) {
		return &ConflictError{Table: o.Table, Version: o.Version, Attempts: o.Attempts}
	}
	return err
}
