//go:build unix

package cli_test

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
)

// TestReport12SignalsCleanUp: whatever asks the process to stop, the table is as it was
// and no file is left.
func TestReport12SignalsCleanUp(t *testing.T) {
	for name, s := range map[string]syscall.Signal{"SIGHUP": syscall.SIGHUP, "SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			location := goldenCopy(t, "many_small_fragments")
			before, err := treeHash(location)
			require.NoError(t, err)
			// The source is a pipe that never ends: the upsert waits for it.
			r, w, err := os.Pipe()
			require.NoError(t, err)
			defer w.Close()
			defer r.Close()
			cmd := exec.Command("rehome", "upsert", location, "-", "--on", "id", "--json")
			cmd.Stdin = r
			deliverable(t, s)
			require.NoError(t, cmd.Start())
			// More than a pipe holds: when it is written, the program is reading, and
			// has taken charge of its signals before that.
			_, err = w.WriteString(`{"s":"` + strings.Repeat("x", 128<<10))
			require.NoError(t, err)
			require.NoError(t, cmd.Process.Signal(s))
			err = cmd.Wait() // though the pipe is still open
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			require.Equal(t, 1, exit.ExitCode(), "it ended by itself")
			after, err := treeHash(location)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

// deliverable makes sure that a signal is not ignored, as SIGHUP is below nohup: the
// program leaves it so, and children inherit it.
func deliverable(t *testing.T, s os.Signal) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, s)
	t.Cleanup(func() { signal.Stop(c) })
}

// TestReport12ASignalInTheMiddleOfARewrite: the process is asked to stop when it has written some
// of a new file.
func TestReport12ASignalInTheMiddleOfARewrite(t *testing.T) {
	for name, s := range map[string]syscall.Signal{"SIGHUP": syscall.SIGHUP, "SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			location := goldenCopy(t, "many_small_fragments")
			before, err := treeHash(location)
			require.NoError(t, err)
			deliverable(t, s)
			ctx, stop := cli.NotifyContext(t.Context())
			defer stop()
			written := false
			e := &watched{}
			e.rewriting = func() {
				now, err := treeHash(location)
				if ctx.Err() != nil || err != nil || now == before {
					return
				}
				written = true
				if err := syscall.Kill(os.Getpid(), s); err == nil {
					<-ctx.Done()
				}
			}
			code, doc := e.compact(ctx, t, location, "--threads", "1")
			require.True(t, written, "it was stopped in a rewrite")
			require.Equal(t, cli.ExitFailed, code, "%v", doc)
			require.Equal(t, "interrupted", doc["error"].(map[string]any)["kind"])
			after, err := treeHash(location)
			require.NoError(t, err)
			require.Equal(t, before, after, "no file is left")
		})
	}
}

// TestReport12ABrokenPipeCleansUp: the log goes to a pipe that nobody reads.
func TestReport12ABrokenPipeCleansUp(t *testing.T) {
	location := goldenCopy(t, "many_small_fragments")
	before, err := treeHash(location)
	require.NoError(t, err)
	r, w, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, r.Close())
	cmd := exec.Command("rehome", "-v", "compact", location)
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	err = cmd.Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode(), "it ended by itself")
	after, err := treeHash(location)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
