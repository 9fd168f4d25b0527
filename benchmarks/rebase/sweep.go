package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// sweeper bounds the disk that a run takes, and counts what lies there for nothing.
// Between two compactions it deletes
//
//   - data files that no version refers to: the work of a compaction that lost, as
//     the compactor and nobody else writes files of that size;
//   - data files that only versions refer to which were not the newest for a while,
//     and which nobody reads any more. Those are superseded and not orphans.
type sweeper struct {
	path   string
	engine *lance.Engine

	seen uint64            // the newest version whose files are known
	last map[string]uint64 // data files, and the newest version that refers to each
	// newest are the newest versions of the last sweeps.
	newest []sighting

	orphans     int
	orphanBytes int64
}

// sighting is a version that was the newest one at a time.
type sighting struct {
	version uint64
	at      time.Time
}

// grace is how long data files are kept for a client that still reads the version
// which it had open.
const grace = 8 * time.Second

// smallest is the size from which on a data file is a compaction's, and not one of
// the rows that an update of the client wrote.
const smallest = 1 << 20

func newSweeper(ctx context.Context, path string) (*sweeper, error) {
	e, err := lance.Open(ctx, path, lance.Options{})
	if err != nil {
		return nil, err
	}
	return &sweeper{path: path, engine: e, last: map[string]uint64{}}, nil
}

func (s *sweeper) close() error { return s.engine.Close() }

// sweep is called when no compaction is under way.
func (s *sweeper) sweep(ctx context.Context) error {
	// The directory is read first: what is written after that is not looked at.
	entries, err := os.ReadDir(filepath.Join(s.path, "data"))
	if err != nil {
		return err
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	s.newest = append(s.newest, sighting{s.seen, time.Now()})
	for len(s.newest) > 1 && time.Since(s.newest[1].at) > grace {
		s.newest = s.newest[1:]
	}
	oldest := uint64(0)
	if time.Since(s.newest[0].at) > grace {
		oldest = s.newest[0].version
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() < smallest {
			continue
		}
		if err != nil {
			return err
		}
		last, referred := s.last[entry.Name()]
		if referred && last >= oldest {
			continue
		}
		if !referred {
			s.orphans++
			s.orphanBytes += info.Size()
		}
		if err := os.Remove(filepath.Join(s.path, "data", entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// read notes the data files of the versions that it has not seen.
func (s *sweeper) read(ctx context.Context) error {
	for v := s.seen + 1; ; v++ {
		snapshot, err := s.engine.Load(ctx, v)
		if errors.Is(err, table.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		s.seen = v
		for _, f := range snapshot.Fragments {
			for _, d := range f.Files {
				s.last[strings.TrimPrefix(d.Path, "data/")] = v
			}
		}
	}
}

// small counts the other data files that no version refers to: what the client left.
func (s *sweeper) small() (n int, err error) {
	entries, err := os.ReadDir(filepath.Join(s.path, "data"))
	for _, entry := range entries {
		if _, referred := s.last[entry.Name()]; !referred {
			n++
		}
	}
	return n, err
}
