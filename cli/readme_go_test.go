package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// readmeLines is what the README shows of the library, word for word.
func readmeLines(ctx context.Context, path string, postings []table.RowAddr) ([]table.RowAddr, error) {
	// README: begin
	e, err := lance.Open(ctx, path, lance.Options{}) // or an engine of your own
	if err != nil {
		return nil, err
	}
	defer e.Close()
	report, err := compaction.Compact(ctx, e, compaction.Options{FRI: compaction.FRIAlways})
	if err != nil {
		return nil, err // table.Classify(err) says whether to run again
	}
	fmt.Println(report.FragmentsRemoved, "fragments became", report.FragmentsAdded)

	s, err := e.Load(ctx, report.Version)
	if err != nil {
		return nil, err
	}
	h, err := fri.Load(ctx, e, s) // where every row went
	if err != nil {
		return nil, err
	}
	live, _, err := remap.Slice(remap.New(h, remap.Options{Current: s}), postings) // addresses that your index stored
	// README: end
	return live, err
}

func TestREADMEShowsGoThatRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t.lance")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(goldenDir, "many_small_fragments", "t.lance"))))
	live, err := readmeLines(t.Context(), dir, []table.RowAddr{table.NewRowAddr(0, 0), table.NewRowAddr(1, 1)})
	require.NoError(t, err)
	require.Len(t, live, 2)
	for _, a := range live {
		require.NotContains(t, []table.FragmentID{0, 1}, a.Fragment(), "it moved")
	}

	source, err := os.ReadFile("readme_go_test.go")
	require.NoError(t, err)
	shown := regexp.MustCompile(`(?s)// README: begin\n(.*?)\t// README: end`).FindSubmatch(source)
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	want := strings.ReplaceAll("\n"+string(shown[1]), "\n\t", "\n")
	require.Contains(t, string(readme), "```go"+want+"```", "the README does not show what is tested here")
}
