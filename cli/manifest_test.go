package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
	"github.com/rehome-db/rehome/internal/testtable"
	"github.com/rehome-db/rehome/lance/manifest"
)

// doctored copies a golden table and changes its latest manifest.
func doctored(t *testing.T, name string, change func(*manifest.Contents)) string {
	t.Helper()
	location := testtable.Get(t, name).Copy(t)
	files, err := filepath.Glob(filepath.Join(location, "_versions", "*.manifest"))
	require.NoError(t, err)
	latest := slices.Min(files) // names count down
	b, err := os.ReadFile(latest)
	require.NoError(t, err)
	c, err := manifest.Decode(b)
	require.NoError(t, err)
	change(c)
	b, err = c.Encode()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(latest, b, 0o644))
	return location
}

// errorOf runs a command that must fail and leave the table alone, and returns the
// exit code and the error document.
func errorOf(t *testing.T, location string, args ...string) (code int, kind, message string) {
	t.Helper()
	before, err := treeHash(location)
	require.NoError(t, err)
	code, out := run(t, append(args, location, "--json")...)
	var doc struct {
		Error struct{ Kind, Message string }
	}
	require.NoError(t, json.Unmarshal(out, &doc), "%s", out)
	after, err := treeHash(location)
	require.NoError(t, err)
	require.Equal(t, before, after)
	return code, doc.Error.Kind, doc.Error.Message
}

const unknownFlag = 1 << 40

func TestAnUnknownReaderFlagRefusesEverything(t *testing.T) {
	location := doctored(t, "with_deletions_small", func(c *manifest.Contents) { c.Manifest.ReaderFeatureFlags |= unknownFlag })
	for _, command := range []string{"inspect", "scan", "plan", "compact", "fri", "verify"} {
		code, kind, message := errorOf(t, location, command)
		require.Equal(t, cli.ExitDamaged, code, command)
		require.Equal(t, "unsupported", kind)
		require.Contains(t, message, "flag")
	}
	code, _ := run(t, "scan", location, "--version", "1")
	require.Zero(t, code, "older versions do not have the flag")
}

func TestAnUnknownWriterFlagRefusesOnlyWriting(t *testing.T) {
	location := doctored(t, "with_deletions_small", func(c *manifest.Contents) { c.Manifest.WriterFeatureFlags |= unknownFlag })
	for _, command := range []string{"inspect", "scan", "verify"} {
		code, _ := run(t, command, location)
		require.Zero(t, code, command)
	}
	code, kind, message := errorOf(t, location, "compact")
	require.Equal(t, cli.ExitDamaged, code)
	require.Equal(t, "unsupported", kind)
	require.Contains(t, message, "flag")
}

func TestADamagedReuseIndexIsReportedAndDoesNotHideTheRest(t *testing.T) {
	location := doctored(t, "fri_handmade", func(c *manifest.Contents) {
		for _, x := range c.Indexes.Indices {
			if x.GetName() == "__lance_frag_reuse" {
				details := x.IndexDetails.Value
				details[3] = 0x0d // a field of another wire type: nothing can be said of the rest
			}
		}
	})
	code, out := run(t, "inspect", location, "--json")
	require.Zero(t, code)
	require.Contains(t, string(out), "the fragment reuse index cannot be read")
	code, out = run(t, "verify", location, "--json")
	require.Equal(t, cli.ExitDamaged, code)
	require.Contains(t, string(out), `"kind": "fri"`)
	for _, args := range [][]string{{"fri"}, {"compact"}, {"plan"}} {
		code, kind, _ := errorOf(t, location, args...)
		require.Equal(t, cli.ExitDamaged, code, "%v", args)
		require.Equal(t, "corrupt", kind)
	}
	code, _ = run(t, "scan", location)
	require.Zero(t, code, "rows do not depend on it")
}

// One transition that is damaged is set aside, and nothing stops for it.
func TestReport15ADamagedTransitionDoesNotStopAnything(t *testing.T) {
	location := doctored(t, "fri_handmade", func(c *manifest.Contents) {
		for _, x := range c.Indexes.Indices {
			if x.GetName() == "__lance_frag_reuse" {
				details := x.IndexDetails.Value
				details[len(details)/2] ^= 0xff // in the bitmap
			}
		}
	})
	code, out := run(t, "inspect", location, "--json")
	require.Zero(t, code)
	require.Contains(t, string(out), "rehome trim --drop-damaged drops")
	code, out = run(t, "verify", location, "--json")
	require.Equal(t, cli.ExitDamaged, code)
	require.Contains(t, string(out), `"kind": "fri"`)
	for _, args := range [][]string{{"fri"}, {"plan"}, {"trim", "--dry-run"}, {"translate", "0:1"}, {"compact", "--fri", "never"}, {"scan"}} {
		code, out := run(t, append([]string{args[0], location}, args[1:]...)...)
		require.Zero(t, code, "%v: %s", args, out)
	}
	code, out = run(t, "trim", location, "--drop-damaged", "--json")
	require.Zero(t, code, string(out))
	code, out = run(t, "verify", location, "--json", "--deep")
	require.Zero(t, code, string(out))
	// Nobody answers through it any more, so the indexes claim what it rewrote, which
	// is gone, and not what came of it.
	code, out = run(t, "inspect", location, "--json")
	require.Zero(t, code)
	require.Contains(t, string(out), `"covered_fragments": []`)
}

// What is said of the year 12345 stops no command.
func TestReport11ATimestampBeyondTheYear9999(t *testing.T) {
	location := doctored(t, "with_deletions_small", func(c *manifest.Contents) { c.Manifest.Timestamp.Seconds = 327403400000 })
	for _, args := range [][]string{{"inspect"}, {"verify", "--orphans"}, {"plan"}, {"scan"}, {"compact"}} {
		for _, form := range []string{"--json", "--json=false"} {
			code, out := run(t, append([]string{args[0], location, form}, args[1:]...)...)
			require.Zero(t, code, "%v %s: %s", args, form, out)
		}
	}
	code, out := run(t, "inspect", location, "--json", "--version", "4")
	require.Zero(t, code)
	require.Contains(t, string(out), `"12345-01-`)
}
