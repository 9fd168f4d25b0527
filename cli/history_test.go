package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/cli"
	"github.com/rehome-db/rehome/fri"
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

// withFragments has some fragments more.
type withFragments struct {
	table.Engine
	fragments []table.Fragment
}

func (e withFragments) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	s, err := e.Engine.Load(ctx, version)
	if err != nil {
		return nil, err
	}
	out := *s
	out.Fragments = append(slices.Clone(s.Fragments), e.fragments...)
	return &out, nil
}

func runOn(t *testing.T, e table.Engine, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Run(t.Context(), cli.Options{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Tables: "Lance tables",
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
	e := withFragments{withHistory(t, append(message(1, versionBytes(t, 0, 1, 4)), message(1, unknown)...)),
		[]table.Fragment{{ID: 1, PhysicalRows: 4}, {ID: 7, PhysicalRows: 8}}}

	code, stdout, stderr := runOn(t, e, "translate", "t", "0:0", "0:1", "2:1", "7:7")
	require.Zero(t, code, stderr)
	require.Equal(t, "0:0\tdeleted\n0:1\tmoved\t1:0\n"+
		"2:1\tunknown\t\tfri: transition 1 (dataset version 1): unknown field 9 of the version\n7:7\tunaffected\t7:7\n", stdout)
	require.Contains(t, stderr, "unknown field 9 of the version")

	code, stdout, _ = runOn(t, e, "translate", "t", "2:1", "--json")
	require.Zero(t, code)
	require.JSONEq(t, `{"version":3,"addresses":[{"addr":8589934593,"state":"unknown","to":null,
		"reason":"fri: transition 1 (dataset version 1): unknown field 9 of the version"}]}`, stdout)

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
	require.Contains(t, stdout, "A part of it is damaged or not understood")

	code, _, stderr = runOn(t, e, "trim", "t")
	require.Equal(t, cli.ExitDamaged, code)
	require.Contains(t, stderr, "unknown field 9 of the version")
	code, _, stderr = runOn(t, e, "inspect", "t")
	require.Zero(t, code, stderr)
}

// A transition that is damaged says nothing of the others: its rows are unknown, the
// others are answered for, and it can be dropped.
func TestReport15HistoryThatIsDamaged(t *testing.T) {
	bad := versionBytes(t, 0, 1, 4)
	at := bytes.IndexByte(bad, 0x3b) // the cookie of a bitmap with runs
	require.Positive(t, at)
	bad[at+11] ^= 0x08 // where the run begins
	e := withFragments{withHistory(t, append(message(1, bad), message(1, versionBytes(t, 2, 3, 4))...)),
		[]table.Fragment{{ID: 3, PhysicalRows: 4}, {ID: 7, PhysicalRows: 8}}}
	code, stdout, stderr := runOn(t, e, "translate", "t", "7:7", "2:1", "0:1")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "7:7\tunaffected\t7:7\n2:1\tmoved\t3:0\n0:1\tunknown\t\tfri: transition 0 (dataset version 1): ")
	require.Contains(t, stderr, "transition 0")
	for _, command := range [][]string{{"fri", "t"}, {"plan", "t"}, {"inspect", "t"}, {"trim", "t", "--dry-run", "--retain-versions", "3"}} {
		code, _, stderr = runOn(t, e, command...)
		require.Zero(t, code, "%v: %s", command, stderr)
	}
	code, stdout, _ = runOn(t, e, "fri", "t", "--json")
	require.Zero(t, code)
	var doc struct {
		Complete    bool
		Transitions []struct{ Mapping, Damage string }
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &doc))
	require.False(t, doc.Complete)
	require.Equal(t, "damaged", doc.Transitions[0].Mapping)
	require.Contains(t, doc.Transitions[0].Damage, "fragment 0")
	require.Empty(t, doc.Transitions[1].Damage)

	code, stdout, stderr = runOn(t, e.Engine, "trim", "t", "--retain-versions", "3", "--drop-damaged")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "Dropped 1 of 2 transitions")
	code, stdout, stderr = runOn(t, e, "translate", "t", "2:1", "0:1")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "2:1\tmoved\t3:0\n0:1\tunknown\t\tfragment 0 is gone")
	require.Empty(t, stderr)
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
