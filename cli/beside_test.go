package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// watched is a Lance engine beside whose work something happens.
type watched struct {
	*lance.Engine
	rewriting func() // when a rewrite has done some bytes
	rewritten func() // when a rewrite is done
	commit    func() // when all is ready to be committed
	committed func() // when it was
}

func (e *watched) RewriteGroup(ctx context.Context, req table.RewriteRequest) (table.Written, error) {
	inner := req.Progress
	req.Progress = func(read, written uint64) {
		if e.rewriting != nil {
			e.rewriting()
		}
		if inner != nil {
			inner(read, written)
		}
	}
	w, err := e.Engine.RewriteGroup(ctx, req)
	if e.rewritten != nil {
		e.rewritten()
	}
	return w, err
}

func (e *watched) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	if e.commit != nil {
		e.commit()
	}
	s, err := e.Engine.Commit(ctx, p)
	if err == nil && e.committed != nil {
		e.committed()
	}
	return s, err
}

// compact runs the command over the engine and returns its exit code and document.
func (e *watched) compact(ctx context.Context, t *testing.T, location string, args ...string) (int, map[string]any) {
	t.Helper()
	return e.command(ctx, t, "", append([]string{"compact", location}, args...)...)
}

// command runs a command over the engine, whatever its table is.
func (e *watched) command(ctx context.Context, t *testing.T, stdin string, args ...string) (int, map[string]any) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.Run(ctx, cli.Options{
		Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
		Open: func(ctx context.Context, location string) (_ table.Engine, err error) {
			// Not to be refused at once: opening is not what is tested here.
			e.Engine, err = lance.Open(context.WithoutCancel(ctx), location, lance.Options{})
			return e, err
		},
	}, append(args, "--json"))
	require.Empty(t, stderr.String())
	var doc map[string]any
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &doc), "%s", stdout.String())
	return code, doc
}

func goldenCopy(t *testing.T, name string) string {
	t.Helper()
	location := filepath.Join(t.TempDir(), name+".lance")
	require.NoError(t, os.CopyFS(location, os.DirFS(filepath.Join(goldenDir, name, "t.lance"))))
	return location
}

// Wherever a compaction is interrupted, every file of the table is as it was, and
// there is none more.
func TestCtrlCLeavesTheTableAsItWas(t *testing.T) {
	for name, place := range map[string]func(*watched, func()){
		"before anything":              func(_ *watched, press func()) { press() },
		"in the middle of the rewrite": func(e *watched, press func()) { e.rewriting = press },
		"after the rewrite":            func(e *watched, press func()) { e.rewritten = press },
		"at the commit":                func(e *watched, press func()) { e.commit = press },
	} {
		t.Run(name, func(t *testing.T) {
			location := goldenCopy(t, "many_small_fragments")
			before, err := treeHash(location)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var e watched
			place(&e, cancel)

			code, doc := e.compact(ctx, t, location)
			require.Equal(t, cli.ExitFailed, code)
			require.Equal(t, map[string]any{"error": map[string]any{
				"kind": "interrupted", "message": "interrupted; the table is as it was",
			}}, doc)
			after, err := treeHash(location)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

// other is another writer's engine on the same table.
func other(t *testing.T, location string) *lance.Engine {
	t.Helper()
	e, err := lance.Open(t.Context(), location, lance.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

func TestACommitOfOthersThatDoesNotMatterIsCarriedOver(t *testing.T) {
	location := goldenCopy(t, "with_deletions_small")
	writer := other(t, location)
	e := watched{rewritten: func() {
		_, err := writer.ReserveFragments(t.Context(), 3)
		require.NoError(t, err)
	}}
	code, doc := e.compact(t.Context(), t, location)
	require.Equal(t, cli.ExitDone, code, "%v", doc)
	require.Equal(t, true, doc["committed"])
	require.Equal(t, 4.0, doc["read_version"])
	require.Equal(t, []any{5.0}, doc["rebased_over"])
	require.Equal(t, 6.0, doc["version"])
}

func TestRowsDeletedMeanwhileAreCarriedOver(t *testing.T) {
	location := goldenCopy(t, "with_deletions_small")
	writer := other(t, location)
	e := watched{rewritten: func() {
		_, err := writer.DeleteRows(t.Context(), table.NewRowAddr(0, 0), table.NewRowAddr(1, 0))
		require.NoError(t, err)
	}}
	code, doc := e.compact(t.Context(), t, location)
	require.Equal(t, cli.ExitDone, code, "%v", doc)
	require.Equal(t, true, doc["committed"])
	require.Equal(t, []any{5.0}, doc["rebased_over"])
	require.Equal(t, 2.0, doc["rows_carried"])
}

func TestAConflictLeavesNothingBehindAndCanBeTriedAgain(t *testing.T) {
	location := goldenCopy(t, "with_deletions_small")
	before := dataFiles(t, location)
	var added []string
	e := watched{rewritten: func() {
		mine := dataFiles(t, location)
		// Somebody else compacts the same fragments.
		code, _ := new(watched).compact(t.Context(), t, location)
		require.Equal(t, cli.ExitDone, code)
		for _, f := range dataFiles(t, location) {
			if !slices.Contains(mine, f) {
				added = append(added, f)
			}
		}
		writer := other(t, location)
		s, err := writer.Load(t.Context(), 0)
		require.NoError(t, err)
		_, err = writer.DeleteRows(t.Context(), table.NewRowAddr(s.Fragments[0].ID, 0))
		require.NoError(t, err)
	}}
	code, doc := e.compact(t.Context(), t, location)
	require.Equal(t, cli.ExitConflict, code, "%v", doc)
	require.Equal(t, "conflict", doc["error"].(map[string]any)["kind"])
	require.Contains(t, doc["error"].(map[string]any)["message"], "run the command again")
	require.ElementsMatch(t, append(before, added...), dataFiles(t, location), "what was written in vain is gone")

	code, doc = new(watched).compact(t.Context(), t, location, "--deletion-threshold", "0.0001")
	require.Equal(t, cli.ExitDone, code, "%v", doc)
	require.Equal(t, true, doc["committed"])
}

func dataFiles(t *testing.T, location string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(location, "data", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}
