package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
	"github.com/rehome-db/rehome/table"
)

// mounted is another engine's program with the commands below its own.
type mounted struct{ out, errs bytes.Buffer }

func (m *mounted) run(t *testing.T, args ...string) error {
	t.Helper()
	engine, err := numbers()
	require.NoError(t, err)
	m.out.Reset()
	m.errs.Reset()
	root := &cobra.Command{Use: "numbersctl", SilenceErrors: true, SilenceUsage: true}
	root.SetOut(&m.out)
	root.SetErr(&m.errs)
	root.AddCommand(cli.New(cli.Options{
		Stdout: &m.out, Stderr: &m.errs, Name: "tables", Tables: "number tables", Location: "numbers",
		Open: func(_ context.Context, location string) (table.Engine, error) {
			if location != "numbers" {
				return nil, table.ErrNotTable
			}
			return engine, nil
		},
	}))
	root.SetArgs(append([]string{"tables"}, args...))
	return root.ExecuteContext(t.Context())
}

// Whatever goes wrong, the mounting program is told and nothing printed, but for the
// JSON document where it was asked for.
func TestReport20MountedCommandsLeaveErrorsToTheirProgram(t *testing.T) {
	for _, c := range []struct {
		args []string
		kind string
		code int
	}{
		{[]string{"compact", "letters"}, "not_a_table", 4},
		{[]string{"compact"}, "usage", 2},
		{[]string{"inspct", "numbers"}, "usage", 2},
		{[]string{"scan", "numbers", "--colums", "n"}, "usage", 2},
		{[]string{"scan", "numbers", "--version", "99"}, "not_found", 1},
		{[]string{"completion", "nope"}, "usage", 2},
		{[]string{"help", "nope"}, "usage", 2},
		{[]string{"compact", "numbers", "--deletion-threshold", "50"}, "usage", 2},
		{[]string{"demo"}, "usage", 2}, // it would make a Lance table
	} {
		var m mounted
		err := m.run(t, c.args...)
		require.Error(t, err, "%v", c.args)
		require.Equal(t, c.kind, cli.Kind(err), "%v", c.args)
		require.Equal(t, c.code, cli.ExitCode(err), "%v", c.args)
		require.False(t, cli.Reported(err), "%v", c.args)
		require.Empty(t, m.out.String(), "%v", c.args)
		require.Empty(t, m.errs.String(), "%v", c.args)

		err = m.run(t, append([]string{"--json"}, c.args...)...)
		require.Equal(t, c.code, cli.ExitCode(err), "%v", c.args)
		require.True(t, cli.Reported(err), "%v", c.args)
		require.Empty(t, m.errs.String(), "%v", c.args)
		var doc struct {
			Error struct{ Kind, Message string } `json:"error"`
		}
		require.NoError(t, json.Unmarshal(m.out.Bytes(), &doc), "%v: %s", c.args, m.out.String())
		require.Equal(t, c.kind, doc.Error.Kind, "%v", c.args)
		require.NotRegexp(t, `rehome|Lance|lance|_versions`, doc.Error.Message, "%v", c.args)
	}
}

func TestReport20MountedCommandsSpeakOfTheirProgram(t *testing.T) {
	var m mounted
	lines := [][]string{
		{"inspect", "numbers"}, {"plan", "numbers"}, {"verify", "numbers"}, {"fri", "numbers"}, {"trim", "numbers"}, {"compact", "numbers"}, {"--help"},
	}
	for _, name := range []string{"inspect", "plan", "compact", "verify", "scan", "delete", "update", "upsert", "fri", "translate", "trim"} {
		lines = append(lines, []string{name, "--help"}, []string{"help", name})
	}
	for _, args := range lines {
		require.NoError(t, m.run(t, args...), "%v", args)
		require.Empty(t, m.errs.String())
		require.NotEmpty(t, m.out.String(), "%v", args)
		require.NotRegexp(t, `rehome|Lance|\.lance`, m.out.String(), "%v", args)
	}
	require.NoError(t, m.run(t, "plan", "numbers"))
	require.Contains(t, m.out.String(), "`numbersctl tables compact` does it")
	require.NoError(t, m.run(t, "--help"))
	require.Contains(t, m.out.String(), "compacts number tables")
	require.Contains(t, m.out.String(), "numbersctl tables compact numbers")
	err := m.run(t, "compac", "numbers")
	require.EqualError(t, err, `unknown command "compac", did you mean compact? (see numbersctl tables --help)`)
}

// A program without commands of its own reports as the standalone one does.
func TestReport20ReportPrintsAnErrorOnce(t *testing.T) {
	var out, errs bytes.Buffer
	opts := cli.Options{Stdout: &out, Stderr: &errs, Name: "numbersctl"}
	cli.Report(opts, table.Conflictf("version 3 is taken"), nil)
	require.Equal(t, "numbersctl: version 3 is taken; run the command again: it starts from the table's current version\n", errs.String())
	require.Empty(t, out.String())
	errs.Reset()
	cli.Report(opts, table.Conflictf("version 3 is taken"), []string{"compact", "--json"})
	require.JSONEq(t, `{"error":{"kind":"conflict","message":"version 3 is taken; run the command again: it starts from the table's current version"}}`, out.String())
	require.Empty(t, errs.String())
	out.Reset()
	cli.Report(opts, nil, nil)
	require.Empty(t, out.String()+errs.String())
}

// A panic of an engine is an error like any other for the mounting program, which goes on.
func TestReport20APanicIsAnError(t *testing.T) {
	var out, errs bytes.Buffer
	root := &cobra.Command{Use: "numbersctl", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(cli.New(cli.Options{
		Stdout: &out, Stderr: &errs, Name: "tables",
		Open: func(context.Context, string) (table.Engine, error) { panic("the engine is broken") },
	}))
	for _, args := range [][]string{{"inspect", "x"}, {"compact", "x"}, {"verify", "x"}, {"scan", "x"}} {
		root.SetArgs(append([]string{"tables"}, args...))
		err := root.ExecuteContext(t.Context())
		require.ErrorContains(t, err, "the engine is broken", "%v", args)
		require.Equal(t, "failed", cli.Kind(err))
		require.Equal(t, cli.ExitFailed, cli.ExitCode(err))
		require.Empty(t, out.String()+errs.String())
	}
}
