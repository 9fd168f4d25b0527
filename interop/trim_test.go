package interop_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
)

// trimReport is what `rehome trim --json` prints, as far as it matters here.
type trimReport struct {
	Version   uint64 `json:"version"`
	Committed bool   `json:"committed"`
	Dropped   int    `json:"dropped"`
	Kept      int    `json:"kept"`
}

func rehomeTrim(ctx context.Context, path string) (r trimReport, err error) {
	code, stdout, stderr, err := run(ctx, "trim", path, "--json")
	if err != nil {
		return r, err
	}
	if code != exitDone {
		return r, &refusal{code, stderr + stdout}
	}
	return r, json.Unmarshal([]byte(stdout), &r)
}

// trims compacts through a fragment reuse index, and lets the engine whose turn it
// is build its indexes anew, one after the other, with a trim after each. As long as
// an index that reads through the transition is the old one, the trim has to keep
// it. All engines have the table open and their caches warm; all answers are
// checked after each step. The masked kinds come last: their files still hold the
// old addresses when the history is gone.
func (s scenario) trims(compact compactor) compactor {
	return func(ctx context.Context, stage string, by *interop.Engine, path string, m *model) (out []finding) {
		out = compact(ctx, stage, by, path, m)
		look := func(when string) {
			for _, e := range engines {
				found, _ := s.check(ctx, stage+", "+when, e, path, m)
				out = append(out, found...)
			}
			if err := rehomeVerify(ctx, path); err != nil {
				out = append(out, finding{stage + ", " + when, "rehome", "verify", err.Error()})
			}
		}
		trim := func(when string, kept bool) {
			r, err := rehomeTrim(ctx, path)
			switch {
			case err != nil:
				out = append(out, finding{stage + ", " + when, "rehome", "verify", err.Error()})
			case stage == firstCompaction && (r.Kept > 0) != kept:
				out = append(out, finding{stage + ", " + when, "rehome", "verify", fmt.Sprintf("the trim kept %d transitions and dropped %d", r.Kept, r.Dropped)})
			}
			look(when)
		}
		trim("trimmed at once", true)
		needing := 0
		for _, k := range s.kinds {
			if bears(k) {
				needing++
			}
		}
		for _, k := range s.kinds {
			if !by.Builds(k) {
				continue
			}
			if _, err := by.CreateIndex(ctx, path, columnOf(k), k); err != nil {
				return append(out, finding{stage + ", index " + string(k) + " rebuilt", by.Name, "step", err.Error()})
			}
			if bears(k) {
				needing--
			}
			trim("trimmed after index "+string(k)+" was rebuilt", needing > 0)
		}
		return out
	}
}

// TestTrim trims behind each engine, and lets all of them go on with the table.
func TestTrim(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		t.Run(writer.Name, func(t *testing.T) {
			t.Parallel()
			s := scenario{
				writer: writer, uniform: true, through: true,
				kinds: kinds(interop.Bitmap, interop.IVFPQ, interop.LabelList, interop.BTree, interop.FTS),
			}
			template, m := s.template(ctx, t)
			s.judge(ctx, t, template, m, s.trims(s.withRehome("--index-policy", "through")))
		})
	}
}

// TestTrimOfTwo compacts twice and rebuilds one of two indexes in between, so that
// a trim drops nothing; then the other, and all that is left of the history is what
// the last compaction recorded.
func TestTrimOfTwo(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		t.Run(writer.Name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "t.lance")
			defer forget(ctx, path)
			a := newAddressTable(10, 500)
			a.build(ctx, t, writer, path)
			require.True(t, compactTable(ctx, t, path).FRI.Published)
			compactAgain(ctx, t, writer, path)
			trim := func(dropped, kept int) {
				t.Helper()
				r, err := rehomeTrim(ctx, path)
				require.NoError(t, err)
				require.Equal(t, []int{dropped, kept}, []int{r.Dropped, r.Kept})
				for _, e := range engines {
					askThroughFRI(ctx, t, e, path, a.without(5))
				}
			}
			trim(0, 2)
			_, err := writer.CreateIndex(ctx, path, "cat", interop.Bitmap)
			require.NoError(t, err)
			for _, e := range engines { // caches hold the index, and the history with it
				askThroughFRI(ctx, t, e, path, a.without(5))
			}
			a = a.without(5)
			_, err = writer.Delete(ctx, path, "id % 7 = 0")
			require.NoError(t, err)
			a = a.without(7)
			require.True(t, compactTable(ctx, t, path).FRI.Published)
			trimmed, err := rehomeTrim(ctx, path)
			require.NoError(t, err)
			require.Equal(t, []int{2, 1}, []int{trimmed.Dropped, trimmed.Kept})
			for _, e := range engines {
				askThroughFRI(ctx, t, e, path, a)
			}
			require.Len(t, rehomeFRI(ctx, t, path).Transitions, 1)
			require.NoError(t, rehomeVerify(ctx, path))
		})
	}
}

// without is the table after one row of n was deleted.
func (a addressTable) without(n int64) addressTable {
	was := a.gone
	a.gone = func(id int64) bool { return id%n == 0 || was != nil && was(id) }
	return a
}

// compactAgain deletes a fifth of the rows and compacts what the first compaction
// wrote, through the fragment reuse index.
func compactAgain(ctx context.Context, t *testing.T, writer *interop.Engine, path string) {
	t.Helper()
	_, err := writer.Delete(ctx, path, "id % 5 = 0")
	require.NoError(t, err)
	require.True(t, compactTable(ctx, t, path).FRI.Published)
}

// TestStackedInlineAndExternal has the engines read two transitions that lead on
// from each other, inside the manifest and beside it.
func TestStackedInlineAndExternal(t *testing.T) {
	ctx := needEngines(t)
	for name, a := range map[string]addressTable{"inline": newAddressTable(10, 500), "external": newAddressTable(42, 4096)} {
		for _, writer := range engines {
			t.Run(name+"/"+writer.Name, func(t *testing.T) {
				t.Parallel()
				path := filepath.Join(t.TempDir(), "t.lance")
				defer forget(ctx, path)
				a.build(ctx, t, writer, path)
				require.True(t, compactTable(ctx, t, path).FRI.Published)
				compactAgain(ctx, t, writer, path)
				require.Len(t, rehomeFRI(ctx, t, path).Transitions, 2)
				files, err := filepath.Glob(filepath.Join(path, "_indices", "*", "details.binpb"))
				require.NoError(t, err)
				require.Equal(t, name == "external", len(files) == 2, "external files: %v", files)
				for _, e := range engines {
					askThroughFRI(ctx, t, e, path, a.without(5))
				}
				translateAll(ctx, t, path, a.without(5))
			})
		}
	}
}

// TestStockFRI reads what pylance's own deferred compaction recorded, one transition
// and two, inside the manifest and beside it, and compares the answers for all
// addresses. A trim behind it drops what pylance's rebuilt index does not need.
func TestStockFRI(t *testing.T) {
	ctx := needEngines(t)
	for name, a := range map[string]addressTable{"inline": newAddressTable(10, 500), "external": newAddressTable(42, 4096)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "t.lance")
			defer forget(ctx, path)
			a.build(ctx, t, pylance, path)
			for range 2 {
				_, err := pylance.CompactOnly(ctx, path, true)
				require.NoError(t, err)
				translateAll(ctx, t, path, a)
				_, err = pylance.Delete(ctx, path, "id % 5 = 0")
				require.NoError(t, err)
				a = a.without(5)
			}
			files, err := filepath.Glob(filepath.Join(path, "_indices", "*", "details.binpb"))
			require.NoError(t, err)
			require.Equal(t, name == "external", len(files) > 0, "external files: %v", files)
			require.Len(t, rehomeFRI(ctx, t, path).Transitions, 2)
			r, err := rehomeTrim(ctx, path)
			require.NoError(t, err)
			require.Equal(t, 2, r.Kept)
			_, err = pylance.CreateIndex(ctx, path, "cat", interop.Bitmap)
			require.NoError(t, err)
			r, err = rehomeTrim(ctx, path)
			require.NoError(t, err)
			require.Equal(t, []int{2, 0}, []int{r.Dropped, r.Kept})
			for _, e := range engines {
				askThroughFRI(ctx, t, e, path, a)
			}
		})
	}
}

// translateAll compares, for every address that the table ever gave out, what
// rehome and pylance make of it, and where the row is.
func translateAll(ctx context.Context, t *testing.T, path string, a addressTable) {
	t.Helper()
	now, err := addresses(ctx, path)
	require.NoError(t, err)
	var old []uint64
	var lines bytes.Buffer
	for id := range a.fragments * a.rows {
		old = append(old, a.address(id))
		fmt.Fprintln(&lines, a.address(id))
	}
	stock, ok, err := pylance.RemapAddrs(ctx, path, old)
	require.NoError(t, err)
	require.True(t, ok)
	cmd := exec.CommandContext(ctx, rehomeBinary, "translate", path, "-")
	cmd.Stdin = &lines
	answers, err := cmd.Output()
	require.NoError(t, err)
	ours := strings.Split(strings.TrimSuffix(string(answers), "\n"), "\n")
	require.Len(t, ours, len(old))
	wrong := 0
	for id, line := range ours {
		var want string
		switch addr, live := now[int64(id)]; {
		case stock[id] == nil:
			want = "deleted"
		case live && *stock[id] != addr:
			t.Errorf("row %d is at %d, and pylance says %d", id, addr, *stock[id])
			wrong++
			continue
		default:
			want = "moved\t" + strconv.FormatUint(*stock[id]>>32, 10) + ":" + strconv.FormatUint(uint64(uint32(*stock[id])), 10)
		}
		if _, got, _ := strings.Cut(line, "\t"); got != want {
			t.Errorf("row %d: rehome says %q, pylance %q", id, got, want)
			wrong++
		}
		if wrong > 5 {
			t.FailNow()
		}
	}
}
