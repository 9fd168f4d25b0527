package cli_test

import (
	"bytes"
	"context"
	"fmt"
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

// numbers is a table of another engine, with three fragments.
func numbers() (*memengine.Engine, error) {
	schema := table.Schema{Fields: []table.Field{{ID: 0, Name: "n", Type: arrow.PrimitiveTypes.Int64}}}
	engine := memengine.New("numbers", schema)
	for _, rows := range []string{`[{"n":1},{"n":2}]`, `[{"n":3}]`, `[{"n":4}]`} {
		rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema.Arrow(), strings.NewReader(rows))
		if err != nil {
			return nil, err
		}
		err = engine.Append(context.Background(), rec)
		rec.Release()
		if err != nil {
			return nil, err
		}
	}
	return engine, nil
}

// The binary of another engine has the commands for its own tables.
func ExampleNew() {
	engine, err := numbers()
	if err != nil {
		fmt.Println(err)
		return
	}
	root := &cobra.Command{Use: "numbersctl"}
	root.AddCommand(cli.New(cli.Options{
		Open: func(context.Context, string) (table.Engine, error) { return engine, nil },
	}))
	root.SetArgs([]string{"rehome", "scan", "numbers", "--limit", "2"})
	if err := root.Execute(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"n":1}
	// {"n":2}
}

func TestTheCommandsOfAnotherModulesEngine(t *testing.T) {
	engine, err := numbers()
	require.NoError(t, err)
	var out, stderr bytes.Buffer
	opts := cli.Options{Stdout: &out, Stderr: &stderr, Version: "7", Open: func(_ context.Context, location string) (table.Engine, error) {
		if location != "numbers" {
			return nil, table.ErrNotTable
		}
		return engine, nil
	}}
	require.Zero(t, cli.Run(t.Context(), opts, []string{"compact", "numbers"}))
	require.Contains(t, out.String(), "Compacted 3 fragments into 1")
	require.Empty(t, stderr.String())
	require.Equal(t, 4, cli.Run(t.Context(), opts, []string{"compact", "letters"}))
	require.Contains(t, stderr.String(), "not a table")

	root := cli.New(opts)
	root.SetArgs([]string{"scan", "letters"})
	err = root.ExecuteContext(t.Context())
	require.ErrorIs(t, err, table.ErrNotTable)
	require.Equal(t, 4, cli.ExitCode(err))
	require.Equal(t, "not_a_table", cli.Kind(err))

	out.Reset()
	require.Zero(t, cli.Run(t.Context(), opts, []string{"--version"}))
	require.Contains(t, out.String(), "7")
}
