package lance

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// Each column of an output opens every source, and decoding the metadata of a small one
// takes longer than reading it. The engine's cache is shared by all rewrites and may have
// lost it by then, so a rewrite holds on to it, in as much memory as the cache may take.

// keep remembers what was read of a source's file, if there is room.
func (g *rewriteGroup) keep(s *rewriteSource, file int, of *openFile) {
	m := of.Metadata()
	if g.kept+m.Bytes() > g.engine.opts.CacheBytes {
		g.forgotten = true
		return
	}
	g.kept += m.Bytes()
	if s.metadata == nil {
		s.metadata = make([]*datafile.Metadata, len(s.fragment.Files))
	}
	s.metadata[file] = m
}

// open opens a file of a source. The caller releases it.
func (g *rewriteGroup) open(ctx context.Context, s *rewriteSource, file int) (*openFile, error) {
	metadata := g.engine.metadata
	if s.metadata != nil && s.metadata[file] != nil {
		// The file was read in this rewrite, and is never written again.
		metadata = func(o store.File, _ table.DataFile) (*datafile.File, error) { return s.metadata[file].Open(o), nil }
	}
	return g.engine.openDataWith(ctx, s.fragment, s.fragment.Files[file], metadata)
}

const (
	// openAheadFrom is how many sources there are for opening them ahead to be worth
	// while, and openAheadBy how far ahead that is: their files have to be open still
	// when they are looked at.
	openAheadFrom = 64
	openAheadBy   = 32
)

// openAhead opens the files of sources on all cores while they are looked at one after
// the other. The caller calls next when it is done with a source, and stop in the end.
// What cannot be opened is left for the caller to find.
func (g *rewriteGroup) openAhead(ctx context.Context, fragments []table.Fragment) (next, stop func()) {
	ahead := min(openAheadBy, g.engine.opts.OpenFiles/2)
	if len(fragments) < openAheadFrom || ahead < 2 {
		return func() {}, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	room := make(chan struct{}, ahead)
	var at atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), ahead) {
		workers.Go(func() {
			for {
				select {
				case room <- struct{}{}:
				case <-ctx.Done():
					return
				}
				i := int(at.Add(1)) - 1
				if i >= len(fragments) {
					return
				}
				for _, d := range fragments[i].Files {
					if of, err := g.engine.openData(ctx, fragments[i], d); err == nil {
						of.release()
					}
				}
			}
		})
	}
	next = func() {
		select {
		case <-room:
		case <-ctx.Done():
		}
	}
	return next, func() {
		cancel()
		workers.Wait()
	}
}
