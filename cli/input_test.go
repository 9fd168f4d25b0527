package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/cli"
	"github.com/rehome-db/rehome/lance"
)

// inputTable makes a table of the columns that the files in testdata/inputs have, with
// a row.
func inputTable(t *testing.T, columns ...arrow.Field) string {
	t.Helper()
	location := filepath.Join(t.TempDir(), "t.lance")
	e, err := lance.Create(t.Context(), location, arrow.NewSchema(columns, nil), lance.CreateOptions{}, lance.Options{})
	require.NoError(t, err)
	require.NoError(t, e.Close())
	code, doc := new(watched).command(t.Context(), t, `{"id":1}`, "upsert", location, "-", "--on", "id")
	require.Zero(t, code, "%v", doc)
	return location
}

func requireRefusedInput(t *testing.T, location, file string) string {
	t.Helper()
	before, err := treeHash(location)
	require.NoError(t, err)
	code, doc := new(watched).command(t.Context(), t, "", "upsert", location, file, "--on", "id")
	require.Equal(t, cli.ExitFailed, code, "%v", doc)
	failure := doc["error"].(map[string]any)
	require.Equal(t, "failed", failure["kind"], "the table is not damaged: the file is")
	require.Contains(t, failure["message"], file)
	after, err := treeHash(location)
	require.NoError(t, err)
	require.Equal(t, before, after, "no file is left")
	return failure["message"].(string)
}

var (
	inputID   = arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	inputText = arrow.Field{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true}
)

// Files with bits changed, that made libraries panic.
func TestReport08DamagedArrowFiles(t *testing.T) {
	location := inputTable(t, inputID, arrow.Field{Name: "n", Type: arrow.PrimitiveTypes.Int64, Nullable: true}, inputText,
		arrow.Field{Name: "v", Type: arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32), Nullable: true})
	files, err := filepath.Glob("testdata/inputs/crash_*.arrow")
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, f := range append(files, "testdata/inputs/bad_len.arrow") {
		t.Run(filepath.Base(f), func(t *testing.T) {
			message := requireRefusedInput(t, location, f)
			require.NotContains(t, message, "internal error", "it is checked, not only survived")
			t.Log(message)
		})
	}
}

// A panic below a command is an error that names the input.
func TestReport08PanicsAreErrors(t *testing.T) {
	location := inputTable(t, inputID, inputText)
	file := filepath.Join(t.TempDir(), "rows.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(`{"id":2,"s":"x"}`), 0o600))
	e := watched{commit: func() { panic("a library gave up") }}
	code, doc := e.command(t.Context(), t, "", "upsert", location, file, "--on", "id")
	require.Equal(t, cli.ExitFailed, code)
	message := doc["error"].(map[string]any)["message"]
	require.Contains(t, message, "a library gave up")
	require.Contains(t, message, file)

	e = watched{commit: func() { panic("a library gave up") }}
	code, doc = e.command(t.Context(), t, "", "delete", location, "--where", "id = 1")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, doc["error"].(map[string]any)["message"], "a library gave up")
	// In the middle of a commit nobody can tell whether files are referred to, so they
	// stay for the clean-up.
	code, doc = new(watched).command(t.Context(), t, "", "verify", location, "--deep")
	require.Zero(t, code, "%v", doc)
}

// Text that is not UTF-8 is refused, with the file and the row.
func TestReport02TextThatIsNotUTF8(t *testing.T) {
	location := inputTable(t, inputID, inputText)
	message := requireRefusedInput(t, inputTable(t, inputID, arrow.Field{Name: "x", Type: arrow.BinaryTypes.String, Nullable: true}), "testdata/inputs/bu.arrow")
	require.Contains(t, message, `row 1, column "x": "caf\xe9" is not UTF-8`)

	file := filepath.Join(t.TempDir(), "rows.jsonl")
	for text, says := range map[string]string{
		"{\"id\":2,\"s\":\"\xff\xfe\"}": "UTF-8",
		`{"id":2,"s":"\ud800"}`:         "half a surrogate pair",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.Contains(t, requireRefusedInput(t, location, file), says)
	}
}
