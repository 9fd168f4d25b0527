package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/internal/cli"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// withHistory is an engine whose table carries the given content as its fragment
// reuse index.
func withHistory(t *testing.T, content []byte) table.Engine {
	t.Helper()
	e := memengine.New("t", table.Schema{Fields: []table.Field{{ID: 0, Name: "n", Type: arrow.PrimitiveTypes.Int64}}})
	base, err := e.ReserveFragments(t.Context(), 100)
	require.NoError(t, err)
	_, err = e.Commit(t.Context(), table.Proposal{
		Base: base, Transaction: table.Transaction{ID: "x", Operation: table.CreateIndex{}},
		Change: table.Change{Reuse: &table.ReuseIndexUpdate{Content: content}},
	})
	require.NoError(t, err)
	return e
}

func runOn(t *testing.T, e table.Engine, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), cli.Options{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Open: func(context.Context, string) (table.Engine, error) { return e, nil },
	}, args)
	return code, out.String(), errs.String()
}

func message(num protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), body)
}

// versionBytes is what a commit records that rewrote a fragment of rows+1 rows, the
// first of them deleted.
func versionBytes(t *testing.T, from, to table.FragmentID, rows uint64) []byte {
	t.Helper()
	var b fri.Builder
	require.NoError(t, b.AddSource(fri.Digest{ID: from, PhysicalRows: rows + 1, DeletedRows: 1}, onlyFirst{}))
	tr, err := b.Build([]fri.Digest{{ID: to, PhysicalRows: rows}})
	require.NoError(t, err)
	h, err := (&fri.History{}).Append(1, tr)
	require.NoError(t, err)
	_, _, n := protowire.ConsumeTag(h.Encode())
	body, n := protowire.ConsumeBytes(h.Encode()[n:])
	require.Positive(t, n)
	return body
}

// onlyFirst is the set of offset 0.
type onlyFirst struct{}

func (onlyFirst) Cardinality() uint64         { return 1 }
func (onlyFirst) Contains(offset uint32) bool { return offset == 0 }
func (onlyFirst) All() iter.Seq[uint32] {
	return func(yield func(uint32) bool) { yield(0) }
}

// A transition that a release to come recorded: its rows have no address that could
// be told, the others have, and nothing is taken out of what is not understood.
func TestHistoryThatIsNotUnderstood(t *testing.T) {
	unknown := protowire.AppendVarint(protowire.AppendTag(versionBytes(t, 2, 3, 4), 9, protowire.VarintType), 1)
	e := withHistory(t, append(message(1, versionBytes(t, 0, 1, 4)), message(1, unknown)...))

	code, stdout, stderr := runOn(t, e, "translate", "t", "0:0", "0:1", "2:1", "7:7")
	require.Zero(t, code, stderr)
	require.Equal(t, "0:0\tdeleted\n0:1\tmoved\t1:0\n2:1\tuntranslatable\n7:7\tunaffected\t7:7\n", stdout)
	require.Contains(t, stderr, "unknown field 9 of the version")

	code, stdout, _ = runOn(t, e, "translate", "t", "2:1", "--json")
	require.Zero(t, code)
	require.JSONEq(t, `[{"addr":8589934593,"state":"untranslatable","to":null}]`, stdout)

	code, stdout, _ = runOn(t, e, "fri", "t", "--json")
	require.Zero(t, code)
	var doc struct {
		Complete    bool
		Problem     string
		Transitions []struct{ Mapping string }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	require.False(t, doc.Complete)
	require.Contains(t, doc.Problem, "unknown field 9 of the version")
	require.Len(t, doc.Transitions, 2)
	code, stdout, _ = runOn(t, e, "fri", "t")
	require.Zero(t, code)
	require.Contains(t, stdout, "A part of it is not understood")

	code, _, stderr = runOn(t, e, "trim", "t")
	require.Equal(t, cli.ExitDamaged, code)
	require.Contains(t, stderr, "unknown field 9 of the version")
	code, _, stderr = runOn(t, e, "inspect", "t")
	require.Zero(t, code, stderr)
}

// A damaged bitmap is an error, whatever is asked.
func TestHistoryThatIsDamaged(t *testing.T) {
	bad := versionBytes(t, 0, 1, 4)
	at := bytes.IndexByte(bad, 0x3b) // the cookie of a bitmap with runs
	require.Positive(t, at)
	bad[at+11] ^= 0x08 // where the run begins
	e := withHistory(t, message(1, bad))
	code, stdout, stderr := runOn(t, e, "translate", "t", "7:7", "0:1")
	require.Equal(t, cli.ExitDamaged, code, stdout)
	require.Contains(t, stderr, "transition 0")
}

// What a history costs those who read it: a hint is given where it is much.
func TestInspectShowsWhatHistoryCosts(t *testing.T) {
	for _, c := range []struct {
		rows  uint64
		heavy bool
	}{{2_000_000, false}, {3_000_000, true}} {
		e := withHistory(t, message(1, versionBytes(t, 0, 1, c.rows)))
		code, stdout, stderr := runOn(t, e, "inspect", "t", "--json")
		require.Zero(t, code, stderr)
		var doc struct {
			FRI struct {
				Bytes            uint64 `json:"bytes"`
				ManifestBytes    uint64 `json:"manifest_bytes"`
				ExternalBytes    uint64 `json:"external_bytes"`
				MovedRows        uint64 `json:"moved_rows"`
				StockReaderBytes uint64 `json:"stock_reader_bytes"`
				Trimmable        int    `json:"trimmable"`
			} `json:"fri"`
			Health []struct{ Kind, Message string }
		}
		require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
		require.Equal(t, c.rows, doc.FRI.MovedRows)
		require.Equal(t, 104*c.rows, doc.FRI.StockReaderBytes)
		require.Equal(t, doc.FRI.Bytes, doc.FRI.ManifestBytes)
		require.Zero(t, doc.FRI.ExternalBytes)
		require.Equal(t, 1, doc.FRI.Trimmable)
		kinds := map[string]string{}
		for _, h := range doc.Health {
			kinds[h.Kind] = h.Message
		}
		require.Contains(t, kinds, "trim")
		if c.heavy {
			require.Contains(t, kinds["stock_reader_memory"], "older stock readers (Lance 8) need about 298 MiB of memory")
		} else {
			require.NotContains(t, kinds, "stock_reader_memory")
		}
	}
}
