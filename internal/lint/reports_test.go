package lint

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFieldReportsNameTheirTests: the page names tests that are there, all of them, and
// at least one for each report.
func TestFieldReportsNameTheirTests(t *testing.T) {
	there := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test|Fuzz)(Report\w+)\(`)
	tree := os.DirFS(root)
	require.NoError(t, fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil || d.IsDir():
			if strings.HasPrefix(base, ".") && base != "." {
				return fs.SkipDir
			}
		case strings.HasPrefix(base, "report") && strings.HasSuffix(base, ".txtar"):
			there[base] = true
		case strings.HasSuffix(base, "_test.go"):
			source, err := fs.ReadFile(tree, name)
			if err != nil {
				return err
			}
			for _, m := range declared.FindAllSubmatch(source, -1) {
				there[string(m[1])+string(m[2])] = true
			}
		}
		return err
	}))
	page, err := os.ReadFile(root + "/docs/field-reports.md")
	require.NoError(t, err)
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`((?:Test|Fuzz)Report\\w+|report\\d+\\w*\\.txtar)`").FindAllStringSubmatch(string(page), -1) {
		named[m[1]] = true
		require.True(t, there[m[1]], "the page names %s, which is not there", m[1])
	}
	reports := map[int]bool{}
	for name := range there {
		require.True(t, named[name], "docs/field-reports.md does not name %s", name)
		n, err := strconv.Atoi(regexp.MustCompile(`\d\d`).FindString(name))
		require.NoError(t, err, name)
		reports[n] = true
	}
	require.Len(t, reports, 28)
}
