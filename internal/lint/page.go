package lint

import (
	"bytes"
	"fmt"
	"strings"
)

// The block of docs/architecture.md that shows the rules lies between these lines.
const (
	blockBegin = "<!-- rules: from internal/lint/rules.go -->\n"
	blockEnd   = "<!-- end of rules -->\n"
)

// WithRules returns the page with the rules in its block.
func WithRules(page []byte) ([]byte, error) {
	head, rest, began := bytes.Cut(page, []byte(blockBegin))
	_, tail, ended := bytes.Cut(rest, []byte(blockEnd))
	if !began || !ended {
		return nil, fmt.Errorf("lint: the page has no block from %q to %q", strings.TrimSpace(blockBegin), strings.TrimSpace(blockEnd))
	}
	var b bytes.Buffer
	b.Write(head)
	b.WriteString(blockBegin + "| package | may import | its tests also |\n|---|---|---|\n")
	for _, r := range Rules {
		may := strings.Join(shorter(r.May), ", ")
		switch {
		case len(r.May) == 0:
			may = "nothing"
		case r.May[0] == anything:
			may = "anything"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.Package, may, strings.Join(shorter(r.Tests), ", "))
	}
	fmt.Fprintf(&b, "\nAll tests may import %s.\n", strings.Join(shorter(forTests), ", "))
	b.WriteString(blockEnd)
	b.Write(tail)
	return b.Bytes(), nil
}

// shorter leaves the host off the import paths of libraries.
func shorter(paths []string) []string {
	out := make([]string, len(paths))
	for i, p := range paths {
		out[i] = p
		if !std(p) {
			_, out[i], _ = strings.Cut(p, "/")
		}
	}
	return out
}
