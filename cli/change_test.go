package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
)

// scanLines are the rows of a table as scan prints them, sorted.
func scanLines(t *testing.T, location string) []string {
	t.Helper()
	code, out := run(t, "scan", location)
	require.Zero(t, code)
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	slices.Sort(lines)
	return lines
}

// rowChange is one of the commands that change rows, and what it does to the golden
// table many_small_fragments, whose rows have ids from 0 up.
type rowChange struct {
	args  []string
	stdin string
	// apply does the same to the rows that scan prints.
	apply func(rows []string) []string
}

func rowChanges(location string) map[string]rowChange {
	starts := func(id int) func(string) bool {
		return func(row string) bool { return strings.HasPrefix(row, fmt.Sprintf(`{"id":%d,`, id)) }
	}
	without := func(rows []string, id int) []string { return slices.DeleteFunc(slices.Clone(rows), starts(id)) }
	replaced := func(rows []string, id int) []string {
		return append(without(rows, id), fmt.Sprintf(`{"id":%d,"s":"new"}`, id))
	}
	return map[string]rowChange{
		"delete": {args: []string{"delete", location, "--where", "id = 3"}, apply: func(rows []string) []string { return without(rows, 3) }},
		"update": {args: []string{"update", location, "--where", "id = 3", "--set", "s = 'new'"}, apply: func(rows []string) []string { return replaced(rows, 3) }},
		"upsert": {
			args: []string{"upsert", location, "-", "--on", "id"}, stdin: `{"id":3,"s":"new"}` + "\n" + `{"id":9000,"s":"new"}`,
			apply: func(rows []string) []string { return append(replaced(rows, 3), `{"id":9000,"s":"new"}`) },
		},
	}
}

// requireSound checks what every commit must leave behind: a table without problems
// and no file that nothing refers to.
func requireSound(t *testing.T, location string) {
	t.Helper()
	code, doc := new(watched).command(t.Context(), t, "", "verify", location, "--deep")
	require.Zero(t, code, "%v", doc)
	require.Equal(t, 0.0, doc["checked"].(map[string]any)["orphan_files"])
}

// A change commits while a compaction rewrites the same rows: the compaction carries
// it over.
func TestACompactionCarriesChangesOver(t *testing.T) {
	for name := range rowChanges("") {
		t.Run(name, func(t *testing.T) {
			location := goldenCopy(t, "many_small_fragments")
			change := rowChanges(location)[name]
			want := change.apply(scanLines(t, location))
			var changed map[string]any
			e := watched{rewritten: func() {
				var code int
				code, changed = new(watched).command(t.Context(), t, change.stdin, change.args...)
				require.Zero(t, code, "%v", changed)
			}}
			code, doc := e.compact(t.Context(), t, location)
			require.Zero(t, code, "%v", doc)
			require.Equal(t, true, doc["committed"])
			require.Equal(t, []any{changed["version"]}, doc["rebased_over"])
			require.Equal(t, 1.0, doc["rows_carried"])
			require.Equal(t, 0.0, doc["groups_lost"])
			slices.Sort(want)
			require.Equal(t, want, scanLines(t, location))
			requireSound(t, location)
		})
	}
}

// Two compactions, and an update between them, commit while a change is about to: the
// change follows its rows, with a fragment reuse index that tells where they went and
// without.
func TestAChangeFollowsItsRowsThroughACompaction(t *testing.T) {
	for name := range rowChanges("") {
		for _, how := range [][]string{nil, {"--fri", "always"}} {
			t.Run(fmt.Sprint(name, how), func(t *testing.T) {
				location := goldenCopy(t, "many_small_fragments")
				change := rowChanges(location)[name]
				want := change.apply(scanLines(t, location))
				var others []any
				meanwhile := func(args ...string) {
					code, doc := new(watched).command(t.Context(), t, "", args...)
					require.Zero(t, code, "%v", doc)
					require.Equal(t, true, doc["committed"])
					others = append(others, doc["version"])
				}
				compact := append([]string{"compact", location}, how...)
				e := watched{}
				e.commit = func() {
					e.commit = nil
					meanwhile(compact...)
					meanwhile("update", location, "--where", "id = 5", "--set", "s = s")
					meanwhile(compact...)
				}
				code, doc := e.command(t.Context(), t, change.stdin, change.args...)
				require.Zero(t, code, "%v", doc)
				require.Equal(t, true, doc["committed"])
				require.Equal(t, others, doc["rebased_over"])
				require.NotZero(t, doc["rows_relocated"])
				require.Equal(t, 1.0, doc["attempts"], "nothing was computed again")
				slices.Sort(want)
				require.Equal(t, want, scanLines(t, location))
				requireSound(t, location)
			})
		}
	}
}

// Without any order: four at a time, each with rows of its own, and compactions. All
// commit.
func TestCommandsBesideEachOther(t *testing.T) {
	location := goldenCopy(t, "many_small_fragments")
	want := map[string]bool{}
	for _, row := range scanLines(t, location) {
		want[row] = true
	}
	type command struct {
		stdin string
		args  []string
	}
	actors := make([][]command, 4)
	for i := range 8 {
		actors[0] = append(actors[0], command{args: []string{"compact", location, "--deletion-threshold", "0"}})
		actors[1] = append(actors[1], command{args: []string{"delete", location, "--where", fmt.Sprintf("id = %d", i)}})
		delete(want, fmt.Sprintf(`{"id":%d,"s":"s%d"}`, i, i))
		id := 20 + i
		actors[2] = append(actors[2], command{args: []string{"update", location, "--where", fmt.Sprintf("id = %d", id), "--set", "s = 'new'"}})
		delete(want, fmt.Sprintf(`{"id":%d,"s":"s%d"}`, id, id))
		want[fmt.Sprintf(`{"id":%d,"s":"new"}`, id)] = true
		id, fresh := 40+i, 9000+i
		rows := fmt.Sprintf(`{"id":%d,"s":"new"}`+"\n"+`{"id":%d,"s":"new"}`, id, fresh)
		actors[3] = append(actors[3], command{rows, []string{"upsert", location, "-", "--on", "id"}})
		delete(want, fmt.Sprintf(`{"id":%d,"s":"s%d"}`, id, id))
		want[fmt.Sprintf(`{"id":%d,"s":"new"}`, id)] = true
		want[fmt.Sprintf(`{"id":%d,"s":"new"}`, fresh)] = true
	}
	failures := make(chan string, 100)
	var running sync.WaitGroup
	for _, commands := range actors {
		running.Go(func() {
			for _, c := range commands {
				var out, stderr bytes.Buffer
				opts := cli.Options{Stdin: strings.NewReader(c.stdin), Stdout: &out, Stderr: &stderr}
				if code := cli.Run(t.Context(), opts, c.args); code != 0 {
					failures <- fmt.Sprintf("%v exits %d: %s", c.args, code, stderr.String())
				}
			}
		})
	}
	running.Wait()
	close(failures)
	for f := range failures {
		t.Error(f)
	}
	require.Equal(t, slices.Sorted(maps.Keys(want)), scanLines(t, location))
	requireSound(t, location)
}

// If somebody else updates the same row, the change is computed again; if that goes on
// for ever it is a conflict, and nothing is left behind.
func TestChangesOfTheSameRow(t *testing.T) {
	location := goldenCopy(t, "many_small_fragments")
	bump := func() {
		code, doc := new(watched).command(t.Context(), t, "", "update", location, "--where", "id = 3", "--set", "s = s || '+'")
		require.Zero(t, code, "%v", doc)
	}
	e := watched{}
	e.commit = func() {
		e.commit = nil
		bump()
	}
	code, doc := e.command(t.Context(), t, "", "update", location, "--where", "id = 3", "--set", "s = s || '!'")
	require.Zero(t, code, "%v", doc)
	require.Equal(t, 2.0, doc["attempts"])
	require.Contains(t, scanLines(t, location), `{"id":3,"s":"s3+!"}`)

	e.commit = bump
	code, doc = e.command(t.Context(), t, "", "update", location, "--where", "id = 3", "--set", "s = NULL")
	require.Equal(t, cli.ExitConflict, code, "%v", doc)
	require.Equal(t, "conflict", doc["error"].(map[string]any)["kind"])
	requireSound(t, location)

	// A delete of a row that is gone has nothing left to do.
	e.commit = func() {
		code, doc := new(watched).command(t.Context(), t, "", "delete", location, "--where", "id = 3")
		require.Zero(t, code, "%v", doc)
	}
	code, doc = e.command(t.Context(), t, "", "delete", location, "--where", "id = 3")
	require.Zero(t, code, "%v", doc)
	require.Equal(t, false, doc["committed"])
	requireSound(t, location)
}

func TestCtrlCDuringAChangeLeavesTheTableAsItWas(t *testing.T) {
	for name := range rowChanges("") {
		t.Run(name, func(t *testing.T) {
			location := goldenCopy(t, "many_small_fragments")
			change := rowChanges(location)[name]
			before, err := treeHash(location)
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			e := watched{commit: cancel}
			code, doc := e.command(ctx, t, change.stdin, change.args...)
			require.Equal(t, cli.ExitFailed, code)
			require.Equal(t, "interrupted", doc["error"].(map[string]any)["kind"])
			after, err := treeHash(location)
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
}

// Rows can come as Arrow, in a file or as a stream.
func TestUpsertTakesArrow(t *testing.T) {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}, {Name: "id", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	}, nil)
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(`[{"id":3,"s":"new"},{"id":9000,"s":"new"}]`))
	require.NoError(t, err)
	defer rec.Release()
	var stream bytes.Buffer
	w := ipc.NewWriter(&stream, ipc.WithSchema(schema))
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	file := filepath.Join(t.TempDir(), "rows.arrow")
	f, err := os.Create(file)
	require.NoError(t, err)
	fw, err := ipc.NewFileWriter(f, ipc.WithSchema(schema))
	require.NoError(t, err)
	require.NoError(t, fw.Write(rec))
	require.NoError(t, fw.Close())

	for name, c := range map[string]struct{ from, stdin string }{"a file": {from: file}, "a stream": {from: "-", stdin: stream.String()}} {
		t.Run(name, func(t *testing.T) {
			location := goldenCopy(t, "many_small_fragments")
			want := rowChanges(location)["upsert"].apply(scanLines(t, location))
			code, doc := new(watched).command(t.Context(), t, c.stdin, "upsert", location, c.from, "--on", "id")
			require.Zero(t, code, "%v", doc)
			require.Equal(t, 1.0, doc["rows_inserted"])
			slices.Sort(want)
			require.Equal(t, want, scanLines(t, location))
		})
	}
	location := goldenCopy(t, "many_small_fragments")
	bytes, err := os.ReadFile(file)
	require.NoError(t, err)
	code, doc := new(watched).command(t.Context(), t, string(bytes), "upsert", location, "-", "--on", "id")
	require.Equal(t, cli.ExitUsage, code, "%v", doc)
	code, doc = new(watched).command(t.Context(), t, stream.String()[:stream.Len()/2], "upsert", location, "-", "--on", "id")
	require.Equal(t, cli.ExitFailed, code, "%v", doc)
	requireSound(t, location)
}
