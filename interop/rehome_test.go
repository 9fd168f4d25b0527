package interop_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// Exit codes of rehome.
const (
	exitDone        = 0
	exitUsage       = 2
	exitConflict    = 3
	exitUnsupported = 4
)

// run runs the binary under test.
func run(ctx context.Context, args ...string) (code int, stdout, stderr string, err error) {
	return runCommand(ctx, append([]string{rehomeBinary}, args...))
}

func runCommand(ctx context.Context, argv []string) (code int, stdout, stderr string, err error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), out.String(), errs.String(), nil
	}
	return 0, out.String(), errs.String(), err
}

// compactReport is what `rehome compact --json` reports, as far as it matters here.
type compactReport struct {
	Committed        bool     `json:"committed"`
	Version          uint64   `json:"version"`
	ReadVersion      uint64   `json:"read_version"`
	GroupsPublished  int      `json:"groups_published"`
	FragmentsRemoved int      `json:"fragments_removed"`
	FragmentsAdded   int      `json:"fragments_added"`
	RowsWritten      int      `json:"rows_written"`
	RowsCarried      int      `json:"rows_carried"`
	RebasedOver      []uint64 `json:"rebased_over"`
	FRI              struct {
		Published        bool `json:"published"`
		TransitionsAdded int  `json:"transitions_added"`
	} `json:"fri"`
	Indexes []struct{ Name, Action string } `json:"indexes"`
}

// refusal is an exit code other than 0.
type refusal struct {
	code    int
	message string
}

func (r *refusal) Error() string { return fmt.Sprintf("rehome exits %d: %s", r.code, r.message) }

// rehomeCompact runs `rehome compact`.
func rehomeCompact(ctx context.Context, path string, flags ...string) (compactReport, error) {
	return compactWith(ctx, []string{rehomeBinary}, path, flags...)
}

// compactWith is rehomeCompact with the binary started in some way.
func compactWith(ctx context.Context, start []string, path string, flags ...string) (compactReport, error) {
	argv := append(slices.Concat(start, []string{"compact", path, "--json", "--no-progress"}), flags...)
	code, stdout, stderr, err := runCommand(ctx, argv)
	var c compactReport
	switch {
	case err != nil:
		return c, err
	case code != exitDone:
		var doc struct {
			Error struct{ Kind, Message string }
		}
		if json.Unmarshal([]byte(stdout), &doc) == nil && doc.Error.Message != "" {
			return c, &refusal{code, doc.Error.Message}
		}
		return c, &refusal{code, stderr + stdout}
	}
	if err := json.Unmarshal([]byte(stdout), &c); err != nil {
		return c, fmt.Errorf("rehome compact --json printed no JSON document: %w\n%s", err, stdout)
	}
	return c, nil
}

// compactTable runs `rehome compact`, which must commit.
func compactTable(ctx context.Context, t *testing.T, path string, flags ...string) compactReport {
	t.Helper()
	c, err := rehomeCompact(ctx, path, flags...)
	require.NoError(t, err)
	require.True(t, c.Committed)
	return c
}

// rehomeRows reads a table with `rehome scan --raw`, as the rows' JSON in table
// order.
func rehomeRows(ctx context.Context, path string) ([]string, error) {
	code, stdout, stderr, err := run(ctx, "scan", path, "--raw")
	if err != nil {
		return nil, err
	}
	if code != exitDone {
		return nil, &refusal{code, stderr}
	}
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	return slices.DeleteFunc(lines, func(l string) bool { return l == "" }), nil
}

// rehomeCount counts the rows that `rehome scan` prints.
func rehomeCount(ctx context.Context, path string) (int, error) {
	code, stdout, stderr, err := run(ctx, "scan", path, "--columns", "id")
	if err == nil && code != exitDone {
		err = &refusal{code, stderr}
	}
	return strings.Count(stdout, "\n"), err
}

// rehomeVerify runs `rehome verify --deep`.
func rehomeVerify(ctx context.Context, path string) error {
	code, stdout, stderr, err := run(ctx, "verify", path, "--deep", "--json")
	if err != nil {
		return err
	}
	var doc struct {
		OK       bool `json:"ok"`
		Problems []struct{ Kind, Where, Message string }
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
		return fmt.Errorf("rehome verify exits %d and prints no JSON document: %w: %s%s", code, err, stdout, stderr)
	}
	if code != exitDone || !doc.OK {
		return fmt.Errorf("rehome verify exits %d: %+v", code, doc.Problems)
	}
	return nil
}

// withRehome returns the compactor under test. Beside running it, it checks what
// rehome reports and what it sees itself afterwards: the same rows in the same
// order, and a table that verifies.
func (s scenario) withRehome(flags ...string) compactor {
	return func(ctx context.Context, stage string, by *interop.Engine, path string, m *model) (out []finding) {
		add := func(what string, err error) {
			if err != nil {
				out = append(out, finding{stage, "rehome", what, err.Error()})
			}
		}
		before, err := addresses(ctx, path)
		add("order", err)
		c, err := rehomeCompact(ctx, path, flags...)
		if err != nil {
			add("verify", err)
			return out
		}
		add("verify", s.checkReport(c, stage == firstCompaction))
		after, err := addresses(ctx, path)
		add("order", err)
		add("order", sameOrder(before, after))
		add("scan", rehomeScanEquals(ctx, path, m))
		add("verify", rehomeVerify(ctx, path))
		return out
	}
}

// checkReport holds what rehome says it did against what the scenario expects. Only
// the first compaction meets the indexes as the scenario built them; what the
// engines made of them since is their business.
func (s scenario) checkReport(c compactReport, first bool) error {
	switch {
	case !c.Committed || c.FragmentsRemoved < 2 || c.FragmentsAdded < 1:
		return fmt.Errorf("nothing was compacted: %+v", c)
	case c.Version <= c.ReadVersion:
		return fmt.Errorf("version %d after version %d", c.Version, c.ReadVersion)
	case !first:
		return nil
	case c.FRI.Published != s.through:
		return fmt.Errorf("fragment reuse index published: %t, want %t: %+v", c.FRI.Published, s.through, c)
	}
	got := map[string]string{}
	for _, i := range c.Indexes {
		got[i.Name] = i.Action
	}
	for name, action := range s.actions {
		if got[name] != action {
			return fmt.Errorf("index %s: %q, want %q", name, got[name], action)
		}
	}
	return nil
}

// addresses reads every row's address as a stock engine sees it.
func addresses(ctx context.Context, path string) (map[int64]uint64, error) {
	a, err := pylance.Query(ctx, path, interop.Query{Columns: []string{"id", "_rowaddr"}})
	if err != nil {
		return nil, err
	}
	defer a.Release()
	out := map[int64]uint64{}
	for _, b := range a.Batches {
		ids, ok := b.Column(0).(*array.Int64)
		addrs, also := b.Column(1).(*array.Uint64)
		if !ok || !also {
			return nil, fmt.Errorf("columns of an address scan are %s", b.Schema())
		}
		for i := range ids.Len() {
			out[ids.Value(i)] = addrs.Value(i)
		}
	}
	return out, nil
}

// sameOrder says whether the rows of each fragment come in the order that they
// had. Fragments may change places: tables are in the order of fragment ids.
func sameOrder(before, after map[int64]uint64) error {
	ids := slices.SortedFunc(maps.Keys(after), func(a, b int64) int { return cmp.Compare(after[a], after[b]) })
	for i := 1; i < len(ids); i++ {
		a, b := ids[i-1], ids[i]
		if after[a]>>32 == after[b]>>32 && before[a] >= before[b] {
			return fmt.Errorf("rows %d and %d of fragment %d changed places", a, b, after[a]>>32)
		}
	}
	return nil
}

// rehomeScanEquals compares rehome's own scan with the model.
func rehomeScanEquals(ctx context.Context, path string, m *model) error {
	lines, err := rehomeRows(ctx, path)
	if err != nil {
		return err
	}
	want := make([]string, 0, len(m.canon))
	for _, line := range m.canon {
		want = append(want, line)
	}
	slices.Sort(lines)
	slices.Sort(want)
	if len(lines) != len(want) {
		return fmt.Errorf("rehome scan: %d rows, want %d", len(lines), len(want))
	}
	for i := range lines {
		if lines[i] != want[i] {
			return fmt.Errorf("rehome scan: a row is\n  %s, want\n  %s", lines[i], want[i])
		}
	}
	return nil
}
