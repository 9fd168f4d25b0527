package cli_test

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
)

var update = flag.Bool("update", false, "write the demo's output into README.md")

// alike leaves out of a transcript what is another in every run: the numbers, and how
// wide they make the columns.
func alike(transcript []byte) string {
	numbers := regexp.MustCompile(`\d[\d,]*`).ReplaceAll(transcript, []byte("N"))
	return string(regexp.MustCompile(`  +`).ReplaceAll(numbers, []byte("  ")))
}

// The transcript in the README is a real run: only the numbers and the temporary
// directory are others every time.
func TestREADMEShowsWhatTheDemoPrints(t *testing.T) {
	t.Setenv("COLUMNS", "120") // no line of it is broken: where would depend on times and paths
	var stdout, stderr bytes.Buffer
	require.Zero(t, cli.Run(t.Context(), cli.Options{Stdout: &stdout, Stderr: &stderr}, []string{"demo"}), "%s", stderr.String())
	require.Empty(t, stderr.String())
	transcript := regexp.MustCompile(`\S*rehome-demo-\d+`).ReplaceAll(stdout.Bytes(), []byte("rehome-demo"))
	want := "$ go run ./cmd/rehome demo\n" + string(transcript)

	const path = "../README.md"
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
	require.Equal(t, alike([]byte(want)), alike(found[2]), "run go test ./cli -run TestREADME -update")
}
