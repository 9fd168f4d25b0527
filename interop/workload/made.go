package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// Made says what a table that a [History] made must hold, version by version.
type Made struct {
	Table        string    `json:"table"`
	Engine       string    `json:"engine"`
	DataFormat   string    `json:"data_format,omitempty"`
	StableRowIDs bool      `json:"stable_row_ids"`
	Seed         uint64    `json:"seed"`
	Rows         int       `json:"rows"`
	Fragments    int       `json:"fragments"`
	Unfiltered   bool      `json:"unfiltered,omitempty"`
	Versions     []Version `json:"versions"`
}

// Version is what one version holds.
type Version struct {
	Version uint64 `json:"version"`
	// Step is the change that made it.
	Step    string          `json:"step"`
	Rows    int             `json:"rows"`
	Columns []VersionColumn `json:"columns"`
}

// VersionColumn is a column of a version.
type VersionColumn struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Digest Digest `json:"digest"`
	// Blob says that the digest is of the blobs' bytes, for which queries have to ask.
	Blob bool `json:"blob,omitempty"`
}

// made computes the digests of all versions, a fragment at a time.
func (h History) made(ctx context.Context, engine string, states []*state) (Made, error) {
	m := Made{Table: h.Name, Engine: engine, DataFormat: h.DataFormat, StableRowIDs: h.StableRowIDs, Seed: h.Seed, Rows: h.Rows, Fragments: h.Fragments,
		Unfiltered: h.Unfiltered}
	for _, s := range states {
		v := Version{Version: s.version, Step: s.step, Columns: make([]VersionColumn, len(s.columns))}
		for i, c := range s.columns {
			v.Columns[i] = VersionColumn{Name: c.field.Name, Type: c.field.Type.String(), Blob: c.blob}
		}
		m.Versions = append(m.Versions, v)
	}
	per := h.perFragment()
	for first := 0; first < h.Rows/per*per; first += per {
		if err := ctx.Err(); err != nil {
			return m, err
		}
		if err := m.addFragment(states, first, per); err != nil {
			return m, fmt.Errorf("workload: table %s: %w", h.Name, err)
		}
	}
	return m, nil
}

// addFragment adds the rows of one fragment to every version that has them.
func (m *Made) addFragment(states []*state, first, n int) error {
	rowIDs := ids(first, n).(*array.Int64)
	defer rowIDs.Release()
	known := map[*shape][]Digest{}
	for i, s := range states {
		if s.rows <= first {
			continue
		}
		dead := make([]bool, n)
		for k := range dead {
			if dead[k] = s.isDead(int64(first + k)); !dead[k] {
				m.Versions[i].Rows++
			}
		}
		for c, column := range s.columns {
			hashes, ok := known[column]
			if !ok {
				var err error
				if hashes, err = column.hash(rowIDs, first, n); err != nil {
					return fmt.Errorf("column %q: %w", column.field.Name, err)
				}
				known[column] = hashes
			}
			sum := &m.Versions[i].Columns[c].Digest
			for k, h := range hashes {
				if !dead[k] {
					sum.add(h)
				}
			}
		}
	}
	return nil
}

func (c *shape) hash(rowIDs *array.Int64, first, n int) ([]Digest, error) {
	values := c.at(first, n)
	defer values.Release()
	if c.shown != nil {
		shown := c.shown(values)
		defer shown.Release()
		return hashRows(rowIDs, shown)
	}
	return hashRows(rowIDs, values)
}

// Latest is the last version that was made.
func (m Made) Latest() Version { return m.Versions[len(m.Versions)-1] }

// Blobs says whether the version has columns of blobs.
func (v Version) Blobs() bool {
	return slices.ContainsFunc(v.Columns, func(c VersionColumn) bool { return c.Blob })
}

// Check compares what was read with the version. Columns of blobs may be left out of
// what was read.
func (v Version) Check(got Digests) error {
	var errs []error
	if got.Rows != v.Rows {
		errs = append(errs, fmt.Errorf("%d rows, want %d", got.Rows, v.Rows))
	}
	named := 0
	for _, c := range v.Columns {
		d, ok := got.Columns[c.Name]
		if ok {
			named++
		}
		switch {
		case !ok && c.Blob, v.Rows == 0 && got.Rows == 0:
		case !ok:
			errs = append(errs, fmt.Errorf("no column %q", c.Name))
		case d != c.Digest:
			errs = append(errs, fmt.Errorf("column %q (%s) holds other values: digest %s, want %s", c.Name, c.Type, d, c.Digest))
		}
	}
	if named < len(got.Columns) {
		errs = append(errs, fmt.Errorf("%d columns that there should not be", len(got.Columns)-named))
	}
	if len(errs) > 0 {
		return fmt.Errorf("version %d (%s): %w", v.Version, v.Step, errors.Join(errs...))
	}
	return nil
}

// madeFile is where a table's Made lies, beside the table.
const madeFile = "made.json"

// Save writes m beside the table at path.
func (m Made) Save(path string) error {
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(filepath.Dir(path), madeFile), append(b, '\n'), 0o644)
}

// LoadMade reads what was saved beside the table at path.
func LoadMade(path string) (m Made, err error) {
	b, err := os.ReadFile(filepath.Join(filepath.Dir(path), madeFile))
	if err != nil {
		return m, err
	}
	if err = json.Unmarshal(b, &m); err == nil && len(m.Versions) == 0 {
		err = errors.New("it has no versions")
	}
	if err != nil {
		return m, fmt.Errorf("workload: %s of %s: %w", madeFile, path, err)
	}
	return m, nil
}
