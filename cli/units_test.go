package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
)

func TestByteSizesReadTheUsualUnits(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "1048576": 1 << 20, "64MiB": 64 << 20, "64m": 64 << 20, "1.5g": 3 << 29, "200 MB": 200_000_000,
		"10KB": 10_000, " 7 b ": 7, "1_000": 1000, "16777215TiB": 16777215 << 40,
	} {
		var b byteSize
		require.NoError(t, b.Set(text), "%q", text)
		require.Equal(t, want, uint64(b), "%q", text)
	}
	for _, text := range []string{"", "MiB", "-1", "1.2.3", "5 parsecs", "16777216TiB", "18446744073709551616", "1e3"} {
		var b byteSize
		require.Error(t, b.Set(text), "%q", text)
	}
}

func TestByteSizesPrintWhatSetReads(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := byteSize(rapid.Uint64().Draw(t, "bytes") >> rapid.IntRange(0, 63).Draw(t, "shift") << rapid.SampledFrom([]int{0, 10, 20}).Draw(t, "unit"))
		var back byteSize
		require.NoError(t, back.Set(b.String()), "%s", b.String())
		require.Equal(t, b, back)
	})
}

func TestNumbersAreWrittenForPeople(t *testing.T) {
	require.Equal(t, "0", count(0))
	require.Equal(t, "999", count(999))
	require.Equal(t, "1,000", count(1000))
	require.Equal(t, "1,048,576", count(uint64(1<<20)))
	require.Equal(t, "1 row", plural(1, "row"))
	require.Equal(t, "1,234 rows", plural(1234, "row"))
	require.Equal(t, "2 indexes", plural(2, "index"))
	require.Equal(t, "0 B", size(0))
	require.Equal(t, "1023 B", size(1023))
	require.Equal(t, "1.5 KiB", size(1536))
	require.Equal(t, "128 MiB", size(128<<20))
	require.Equal(t, "16.0 EiB", size(1<<64-1))
	require.Equal(t, "0%", percent(0, 10))
	require.Equal(t, "0%", percent(0, 0))
	require.Equal(t, "<0.1%", percent(1, 1_000_000))
	require.Equal(t, "1.0%", percent(1, 100))
	require.Equal(t, "50%", percent(1, 2))
	require.Equal(t, ">99.9%", percent(999_999, 1_000_000))
	require.Equal(t, "100%", percent(3, 3))
}

func TestEveryErrorHasItsKindAndExitCode(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind string
		code int
	}{
		{usagef("bad flag"), "usage", ExitUsage},
		{&problemsError{2}, "failed", ExitDamaged},
		{table.Corruptf("bytes"), "corrupt", ExitDamaged},
		{table.Unsupportedf("lists"), "unsupported", ExitDamaged},
		{fmt.Errorf("open x: %w", table.ErrNotTable), "not_a_table", ExitDamaged},
		{table.Conflictf("version 3"), "conflict", ExitConflict},
		{fmt.Errorf("commit: %w", table.ErrVersionTaken), "conflict", ExitConflict},
		{table.ErrAmbiguousCommit, "ambiguous_commit", ExitFailed},
		{fmt.Errorf("version 9: %w", table.ErrNotFound), "not_found", ExitFailed},
		{table.ErrTerminal, "terminal", ExitFailed},
		{errors.New("disk full"), "failed", ExitFailed},
		{errors.Join(table.ErrConflict, context.Canceled), "interrupted", ExitFailed},
	} {
		require.Equal(t, c.kind, Kind(c.err), "%v", c.err)
		require.Equal(t, c.code, ExitCode(c.err), "%v", c.err)
	}
	require.Equal(t, ExitDone, ExitCode(nil))
}

func TestErrorsSayWhatToDo(t *testing.T) {
	require.Equal(t, "a; b", (&app{}).describe(errors.Join(errors.New("a"), errors.New("b"))))
	require.Equal(t, "fragment 3 is gone; run the command again: it starts from the table's current version", (&app{}).describe(table.Conflictf("fragment 3 is gone")))
	left := &commit.LeftoverError{Objects: []table.Object{{Path: "data/x"}}, Err: errors.New("denied")}
	require.Equal(t, "interrupted; the table is as it was; commit: 1 object left behind: data/x: denied",
		(&app{}).describe(errors.Join(fmt.Errorf("rewrite: %w", context.Canceled), left)))
	require.NotContains(t, (&app{}).describe(errors.Join(table.ErrAmbiguousCommit, context.Canceled)), "as it was",
		"nobody knows that")
}

func TestAReportThatCannotBeWrittenDoesNotHideTheCommit(t *testing.T) {
	full := errors.New("no space left")
	err := afterCommit(full, true, 7)
	require.ErrorIs(t, err, full)
	require.ErrorContains(t, err, "version 7 was committed")
	require.Equal(t, full, afterCommit(full, false, 7))
	require.NoError(t, afterCommit(nil, true, 7))
}

func TestFragmentListsAreReadAndWritten(t *testing.T) {
	ids, err := parseFragments([]string{"3", " 8", "10-12"})
	require.NoError(t, err)
	require.Equal(t, []table.FragmentID{3, 8, 10, 11, 12}, ids)
	require.Equal(t, "3,8,10-12", idRanges(ids))
	require.Equal(t, "0,2,4,6,8,10,... (7)", idRanges([]table.FragmentID{0, 2, 4, 6, 8, 10, 12}))
	require.Empty(t, idRanges(nil))
	for _, text := range []string{"", "x", "-1", "5-", "7-6", "0-4294967295", "4294967296", "1-2-3"} {
		_, err := parseFragments([]string{text})
		require.Equal(t, ExitUsage, ExitCode(err), "%q", text)
	}
}

func TestFlagsBecomeOptions(t *testing.T) {
	parse := func(args ...string) (compaction.Options, error) {
		var f compactFlags
		cmd := &cobra.Command{}
		f.register(cmd)
		if err := cmd.ParseFlags(args); err != nil {
			return compaction.Options{}, flagError(cmd, err)
		}
		return f.options()
	}
	var defaults compaction.Options
	defaults.EnsureDefaults()
	got, err := parse()
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%+v", defaults), fmt.Sprintf("%+v", got), "no flag means the defaults")

	got, err = parse("--target-rows=5", "--max-bytes-per-file=1MiB", "--deletion-threshold=0", "--max-source-rows=6", "--max-source-bytes=2k",
		"--max-source-fragments=7", "--exclude-fragments=1,2", "--threads=3", "--memory-limit=1g", "--no-sync", "--keep-cached", "--mode=reencode",
		"--fri=always", "--index-policy=through", "--force")
	require.NoError(t, err)
	want := compaction.Options{
		TargetRows: 5, MaxBytesPerFile: 1 << 20, AnyDeletion: true, MaxSourceRows: 6, MaxSourceBytes: 2048,
		MaxSourceFragments: 7, ExcludeFragments: []table.FragmentID{1, 2}, Threads: 3, MemoryLimit: 1 << 30, NoSync: true, KeepCached: true,
		Mode: compaction.ModeReencode, FRI: compaction.FRIAlways, IndexPolicy: compaction.IndexThrough, Force: true,
	}
	want.EnsureDefaults()
	require.Equal(t, fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got))

	got, err = parse("--mode=copy")
	require.NoError(t, err)
	require.Equal(t, compaction.ModeCopy, got.Mode)
	for _, args := range [][]string{{"--mode=x"}, {"--max-source-rows=0"}, {"--memory-limit=0"}, {"--threads=5000"}, {"--exclude-fragments=a"}} {
		_, err := parse(args...)
		require.Equal(t, ExitUsage, ExitCode(err), "%v", args)
	}
}

func TestJSONIsRecognisedOnALineThatDoesNotParse(t *testing.T) {
	require.True(t, wantsJSON([]string{"compact", "--bogus", "--json"}))
	require.False(t, wantsJSON([]string{"scan", "--", "--json"}))
	require.False(t, wantsJSON([]string{"--json", "--json=false"}))
}

func TestProgressElsewhereIsALineNowAndThen(t *testing.T) {
	var out bytes.Buffer
	a := &app{Options: Options{Stderr: &out}}
	p := a.startProgress("compacting", 1000, size, true)
	clock := time.Now()
	p.now = func() time.Time { return clock }
	p.set(10)
	require.Empty(t, out.String(), "work that is over at once shows nothing")
	clock = clock.Add(3 * time.Second)
	p.add(490)
	p.add(1)
	clock = clock.Add(nextLine)
	p.set(5000)
	p.finish()
	require.Equal(t, "compacting: 500 B of 1000 B (50%)\ncompacting: 1000 B of 1000 B (100%)\n", out.String())

	require.Nil(t, a.startProgress("x", 10, size, false))
	var none *progress
	none.add(1)
	none.set(1)
	none.finish()
}

// TestReport24StepsOfARowChange: each step of a change is shown as a compaction is, and
// begins again with another attempt.
func TestReport24StepsOfARowChange(t *testing.T) {
	var out bytes.Buffer
	a := &app{Options: Options{Stderr: &out}}
	s := a.steps(true)
	ev := s.events()
	at := func(step dml.Step, rows, total uint64) {
		ev.Progress(dml.ProgressInfo{Step: step, Rows: rows, Total: total})
		s.bar.next = time.Time{} // it is time for another line
	}
	ev.ComputeBegin(dml.ComputeInfo{})
	at(dml.Matching, 1, 1000)
	at(dml.Matching, 500, 1000)
	at(dml.Matching, 400, 1000) // overtaken by another thread
	at(dml.Writing, 1, 20)
	at(dml.Writing, 20, 20)
	ev.ComputeBegin(dml.ComputeInfo{})
	at(dml.Matching, 1, 1000)
	at(dml.Matching, 2, 1000)
	s.finish()
	require.Equal(t, `looking for rows: 500 rows of 1,000 rows (50%)
looking for rows: 500 rows of 1,000 rows (50%)
writing rows: 20 rows of 20 rows (100%)
looking for rows: 2 rows of 1,000 rows (0.2%)
`, out.String())

	quiet := a.steps(false)
	quiet.events().Progress(dml.ProgressInfo{Rows: 1, Total: 2})
	require.Nil(t, quiet.bar)
	quiet.finish()
}
