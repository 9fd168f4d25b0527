package compaction

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/table"
)

// TestEvents reads testdata/events: the calls that a compaction makes to its engine
// and the events that it emits, in the order in which they happen. The input of
// "compact" says what goes wrong when, each at its first occasion:
//
//	at <call>: append 5 | delete 0:1,0:2 | fail | cancel | unknown
func TestEvents(t *testing.T) {
	datadriven.RunTest(t, "testdata/events", func(t *testing.T, d *datadriven.TestData) string {
		p := &probe{Engine: newTable(t)}
		var counts string
		d.ScanArgs(t, "fragments", &counts)
		for n := range strings.SplitSeq(counts, "x") {
			rows, err := strconv.Atoi(n)
			require.NoError(t, err)
			appendRows(t, p.Engine, rows)
		}
		if d.HasArg("deleted") {
			var addrs string
			d.ScanArgs(t, "deleted", &addrs)
			require.NoError(t, p.DeleteRows(ctx, parseAddrs(t, addrs)...))
		}
		if d.HasArg("index") {
			var covers string
			d.ScanArgs(t, "index", &covers)
			_, err := p.AddIndex(ctx, table.IndexMeta{Name: "i", Coverage: ids(t, covers), CoverageKnown: true, Reuse: table.ReuseThrough})
			require.NoError(t, err)
		}

		var trace strings.Builder
		var mu sync.Mutex
		line := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			fmt.Fprintf(&trace, format+"\n", args...)
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		script := map[string]string{}
		for s := range strings.Lines(d.Input) {
			call, what, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(s, "at ")), ": ")
			require.True(t, ok, s)
			script[call] = what
		}
		p.before = func(op string) error {
			line("  %s", op)
			what, arg, _ := strings.Cut(script[op], " ")
			delete(script, op)
			switch what {
			case "append":
				n, err := strconv.Atoi(arg)
				require.NoError(t, err)
				appendRows(t, p.Engine, n)
				line("  (somebody appends %d rows)", n)
			case "delete":
				require.NoError(t, p.DeleteRows(context.Background(), parseAddrs(t, arg)...))
				line("  (somebody deletes %s)", arg)
			case "compact":
				_, err := Compact(context.Background(), p.Engine, Options{ExcludeFragments: ids(t, arg)})
				require.NoError(t, err)
				line("  (somebody compacts all but %s)", arg)
			case "fail":
				line("  (fails)")
				return errInjected
			case "cancel":
				line("  (is cancelled)")
				cancel()
			case "unknown":
				line("  (outcome unknown)")
				return table.ErrAmbiguousCommit
			}
			return nil
		}
		var e table.Engine = p
		if d.HasArg("rewriter") {
			e = newRewriter(p)
		}
		opts := Options{Threads: 1, sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
		d.MaybeScanArgs(t, "attempts", &opts.MaxAttempts)
		opts.Events = Events{
			PlanEnd:        func(i PlanInfo) { line("%v", i) },
			TaskBegin:      func(i TaskInfo) { line("begin %v", i) },
			TaskEnd:        func(i TaskInfo) { line("end %v", i) },
			Progress:       func(i ProgressInfo) { line("progress %v", i) },
			CommitBegin:    func(i CommitInfo) { line("begin %v", i) },
			CommitEnd:      func(i CommitInfo) { line("end %v", i) },
			Backoff:        func(i BackoffInfo) { i.Pause = 0; line("%v", i) },
			GroupLost:      func(i GroupLostInfo) { line("%v", i) },
			ObjectsDeleted: func(i ObjectsInfo) { line("%v", i) },
		}
		_, err := Compact(ctx, e, opts)
		require.Empty(t, script, "never happened")
		if err != nil {
			line("error: %v", strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		return transactionID.ReplaceAllString(trace.String(), "ID")
	})
}

var transactionID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func parseAddrs(t *testing.T, s string) (out []table.RowAddr) {
	for a := range strings.SplitSeq(s, "+") {
		addr, err := table.ParseRowAddr(a)
		require.NoError(t, err)
		out = append(out, addr)
	}
	return out
}

// TestTeeAndLog: every handler is passed on, and what went wrong is a warning.
func TestTeeAndLog(t *testing.T) {
	var buf bytes.Buffer
	log := slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	var seen []string
	note := func(s fmt.Stringer) { seen = append(seen, s.String()) }
	ev := Tee(LogEvents(log), Events{}, Events{
		PlanEnd: func(i PlanInfo) { note(i) }, TaskBegin: func(i TaskInfo) { note(i) }, TaskEnd: func(i TaskInfo) { note(i) },
		Progress: func(i ProgressInfo) { note(i) }, CommitBegin: func(i CommitInfo) { note(i) }, CommitEnd: func(i CommitInfo) { note(i) },
		Backoff: func(i BackoffInfo) { note(i) }, GroupLost: func(i GroupLostInfo) { note(i) }, ObjectsDeleted: func(i ObjectsInfo) { note(i) },
	})
	ev.PlanEnd(PlanInfo{ReadVersion: 3, Tasks: 1, Fragments: 2, Policy: IndexLeave})
	ev.TaskBegin(TaskInfo{Sources: ids(t, "0-1,5,7-9,11,13,15,17,19,21,23")})
	ev.TaskEnd(TaskInfo{Sources: ids(t, "0"), Err: errInjected})
	ev.Progress(ProgressInfo{Tasks: 1})
	ev.CommitBegin(CommitInfo{Attempt: 1, Base: 4, Groups: 1})
	ev.CommitEnd(CommitInfo{Attempt: 1, Base: 4, Groups: 1, Version: 5, PublishFRI: true})
	ev.Backoff(BackoffInfo{Attempt: 1, Pause: time.Second})
	ev.GroupLost(GroupLostInfo{Sources: ids(t, "0"), Reason: "why"})
	ev.ObjectsDeleted(ObjectsInfo{Deleted: make([]table.Object, 2), Left: make([]table.Object, 1), Err: errInjected})
	require.Equal(t, `level=INFO msg="compaction: plan of version 3: 1 task over 2 fragments, 0 rows, 0 bytes, indexes: leave"
level=DEBUG msg="compaction: task over fragments 0-1,5,7-9,11,13,15,17,19,...: 0 rows, 0 bytes"
level=WARN msg="compaction: task over fragments 0: 0 rows, 0 bytes: failed: injected"
level=DEBUG msg="compaction: commit attempt 1 over version 4: 1 group"
level=INFO msg="compaction: commit attempt 1 over version 4: 1 group, with a fragment reuse index, became version 5"
level=DEBUG msg="compaction: pause of 1s after attempt 1"
level=WARN msg="compaction: group of fragments 0 is lost: why"
level=WARN msg="compaction: deleted 2 objects, left 1: failed: injected"
`, buf.String())
	require.Len(t, seen, 9)
}
