package cli_test

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/internal/cli"
)

var update = flag.Bool("update", false, "write the demo's output into README.md")

// The transcript in the README is a real run: only the temporary directory is
// another every time.
func TestREADMEShowsWhatTheDemoPrints(t *testing.T) {
	var stdout, stderr bytes.Buffer
	require.Zero(t, cli.Run(t.Context(), cli.Options{Stdout: &stdout, Stderr: &stderr}, []string{"demo"}), "%s", stderr.String())
	require.Empty(t, stderr.String())
	transcript := regexp.MustCompile(`\S*rehome-demo-\d+`).ReplaceAll(stdout.Bytes(), []byte("/tmp/rehome-demo-1209345"))
	want := "$ go run ./cmd/rehome demo\n" + string(transcript)

	const path = "../../README.md"
	readme, err := os.ReadFile(path)
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)(<!-- demo: [^\n]*\n```\n)(.*?)(```\n)")
	found := block.FindSubmatch(readme)
	require.NotNil(t, found, "the README has no block for the demo")
	if *update {
		readme = block.ReplaceAllFunc(readme, func([]byte) []byte {
			return append(append(bytes.Clone(found[1]), want...), found[3]...)
		})
		require.NoError(t, os.WriteFile(path, readme, 0o644))
		return
	}
	require.Equal(t, want, string(found[2]), "run go test ./internal/cli -run TestREADME -update")
}
