package fri_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// stockCase is one file pair of testdata/stock: the details message of a fragment
// reuse index, and where a stock engine found every row before and after.
//
// pylance14_*: the index was written by a stock engine (compact_files with
// defer_index_remap); a unique id column was read with row addresses before each
// compaction and at the end. For those of index version 1, tagged and mixed, the
// table had its feature flag before the first compaction and between two of them.
// fri_handmade*: the index of the golden table of that
// name, whose queries the stock engines answered through it; addresses read the
// same way.
type stockCase struct {
	name    string
	details []byte
	content []byte

	Writer string `json:"writer"`
	// IndexVersion has one element.
	IndexVersion []int32       `json:"index_version"`
	Fragments    [][3]uint64   `json:"fragments"` // (id, physical rows, deleted) at the end
	Snapshots    []stockBefore `json:"snapshots"`
}

// stockBefore is the table just before a compaction.
type stockBefore struct {
	Fragments [][3]uint64 `json:"fragments"`
	// Moves are runs of live rows: (first address, rows, first address at the end
	// or -1 if they are gone by then).
	Moves [][3]int64 `json:"moves"`
}

func stockCases(t testing.TB) []stockCase {
	paths, err := filepath.Glob("testdata/stock/*.details")
	require.NoError(t, err)
	require.Len(t, paths, 8)
	var out []stockCase
	for _, p := range paths {
		c := stockCase{name: strings.TrimSuffix(filepath.Base(p), ".details")}
		c.details, err = os.ReadFile(p)
		require.NoError(t, err)
		d, err := fri.DecodeDetails(c.details)
		require.NoError(t, err)
		require.Nil(t, d.External)
		c.content = d.Inline
		packed, err := os.Open(strings.TrimSuffix(p, ".details") + ".json.gz")
		require.NoError(t, err)
		z, err := gzip.NewReader(packed)
		require.NoError(t, err)
		raw, err := io.ReadAll(z)
		require.NoError(t, err)
		require.NoError(t, packed.Close())
		require.NoError(t, json.Unmarshal(raw, &c))
		out = append(out, c)
	}
	return out
}

// Every row that a stock engine moved translates to where the engine finds it, and
// every row that it dropped to deleted, over one and several compactions.
func TestStockHistoriesTranslate(t *testing.T) {
	for _, c := range stockCases(t) {
		t.Run(c.name, func(t *testing.T) {
			h, err := fri.Decode(c.content, c.IndexVersion[0])
			require.NoError(t, err)
			moved, deleted := 0, 0
			for _, before := range c.Snapshots {
				want := map[table.RowAddr]fri.Translation{}
				for _, m := range before.Moves {
					for k := range m[1] {
						tr := fri.Translation{State: fri.Deleted}
						if m[2] >= 0 {
							tr = fri.Translation{State: fri.Moved, Addr: table.RowAddr(m[2] + k)}
						}
						want[table.RowAddr(m[0]+k)] = tr
					}
				}
				for _, f := range before.Fragments {
					id := table.FragmentID(f[0])
					_, rewritten := h.Consumer(id)
					require.True(t, rewritten)
					for o := range f[1] {
						a := table.NewRowAddr(id, uint32(o))
						// A row that the engine no longer showed before the
						// compaction had been deleted.
						expect, ok := want[a]
						if !ok {
							expect = fri.Translation{State: fri.Deleted}
						}
						if got := h.Translate(a); got != expect {
							t.Fatalf("%v: got %v, the engine says %v", a, got, expect)
						}
						if expect.State == fri.Moved {
							moved++
						} else {
							deleted++
						}
					}
					past := table.NewRowAddr(id, uint32(f[1]))
					require.Equal(t, fri.Translation{State: fri.Unaffected, Addr: past}, h.Translate(past))
				}
			}
			require.Positive(t, moved)
			require.Positive(t, deleted)
			for _, f := range c.Fragments {
				a := table.NewRowAddr(table.FragmentID(f[0]), 0)
				require.Equal(t, fri.Translation{State: fri.Unaffected, Addr: a}, h.Translate(a))
			}
		})
	}
}

// rebuild makes the same history from nothing but digests and deleted rows, by the
// builder, in the same commits.
func rebuild(t testing.TB, h *fri.History) *fri.History {
	out := &fri.History{}
	for i := 0; i < h.Len(); {
		var ts []*fri.Transition
		version := h.At(i).DatasetVersion()
		// A commit has a version, unless its transitions are tagged.
		for ; i < h.Len() && h.At(i).DatasetVersion() == version && (version != 0 || len(ts) == 0); i++ {
			var b fri.Builder
			alone, err := (&fri.History{}).Append(version, h.At(i))
			require.NoError(t, err)
			for _, s := range h.At(i).Sources() {
				dead := []uint32{}
				for o := range s.PhysicalRows {
					if alone.Translate(table.NewRowAddr(s.ID, uint32(o))).State == fri.Deleted {
						dead = append(dead, uint32(o))
					}
				}
				require.NoError(t, b.AddSource(s, deletion.Of(dead...)))
			}
			tr, err := b.Build(h.At(i).Destinations())
			require.NoError(t, err)
			ts = append(ts, tr)
		}
		if version == 0 { // tagged
			out, _ = out.Upgrade(1)
		}
		next, err := out.Append(version, ts...)
		require.NoError(t, err)
		out = next
	}
	return out
}

// A history built here from the same deletions has the very bytes that the stock
// engine of today wrote: same messages, same containers.
func TestBytesEqualStockEngine(t *testing.T) {
	n := 0
	for _, c := range stockCases(t) {
		if !strings.HasPrefix(c.name, "pylance14_") {
			continue // written without run containers
		}
		t.Run(c.name, func(t *testing.T) {
			h, err := fri.Decode(c.content, c.IndexVersion[0])
			require.NoError(t, err)
			ours := rebuild(t, h)
			require.Equal(t, c.IndexVersion[0], ours.IndexVersion())
			require.Equal(t, c.content, ours.Encode())
			details, external := fri.EncodeDetails(ours.Encode(), "details.binpb")
			require.Nil(t, external)
			require.Equal(t, c.details, details)
			n++
		})
	}
	require.Equal(t, 5, n)
}

// The golden tables' manifests hold the details that are tested here.
func TestGoldenDetailsAreTheTables(t *testing.T) {
	for _, c := range stockCases(t) {
		if !strings.HasPrefix(c.name, "fri_handmade") {
			continue
		}
		manifests, err := filepath.Glob("../testdata/golden/" + c.name + "/t.lance/_versions/*.manifest")
		require.NoError(t, err)
		found := false
		for _, m := range manifests {
			data, err := os.ReadFile(m)
			require.NoError(t, err)
			found = found || bytes.Contains(data, c.details)
		}
		require.True(t, found, c.name)
	}
}

// Decoding is lazy: an answer decodes the one source fragment that it is about.
func TestOneAnswerDecodesOneSource(t *testing.T) {
	for _, c := range stockCases(t) {
		if c.name != "pylance14_groups" {
			continue
		}
		h, err := fri.Decode(c.content, c.IndexVersion[0])
		require.NoError(t, err)
		require.Zero(t, fri.DecodedParts(h))
		require.Equal(t, fri.Moved, h.Translate(table.NewRowAddr(1, 2)).State)
		require.Equal(t, 1, fri.DecodedParts(h))
	}
}
