package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// place is where the table is, and what only its engine can do.
type place interface {
	// engine returns an engine for one more actor.
	engine(ctx context.Context) (table.Engine, error)
	// orphans lists the objects that no version refers to.
	orphans(ctx context.Context) ([]string, error)
	// prune removes the versions before the latest, if the engine can do without.
	// Nobody is at work.
	prune(ctx context.Context) error
	// index builds an index, the n-th, if the place has a way.
	index(ctx context.Context, n int) (built bool, err error)
	// ask has others answer questions about the latest version, which has the rows
	// live and not those that are dead. It returns what was wrong.
	ask(ctx context.Context, live map[int64]int64, dead []int64) (wrong string, err error)
	close() error
}

// placeOptions say where the table is.
type placeOptions struct {
	// engine is "lance", at path, or "memory".
	engine, path string
	unique       bool
	// shared says what sessions the actors of a Lance table have: all the same "one",
	// each its "own", or "none".
	shared string
	// stable gives a Lance table stable row ids.
	stable bool
	// stock has a stock engine build indexes.
	stock bool
}

func newPlace(ctx context.Context, o placeOptions) (place, error) {
	switch {
	case o.engine == "memory" && !o.stock && !o.stable:
		return newInMemory(o.unique), nil
	case o.engine == "lance":
		s, err := newStored(ctx, o)
		if err == nil && o.stock {
			s.builder, err = newBuilder(ctx, o.path)
		}
		return s, err
	}
	return nil, fmt.Errorf("no engine %q", o.engine)
}

// inMemory is a table in memory. All actors share its engine.
type inMemory struct{ *memengine.Engine }

func newInMemory(unique bool) inMemory {
	var s table.Schema
	for i, f := range columns(unique).Fields() {
		s.Fields = append(s.Fields, table.Field{ID: int32(i), Name: f.Name, Type: f.Type, Nullable: f.Nullable, Metadata: f.Metadata.ToMap()})
	}
	return inMemory{memengine.New("soak", s)}
}

func (m inMemory) engine(context.Context) (table.Engine, error) { return m.Engine, nil }

func (m inMemory) orphans(ctx context.Context) (out []string, err error) {
	latest, err := m.Load(ctx, 0)
	if err != nil {
		return nil, err
	}
	referred := map[string]bool{}
	for v := uint64(1); v <= latest.Version; v++ {
		s, err := m.Load(ctx, v)
		if err != nil {
			return nil, err
		}
		for _, f := range s.Fragments {
			for _, d := range f.Files {
				referred[d.Path] = true
			}
			if f.Deletion != nil {
				referred[f.Deletion.Path] = true
			}
		}
	}
	objects, err := m.Objects(ctx)
	for _, o := range objects {
		if !referred[o.Path] {
			out = append(out, o.Path)
		}
	}
	return out, err
}

func (inMemory) prune(context.Context) error { return nil }

// index adds one of either kind that a compaction minds. Here it is nothing but its
// coverage.
func (m inMemory) index(ctx context.Context, n int) (bool, error) {
	s, err := m.Load(ctx, 0)
	if err != nil {
		return false, err
	}
	meta := table.IndexMeta{Name: fmt.Sprintf("index %d", n), Kind: "X", CoverageKnown: true, DatasetVersion: s.Version, Reuse: table.ReuseThrough}
	if n%2 == 1 {
		meta.Reuse = table.ReuseMasked
	}
	for _, f := range s.Fragments {
		meta.Coverage = append(meta.Coverage, f.ID)
	}
	_, err = m.AddIndex(ctx, meta)
	return err == nil, err
}

func (inMemory) ask(context.Context, map[int64]int64, []int64) (string, error) { return "", nil }

func (inMemory) close() error { return nil }

// stored is a Lance table in a directory. Every actor has an engine of its own, as
// if it were another process.
type stored struct {
	placeOptions
	engines  []*lance.Engine
	sessions []*lance.Session
	builder  *builder // of indexes; nil without a stock engine
}

func newStored(ctx context.Context, o placeOptions) (*stored, error) {
	e, err := lance.Create(ctx, o.path, columns(o.unique), lance.CreateOptions{StableRowIDs: o.stable}, lance.Options{})
	if err != nil {
		return nil, err
	}
	return &stored{placeOptions: o, engines: []*lance.Engine{e}}, nil
}

func (s *stored) engine(ctx context.Context) (table.Engine, error) {
	session, err := s.session()
	if err != nil {
		return nil, err
	}
	e, err := lance.Open(ctx, s.path, lance.Options{Session: session})
	if err != nil {
		return nil, err
	}
	s.engines = append(s.engines, e)
	return e, nil
}

// session is one for another engine, nil for none.
func (s *stored) session() (*lance.Session, error) {
	switch {
	case s.shared == "none":
		return nil, nil
	case s.shared == "one" && len(s.sessions) > 0:
		return s.sessions[0], nil
	}
	made, err := lance.NewSession(lance.SessionOptions{})
	if err != nil {
		return nil, err
	}
	s.sessions = append(s.sessions, made)
	return made, nil
}

func (s *stored) orphans(ctx context.Context) (out []string, err error) {
	_, err = s.engines[0].Orphans(ctx, func(o table.Orphan) { out = append(out, o.Path) })
	return out, err
}

func (s *stored) prune(ctx context.Context) error {
	dir := filepath.Join(s.path, "_versions")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	old := map[uint64]string{}
	var latest uint64
	for _, entry := range entries {
		if v, _, ok := manifest.ParseName(entry.Name()); ok {
			old[v] = entry.Name()
			latest = max(latest, v)
		}
	}
	delete(old, latest)
	for _, name := range old {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	unreferred, err := s.orphans(ctx)
	if err != nil {
		return err
	}
	for _, path := range unreferred {
		if err := os.Remove(filepath.Join(s.path, filepath.FromSlash(path))); err != nil {
			return err
		}
	}
	return nil
}

func (s *stored) index(ctx context.Context, n int) (bool, error) {
	if s.builder == nil {
		return false, nil
	}
	return s.builder.build(ctx, n)
}

func (s *stored) ask(ctx context.Context, live map[int64]int64, dead []int64) (string, error) {
	if s.builder == nil {
		return "", nil
	}
	return s.builder.ask(ctx, live, dead)
}

func (s *stored) close() error {
	var errs []error
	for _, e := range s.engines {
		errs = append(errs, e.Close())
	}
	for _, session := range s.sessions {
		errs = append(errs, session.Close())
	}
	if s.builder != nil {
		errs = append(errs, s.builder.close())
	}
	return errors.Join(errs...)
}
