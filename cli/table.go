package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// opened is an open table at one version.
type opened struct {
	engine   table.Engine
	snapshot *table.Snapshot
}

// load opens the table at a location and reads one version, 0 for the latest. The
// caller closes it.
func (a *app) load(ctx context.Context, location string, version uint64) (*opened, error) {
	engine, err := a.open(ctx, location)
	if err != nil {
		return nil, err
	}
	s := &opened{engine: engine}
	if s.snapshot, err = engine.Load(ctx, version); err != nil {
		return nil, errors.Join(err, s.close())
	}
	a.logger().Debug("loaded", "table", s.snapshot.Table, "version", s.snapshot.Version, "fragments", len(s.snapshot.Fragments))
	return s, nil
}

func (a *app) open(ctx context.Context, location string) (table.Engine, error) {
	if strings.TrimSpace(location) == "" {
		return nil, usagef("the table's location is empty")
	}
	return a.openTable(ctx, location)
}

// close closes the engine, if it is of the kind that is closed.
func (s *opened) close() error { return closeEngine(s.engine) }

func closeEngine(e table.Engine) error {
	if c, ok := table.As[io.Closer](e); ok {
		return c.Close()
	}
	return nil
}

// openLance is the default of Options.Open.
func openLance(ctx context.Context, location string) (table.Engine, error) {
	return lance.Open(ctx, location, lance.Options{})
}

// versionUsage is the help of the --version of the commands that read.
const versionUsage = "read version `N` instead of the latest"

// fieldNames gives the dotted names of fields by id; ids that the schema does not
// have are left out.
func fieldNames(schema table.Schema, ids []int32) []string {
	paths := map[int32]string{}
	var walk func(prefix string, fields []table.Field)
	walk = func(prefix string, fields []table.Field) {
		for _, f := range fields {
			paths[f.ID] = prefix + f.Name
			walk(prefix+f.Name+".", f.Children)
		}
	}
	walk("", schema.Fields)
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		if name, ok := paths[id]; ok {
			names = append(names, name)
		}
	}
	return names
}

func fragmentIDs(s *table.Snapshot) []table.FragmentID {
	ids := make([]table.FragmentID, len(s.Fragments))
	for i, f := range s.Fragments {
		ids[i] = f.ID
	}
	return ids
}
