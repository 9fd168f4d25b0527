package rebase_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// TestSpec runs the stories in testdata/rebase. A story is a table, a change that
// somebody computes from it without committing, what others do meanwhile, and what
// becomes of the change. Every row has a word of its own; a dot is a dead row.
//
//	table                 lines of rows, a fragment each
//	change name=x         what a change is, computed from the version that there is now:
//	                        delete a b | update a b | append x | upsert a b; x y |
//	                        compact 0 1 into 3
//	others                what others commit, a commit a line: the same, and
//	                        compact 0 1 into 3 recorded|reversed|vague|mistaken
//	                        rewrite a column in place of 0 | overwrite | restore |
//	                        reserve ids | something unknown
//	commit name=x         commits the change, and shows how that ended and the table
//
// Each story is told with one memory for everybody, with one for each commit, and with
// none; with an engine that takes single rows and with one that reads fragments; with
// changes as they were computed and as they come out of JSON. Nothing may come out
// differently.
func TestSpec(t *testing.T) {
	for _, memory := range []string{"none", "shared", "separate"} {
		for _, taker := range []bool{false, true} {
			t.Run(fmt.Sprintf("memory=%s,taker=%v", memory, taker), func(t *testing.T) {
				datadriven.Walk(t, "testdata/rebase", func(t *testing.T, path string) {
					s := &story{t: t, memory: memory, taker: taker}
					datadriven.RunTest(t, path, s.run)
				})
			})
		}
	}
}

// randomID is a transaction's id as the engine in memory makes them.
var randomID = regexp.MustCompile("transaction [A-Z0-9]{26}")

type story struct {
	t       *testing.T
	memory  string
	taker   bool
	shared  rebase.Memory
	w       *world
	changes map[string]rebase.Uncommitted
	// inserted are the words that an upsert inserts.
	inserted map[string][]string
}

func (s *story) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "table":
		s.w, s.changes, s.inserted = newWorld(t), map[string]rebase.Uncommitted{}, map[string][]string{}
		s.shared = rebase.NewMemory(1 << 20)
		if s.taker {
			s.w.e = takingEngine{s.w.mem}
		}
		for _, line := range lines(d.Input) {
			s.w.append(strings.Fields(line)...)
		}
		return s.w.String()
	case "change":
		var name string
		d.ScanArgs(t, "name", &name)
		s.changes[name] = s.change(d.Input)
		_, inserted, _ := strings.Cut(d.Input, ";")
		s.inserted[name] = strings.Fields(inserted)
		return fmt.Sprintf("from version %d, about %s\n", s.changes[name].Transaction.ReadVersion, s.changes[name].Affected)
	case "others":
		for _, line := range lines(d.Input) {
			s.others(line)
		}
		return s.w.String()
	case "commit":
		var name string
		d.ScanArgs(t, "name", &name)
		var clash rebase.KeysClash
		if d.HasArg("keys") {
			clash = s.w.clash(s.inserted[name])
		}
		return s.commit(s.changes[name], clash)
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func lines(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }

func (s *story) change(line string) rebase.Uncommitted {
	verb, rest, _ := strings.Cut(line, " ")
	old, inserted, _ := strings.Cut(rest, ";")
	words, fresh := strings.Fields(old), strings.Fields(inserted)
	switch verb {
	case "delete":
		return s.w.uncommitted(table.Delete{}, words, nil)
	case "update":
		return s.w.uncommitted(table.Update{}, words, primed(words))
	case "append":
		return s.w.uncommitted(table.Append{}, nil, words)
	case "upsert":
		return s.w.uncommitted(table.Update{UniqueKeys: []int32{0}}, words, append(primed(words), fresh...))
	case "compact":
		ids, sizes, _ := parseCompaction(s.t, rest)
		return s.w.uncommittedRewrite(ids, sizes)
	}
	require.Fail(s.t, "unknown change", line)
	return rebase.Uncommitted{}
}

// parseCompaction reads "0 1 into 3 2 recorded".
func parseCompaction(t *testing.T, rest string) (ids []table.FragmentID, sizes []int, h how) {
	from, to, _ := strings.Cut(rest, " into ")
	for _, x := range strings.Fields(from) {
		n, err := strconv.Atoi(x)
		require.NoError(t, err)
		ids = append(ids, table.FragmentID(n))
	}
	for _, x := range strings.Fields(to) {
		switch x {
		case "recorded":
			h.recorded = true
		case "reversed":
			h.reversed = true
		case "vague":
			h.vague = true
		case "mistaken":
			h.mistaken = true
		default:
			n, err := strconv.Atoi(x)
			require.NoError(t, err)
			sizes = append(sizes, n)
		}
	}
	return ids, sizes, h
}

func (s *story) others(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	words := strings.Fields(rest)
	switch verb {
	case "delete":
		s.w.delete(words...)
	case "update":
		s.w.update(words...)
	case "append":
		s.w.append(words...)
	case "compact":
		ids, sizes, h := parseCompaction(s.t, rest)
		s.w.compact(ids, sizes, h)
	case "rewrite": // a column in place of 0
		id, err := strconv.Atoi(words[len(words)-1])
		require.NoError(s.t, err)
		f, _ := s.w.head().Fragment(table.FragmentID(id))
		s.w.commit(table.Update{InPlace: true, Updated: []table.Fragment{f}, ModifiedFields: []int32{0}}, table.Change{})
	case "overwrite":
		s.w.commit(table.Overwrite{}, table.Change{})
	case "restore":
		s.w.commit(table.Restore{Target: 1}, table.Change{})
	case "reserve":
		s.w.commit(table.ReserveFragments{Count: 3}, table.Change{Reserve: 3})
	case "something":
		s.w.commit(table.Unknown{Name: "from_the_future"}, table.Change{})
	default:
		require.Fail(s.t, "unknown doing", line)
	}
}

func (s *story) commit(u rebase.Uncommitted, clash rebase.KeysClash) string {
	data, err := json.Marshal(u)
	require.NoError(s.t, err)
	u = rebase.Uncommitted{}
	require.NoError(s.t, json.Unmarshal(data, &u))

	opts := rebase.Options{KeysClash: clash}
	switch s.memory {
	case "shared":
		opts.Memory = s.shared
	case "separate":
		opts.Memory = rebase.NewMemory(1 << 20)
	}
	out, err := rebase.Commit(ctx, s.w.e, u, opts)
	for name, c := range s.changes {
		if c.Transaction.ID == u.Transaction.ID {
			delete(s.changes, name) // its objects are in the table, or gone
		}
	}
	require.Empty(s.t, s.orphans())
	if err != nil {
		require.ErrorIs(s.t, err, table.ErrConflict)
		var c *rebase.ConflictError
		require.True(s.t, errors.As(err, &c))
		require.Equal(s.t, !c.Retryable(), errors.Is(err, table.ErrTerminal))
		verdict := rebase.Retry
		if !c.Retryable() {
			verdict = rebase.Incompatible
		}
		return fmt.Sprintf("%v: %v\n%s", verdict, randomID.ReplaceAllString(err.Error(), "transaction ?"), s.w)
	}
	text := fmt.Sprintf("version %d: %d deleted", out.Version, out.RowsDeleted)
	if out.Nothing {
		text = fmt.Sprintf("nothing to do in version %d", out.Version)
	}
	if out.RowsMerged > 0 {
		text += fmt.Sprintf(", %d were already", out.RowsMerged)
	}
	if out.RowsRelocated > 0 {
		text += fmt.Sprintf(", %d relocated", out.RowsRelocated)
	}
	if len(out.RebasedOver) > 0 {
		text += fmt.Sprintf(", over versions %v", out.RebasedOver)
	}
	if len(out.Added) > 0 {
		text += fmt.Sprintf(", added %v", out.Added)
	}
	return text + "\n" + s.w.String()
}

// orphans are objects that no version refers to, but for those of changes that are
// still to be committed.
func (s *story) orphans() (out []string) {
	waiting := map[string]bool{}
	for _, u := range s.changes {
		for _, o := range objectsOf(u) {
			waiting[o.Path] = true
		}
	}
	for _, o := range s.w.orphans() {
		if !waiting[o] {
			out = append(out, o)
		}
	}
	return out
}

// clash compares the words of new fragments with those that are inserted.
func (w *world) clash(inserted []string) rebase.KeysClash {
	return func(_ context.Context, base *table.Snapshot, added []table.Fragment) (bool, error) {
		for _, f := range added {
			for _, r := range w.rowsOf(base, []table.FragmentID{f.ID}) {
				if slices.Contains(inserted, r.word) {
					return true, nil
				}
			}
		}
		return false, nil
	}
}

// takingEngine is a table.RowTaker.
type takingEngine struct{ *memengine.Engine }

func (e takingEngine) Take(ctx context.Context, s *table.Snapshot, addrs []table.RowAddr, columns []string) iter.Seq2[table.Batch, error] {
	bare := *s // in which every row is alive
	bare.Fragments = slices.Clone(s.Fragments)
	for i := range bare.Fragments {
		bare.Fragments[i].Deletion = nil
	}
	return func(yield func(table.Batch, error) bool) {
		left := addrs
		for _, id := range rebase.Rows(addrs...).Fragments() {
			opts := table.ReadOptions{Columns: columns, WithAddrs: true, BatchRows: 1}
			for b, err := range e.Rows(ctx, &bare, []table.FragmentID{id}, opts) {
				if err != nil {
					yield(b, err)
					return
				}
				if len(left) == 0 || b.Addrs[0] != left[0] {
					continue
				}
				left = left[1:]
				if !yield(b, nil) {
					return
				}
			}
		}
		if len(left) > 0 {
			yield(table.Batch{}, fmt.Errorf("no row %s: %w", left[0], table.ErrNotFound))
		}
	}
}
