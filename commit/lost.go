package commit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/rehome-db/rehome/table"
)

// LostError says that a transaction was committed, but objects that its version refers
// to are gone: somebody removed them just before the commit. A clean-up does so if it
// deletes unreferenced files of any age ("delete unverified"). It is a
// [table.ErrCorrupt]: the version cannot be read whole. The caller must delete nothing
// of the transaction.
type LostError struct {
	By, Table string
	// Version holds the transaction.
	Version uint64
	Objects []table.Object
}

func (e *LostError) Error() string {
	const shown = 3
	s := fmt.Sprintf("%s: table %s: version %d was committed, and %d of its objects were removed just before that:", e.By, e.Table, e.Version, len(e.Objects))
	for i, o := range e.Objects {
		if i == shown {
			s += " ..."
			break
		}
		s += " " + o.Path
	}
	return s + fmt.Sprintf("; a clean-up took files that were not committed yet, and version %d cannot be read whole: restore version %d, then run again, and let no clean-up delete unverified files while others write",
		e.Version, e.Version-1)
}

// Unwrap makes it a table.ErrCorrupt.
func (e *LostError) Unwrap() error { return table.ErrCorrupt }

// stater is an engine that can look an object up.
type stater interface {
	Stat(context.Context, table.Object) (uint64, error)
}

// lookTime is how long [Loop.lookAgain] goes on after ctx is done. The commit is in, so
// a store that does not answer must not keep the caller.
const lookTime = time.Second

// lingering returns a context that ends some time after ctx, and [SettleTime] from now
// at the latest.
func lingering(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTime)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(after, cancel) })
	return out, func() {
		stop()
		cancel()
	}
}

// lookAgain checks, right after a commit, that the objects which the proposal brought
// in still exist. It reports those that are certainly gone.
func (l *Loop) lookAgain(ctx context.Context, p *table.Proposal, s *table.Snapshot) *LostError {
	engine, ok := table.As[stater](l.Engine)
	if !ok || p == nil {
		return nil
	}
	ctx, cancel := lingering(ctx, lookTime)
	defer cancel()
	objects := broughtIn(p, s)
	gone := make([]bool, len(objects))
	slots := make(chan struct{}, l.Threads)
	var wg sync.WaitGroup
	for i, o := range objects {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			_, err := engine.Stat(ctx, o)
			gone[i] = errors.Is(err, table.ErrNotFound)
		})
	}
	wg.Wait()
	var lost []table.Object
	for i, o := range objects {
		if gone[i] {
			lost = append(lost, o)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return &LostError{By: l.By, Table: l.Table, Version: p.Base.Version + 1, Objects: lost}
}

// broughtIn lists the objects that the proposal's version refers to and its base does
// not. s is that version, nil if it was not loaded.
func broughtIn(p *table.Proposal, s *table.Snapshot) (out []table.Object) {
	deletion := func(d *table.DeletionRef) {
		if d != nil && d.Base == "" {
			out = append(out, table.Object{Kind: table.ObjectDeletion, Path: d.Path})
		}
	}
	for _, f := range p.Change.Add {
		for _, d := range f.Files {
			if d.Base == "" {
				out = append(out, table.Object{Kind: table.ObjectData, Path: d.Path, Bytes: d.Bytes})
			}
		}
		deletion(f.Deletion)
	}
	for _, id := range slices.Sorted(maps.Keys(p.Change.SetDeletion)) {
		deletion(p.Change.SetDeletion[id])
	}
	if p.Change.Reuse != nil && s != nil && s.Reuse != nil && s.Reuse.Path != "" {
		out = append(out, table.Object{Kind: table.ObjectReuseIndex, Path: s.Reuse.Path})
	}
	return out
}
