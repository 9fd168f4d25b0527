package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
)

// The short form of the command.
func TestReport08DamagedInputs(t *testing.T) {
	c, err := newCampaign(8)
	require.NoError(t, err)
	require.NoError(t, c.run(t.Context(), 400))
	require.NotZero(t, c.codes[cli.ExitDone], "damage that changes no row is no damage")
	require.NotZero(t, c.codes[cli.ExitFailed])
	t.Log(c)
}

// Undamaged, they are taken.
func TestSeedsAreTaken(t *testing.T) {
	c, err := newCampaign(1)
	require.NoError(t, err)
	for _, s := range c.seeds {
		file := t.TempDir() + "/rows"
		require.NoError(t, os.WriteFile(file, s.bytes, 0o600))
		m := c.table.Clone()
		code, out := c.command(t.Context(), m, "", "upsert", "t", file, "--on", "id")
		require.Zero(t, code, "%s: %s", s.name, out)
		code, out = c.command(t.Context(), m, "", "verify", "t", "--deep")
		require.Zero(t, code, "%s: %s", s.name, out)
		_, want := c.command(t.Context(), c.table, "", "scan", "t")
		_, got := c.command(t.Context(), m, "", "scan", "t")
		require.Equal(t, want, got, s.name)
	}
}
