package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/table"
)

// TestReport13DryRunOnAReadOnlyTable: --dry-run of the row changes works where nothing
// can be written, and tries to write nothing.
func TestReport13DryRunOnAReadOnlyTable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t.lance")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(goldenDir, "ints_basic", "t.lance"))))
	run := func(args ...string) (string, string, int) {
		var stdout, stderr bytes.Buffer
		refused := 0
		code := cli.Run(t.Context(), cli.Options{
			Stdin: strings.NewReader(`{"id": 3}` + "\n" + `{"id": 5000}` + "\n"), Stdout: &stdout, Stderr: &stderr,
			Open: func(ctx context.Context, location string) (table.Engine, error) {
				local, err := store.NewLocal(location)
				if err != nil {
					return nil, err
				}
				return lance.OpenStore(ctx, fault.New(local, func(op fault.Op) fault.Action {
					if fault.Writes(op) {
						refused++
						return fault.Before
					}
					return fault.Pass
				}), lance.Options{})
			},
		}, args)
		if strings.Contains(strings.Join(args, " "), "--dry-run") {
			require.Zero(t, refused, "%v", args)
		}
		return stdout.String(), stderr.String(), code
	}
	for would, args := range map[string][]string{
		"10 updated":            {"update", dir, "--where", "id < 10", "--set", "id = id + 1000"},
		"10 deleted":            {"delete", dir, "--where", "id < 10"},
		"1 updated, 1 inserted": {"upsert", dir, "-", "--on", "id"},
	} {
		stdout, stderr, code := run(append(args, "--dry-run")...)
		require.Zero(t, code, stderr)
		require.Contains(t, stdout, would)
		_, _, code = run(args...)
		require.NotZero(t, code, "the store refuses writes")
	}
}
