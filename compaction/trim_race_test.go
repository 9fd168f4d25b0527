package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/memengine"
)

// actor does something in two steps: until it has decided what to commit, and from
// the commit on. What it does after losing the race belongs to the second step.
type actor struct {
	name string
	run  func(e table.Engine) error

	gate, done chan struct{}
	err        error
}

// step takes the actor's next step and returns when that is over.
func (a *actor) step(e *memengine.Engine) {
	if a.gate != nil {
		close(a.gate)
		<-a.done
		return
	}
	a.gate, a.done = make(chan struct{}), make(chan struct{})
	ready := make(chan struct{})
	first := true
	p := &probe{Engine: e, before: func(op string) error {
		if first && strings.HasPrefix(op, "commit") {
			first = false
			close(ready)
			<-a.gate
		}
		return nil
	}}
	go func() {
		defer close(a.done)
		a.err = a.run(p)
	}()
	select {
	case <-ready:
	case <-a.done: // there was nothing to commit
	}
}

func noSleep(context.Context, time.Duration) error { return nil }

// orders lists all ways to interleave the steps of n actors with two steps each.
func orders(n int) (out [][]int) {
	var extend func(prefix, left []int)
	extend = func(prefix, left []int) {
		if len(prefix) == 2*n {
			out = append(out, slices.Clone(prefix))
			return
		}
		for i, k := range left {
			if k > 0 {
				left[i]--
				extend(append(prefix, i), left)
				left[i]++
			}
		}
	}
	left := make([]int, n)
	for i := range left {
		left[i] = 2
	}
	extend(nil, left)
	return out
}

// TestTrimRaces lets two trims, a compaction and an index build meet in every order
// of their steps. Afterwards all of them took effect: what nothing needs is dropped,
// what the compaction recorded is there, and so is the index, and every entry of
// every index leads to its row.
func TestTrimRaces(t *testing.T) {
	all := orders(4)
	require.Len(t, all, 2520)
	if testing.Short() {
		all = all[:200]
	}
	refused := 0
	for _, order := range all {
		// Fragments 0 and 1 were compacted to 2 and are indexed anew: that
		// transition is of no use. 3 and 4 were compacted to 5 and are not.
		e := newTable(t, 10, 10)
		_, err := Compact(ctx, e, Options{TargetRows: 20})
		require.NoError(t, err)
		appendRows(t, e, 10)
		appendRows(t, e, 10)
		indexes := []builtIndex{}
		build := func(version uint64, over ...table.FragmentID) error {
			b, err := buildIndex(t, e, version, table.ReuseThrough, over...)
			if err == nil {
				indexes = append(indexes, b)
			}
			return err
		}
		require.NoError(t, build(0))
		_, err = Compact(ctx, e, Options{TargetRows: 20})
		require.NoError(t, err)
		appendRows(t, e, 10)
		appendRows(t, e, 10)
		require.NoError(t, build(0, 6, 7))
		require.Equal(t, 2, historyOf(t, e).Len())

		trim := func(e table.Engine) error {
			_, err := Trim(ctx, e, TrimOptions{sleep: noSleep})
			return err
		}
		actors := []*actor{
			{name: "trim", run: trim},
			{name: "another trim", run: trim},
			{name: "compaction", run: func(e table.Engine) error { // 6 and 7 become 8
				report, err := Compact(ctx, e, Options{TargetRows: 20, sleep: noSleep})
				if err == nil && !report.FRI.Published {
					err = errors.New("nothing was recorded")
				}
				return err
			}},
			{name: "index build", run: func(x table.Engine) error {
				s, err := x.Load(ctx, 0)
				if err != nil {
					return err
				}
				if err := x.(*probe).before("commit an index"); err != nil {
					return err
				}
				if err = build(s.Version); errors.Is(err, table.ErrConflict) {
					refused++
					err = build(0)
				}
				return err
			}},
		}
		for _, i := range order {
			actors[i].step(e)
		}
		for _, a := range actors {
			require.NoError(t, a.err, "%s in order %v", a.name, order)
		}
		h := historyOf(t, e)
		var names []string
		for _, tr := range h.All() {
			names = append(names, fmt.Sprint(digestIDs(tr.Sources()), digestIDs(tr.Destinations())))
		}
		require.Equal(t, []string{"[3 4] [5]", "[6 7] [8]"}, names, "order %v", order)
		require.Len(t, indexes, 3)
		s, err := e.Load(ctx, 0)
		require.NoError(t, err)
		require.Len(t, s.Indexes, 3)
		for _, b := range indexes {
			requireResolves(t, e, b)
		}
		require.Len(t, rowsAt(t, e, 0), 60)
		require.Empty(t, orphans(t, e))
	}
	require.Positive(t, refused, "no index build met a compaction")
}

// TestTrimModel interferes with trims, and with trims in everything else, at
// random: appends, deletes, compactions, index builds and drops, also just before a
// commit.
func TestTrimModel(t *testing.T) {
	dropped := 0
	rapid.Check(t, func(t *rapid.T) {
		e := newTable(t, 5, 5, 5)
		p := &probe{Engine: e}
		var indexes []builtIndex
		depth := 0
		var act func()
		p.before = func(op string) error {
			if depth < 2 && strings.HasPrefix(op, "commit") && rapid.IntRange(0, 3).Draw(t, "interfere") == 0 {
				act()
			}
			return nil
		}
		act = func() {
			depth++
			defer func() { depth-- }()
			switch rapid.SampledFrom([]string{"append", "append", "delete", "compact", "compact", "build", "rebuild", "trim", "trim"}).Draw(t, "act") {
			case "append":
				appendRows(t, e, rapid.IntRange(1, 9).Draw(t, "rows"))
			case "delete":
				if rows := rowsAt(t, e, 0); len(rows) > 0 {
					require.NoError(t, e.DeleteRows(ctx, rapid.SampledFrom(rows).Draw(t, "row").addr))
				}
			case "compact":
				opts := Options{TargetRows: rapid.Uint64Range(5, 40).Draw(t, "target"), AnyDeletion: true, sleep: noSleep}
				if _, err := Compact(ctx, p, opts); err != nil {
					require.ErrorIs(t, err, table.ErrConflict)
				}
			case "build", "rebuild":
				s, err := e.Load(ctx, 0)
				require.NoError(t, err)
				version := max(s.Version, 4) - rapid.Uint64Range(0, 3).Draw(t, "began")
				reuse := rapid.SampledFrom([]table.ReuseSupport{table.ReuseThrough, table.ReuseThrough, table.ReuseMasked}).Draw(t, "kind")
				b, err := buildIndex(t, e, version, reuse)
				if err != nil {
					return
				}
				if reuse == table.ReuseThrough { // the others are masked at some time
					indexes = append(indexes, b)
				}
				if n := len(indexes); n > 1 && rapid.Bool().Draw(t, "drop") {
					i := rapid.IntRange(0, n-1).Draw(t, "index")
					dropIndex(t, e, indexes[i].id)
					indexes = slices.Delete(indexes, i, i+1)
				}
			case "trim":
				before := historyOf(t, e).Len()
				report, err := Trim(ctx, p, TrimOptions{RetainVersions: rapid.Uint64Range(0, 2).Draw(t, "retain"), sleep: noSleep})
				require.NoError(t, err)
				dropped += report.Dropped
				require.GreaterOrEqual(t, before+2, report.Kept)
			}
		}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			act()
			for _, b := range indexes {
				requireResolves(t, e, b)
			}
		}
	})
	require.Positive(t, dropped, "nothing was ever dropped")
}
