package interop_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance/manifest"
)

// moveAdvice is what an error says to move out of the way, and what is the latest then.
var moveAdvice = regexp.MustCompile(`move (_versions/\S+) out of _versions, and version (\d+) is the latest`)

// TestReport16TheAdviceForADamagedLatestVersionWorks: with a newest manifest that is empty
// or cut in half no engine opens the table, appends to it or restores an older version.
// Once the manifest is out of the way, as rehome's error says, every engine and rehome go
// on from the version before.
func TestReport16TheAdviceForADamagedLatestVersionWorks(t *testing.T) {
	ctx := needEngines(t)
	for _, e := range engines {
		for name, part := range map[string]int64{"empty": 0, "half": 2} {
			t.Run(e.Name+"/"+name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "t.lance")
				defer forget(ctx, path)
				_, err := e.Create(ctx, path, tenRows(0), interop.CreateOptions{})
				require.NoError(t, err)
				_, err = e.Append(ctx, path, tenRows(10))
				require.NoError(t, err)
				last, err := e.Append(ctx, path, tenRows(20))
				require.NoError(t, err)
				forget(ctx, path)
				cutNewest(t, path, part)

				_, err = e.Count(ctx, path, "")
				require.Error(t, err)
				_, err = e.Append(ctx, path, tenRows(30))
				require.Error(t, err)
				_, err = e.Restore(ctx, path, last-1)
				require.Error(t, err)
				forget(ctx, path)

				code, out, _, err := run(ctx, "compact", path, "--json")
				require.NoError(t, err)
				require.Equal(t, exitUnsupported, code, out)
				var doc struct {
					Error struct{ Kind, Message string }
				}
				require.NoError(t, json.Unmarshal([]byte(out), &doc))
				require.Equal(t, "corrupt", doc.Error.Kind)
				advice := moveAdvice.FindStringSubmatch(doc.Error.Message)
				require.NotNil(t, advice, doc.Error.Message)
				require.Equal(t, fmt.Sprint(last-1), advice[2])
				require.NoError(t, os.Rename(filepath.Join(path, advice[1]), filepath.Join(t.TempDir(), "damaged.manifest")))

				require.NoError(t, rehomeVerify(ctx, path))
				n, err := e.Count(ctx, path, "")
				require.NoError(t, err)
				require.Equal(t, 20, n)
				compactTable(ctx, t, path)
				version, err := e.Append(ctx, path, tenRows(30))
				require.NoError(t, err)
				require.Equal(t, last+1, version)
				n, err = e.Count(ctx, path, "id >= 0")
				require.NoError(t, err)
				require.Equal(t, 30, n)
				require.NoError(t, rehomeVerify(ctx, path))
			})
		}
	}
}

// tenRows are rows with ten ids.
func tenRows(first int64) arrow.RecordBatch {
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range int64(10) {
		ids.Append(first + i)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true}}, nil)
	return array.NewRecordBatch(schema, []arrow.Array{ids.NewArray()}, 10)
}

// cutNewest leaves the part'th part of the newest manifest, nothing for 0.
func cutNewest(t *testing.T, path string, part int64) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(path, "_versions"))
	require.NoError(t, err)
	var newest uint64
	var file string
	for _, entry := range entries {
		if v, _, ok := manifest.ParseName(entry.Name()); ok && v > newest {
			newest, file = v, filepath.Join(path, "_versions", entry.Name())
		}
	}
	info, err := os.Stat(file)
	require.NoError(t, err)
	size := int64(0)
	if part > 0 {
		size = info.Size() / part
	}
	require.NoError(t, os.Truncate(file, size))
}
