package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// An engine of another kind mounts the commands in its own binary, and they work
// on its tables.
func TestCommandsCanBeMountedByAnotherEngine(t *testing.T) {
	schema := table.Schema{Fields: []table.Field{{ID: 0, Name: "n", Type: arrow.PrimitiveTypes.Int64}}}
	engine := memengine.New("numbers", schema)
	for _, rows := range []string{`[{"n":1},{"n":2}]`, `[{"n":3}]`, `[{"n":4}]`} {
		rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema.Arrow(), strings.NewReader(rows))
		require.NoError(t, err)
		require.NoError(t, engine.Append(t.Context(), rec))
		rec.Release()
	}
	require.NoError(t, engine.DeleteRows(t.Context(), table.NewRowAddr(0, 0)))

	stdin := "0:1\n0:0\n"
	run := func(args ...string) string {
		t.Helper()
		var stdout, stderr bytes.Buffer
		root := &cobra.Command{Use: "numbersctl"}
		root.AddCommand(cli.New(cli.Options{
			Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
			Open: func(_ context.Context, location string) (table.Engine, error) {
				require.Equal(t, "numbers", location)
				return engine, nil
			},
		}))
		root.SetArgs(append([]string{"rehome"}, args...))
		require.NoError(t, root.ExecuteContext(t.Context()), "%s", stderr.String())
		require.Empty(t, stderr.String())
		return stdout.String()
	}
	require.Contains(t, run("inspect", "numbers"), "would make 1 fragment out of 3 and drop 1 deleted row")
	require.Contains(t, run("plan", "numbers"), "0-2")
	var report struct {
		Committed bool
		FRI       struct{ Published bool }
	}
	require.NoError(t, json.Unmarshal([]byte(run("compact", "numbers", "--json")), &report))
	require.True(t, report.Committed)
	require.True(t, report.FRI.Published, "an engine of one's own wants every change of address recorded")
	require.Equal(t, "0:1\tmoved\t3:0\n0:0\tdeleted\n", run("translate", "numbers", "-"))
	require.Equal(t, "{\"n\":2}\n{\"n\":3}\n{\"n\":4}\n", run("scan", "numbers"))
	require.Contains(t, run("verify", "numbers", "--deep"), "No problems.")
	require.Contains(t, run("fri", "numbers"), "1 transition")
	require.Contains(t, run("delete", "numbers", "--where", "n = 2"), "1 deleted")
	require.Contains(t, run("update", "numbers", "--where", "n > 3", "--set", "n = n * 10"), "1 updated")
	stdin = "{\"n\":3}\n{\"n\":5}\n"
	require.Contains(t, run("upsert", "numbers", "-", "--on", "n", "--when-matched", "nothing"), "1 inserted")
	require.Equal(t, "{\"n\":3}\n{\"n\":40}\n{\"n\":5}\n", run("scan", "numbers"))
}
