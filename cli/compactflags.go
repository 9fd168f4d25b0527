package cli

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/table"
)

// mostThreads is more than any machine has use for; each takes memory.
const mostThreads = 4096

// compactFlags are the compaction options as flags, shared by plan and compact.
type compactFlags struct {
	targetRows      uint64
	maxBytesPerFile byteSize
	threshold       share
	maxSourceRows   uint64
	maxSourceBytes  byteSize
	maxSourceFrags  uint64
	exclude         []string
	threads         uint64
	memoryLimit     byteSize
	noSync          bool
	keepCached      bool
	mode            string
	fri             string
	policy          string
	force           bool
	keepOrder       bool
	maxTransitions  int
	cmd             *cobra.Command
}

func (f *compactFlags) register(cmd *cobra.Command) {
	f.cmd = cmd
	set := cmd.Flags()
	var defaults compaction.Options
	defaults.EnsureDefaults()
	f.maxBytesPerFile = byteSize(defaults.MaxBytesPerFile)
	set.SortFlags = false
	f.targetRows, f.threshold = defaults.TargetRows, share(defaults.DeletionThreshold)
	f.maxSourceFrags, f.threads = 0, 0
	set.Var(number(&f.targetRows, 1, 1<<31), "target-rows", "a full fragment has this many `rows`; smaller neighbours are merged")
	set.Var(&f.maxBytesPerFile, "max-bytes-per-file", "size of a full data file, roughly")
	set.Var(&f.threshold, "deletion-threshold", "`share` of deleted rows, 0 to 1, above which a fragment is rewritten by itself; 1 is never")
	set.Var(number(&f.maxSourceRows, 1, math.MaxUint64), "max-source-rows", "take at most this many `rows` in this run (default: all)")
	set.Var(&f.maxSourceBytes, "max-source-bytes", "take at most this many bytes in this run (default: all)")
	set.Var(number(&f.maxSourceFrags, 1, math.MaxInt), "max-source-fragments", "take at most this many `fragments` in this run (default: all)")
	set.StringSliceVar(&f.exclude, "exclude-fragments", nil, "leave the fragments with these `ids` alone: 3,8 or 10-19")
	set.Var(number(&f.threads, 1, mostThreads), "threads", "`number` of tasks and columns worked on at a time (default: the CPUs)")
	set.Var(&f.memoryLimit, "memory-limit", "bytes to hold at a time, roughly (default: a few pages a column)")
	set.BoolVar(&f.noSync, "no-sync", false, "let the system flush data files when it likes; the manifest is always synced")
	set.BoolVar(&f.keepCached, "keep-cached", false, "leave large new files in the system's page cache")
	set.StringVar(&f.mode, "mode", string(defaults.Mode), "`how` bytes are rewritten: auto, copy or reencode")
	set.StringVar(&f.fri, "fri", string(defaults.FRI), "`when` to publish a fragment reuse index: auto, always or never")
	set.StringVar(&f.policy, "index-policy", string(defaults.IndexPolicy), "`what` happens to indexes: auto, leave, through or remap")
	set.IntVar(&f.maxTransitions, "max-transitions", defaults.MaxTransitions, "trim the fragment reuse index beyond this `number` of transitions; -1: never")
	set.BoolVar(&f.keepOrder, "keep-order", false, "leave alone what cannot be rewritten without changing the order in which rows are scanned")
	set.BoolVar(&f.force, "force", false, "publish also what some stock engine is known to answer wrongly")
	for _, name := range []string{"max-source-rows", "max-source-bytes", "max-source-fragments", "threads", "memory-limit"} {
		set.Lookup(name).DefValue = "" // 0 stands for the default that the text names
	}
}

// options returns the compaction options that the flags ask for.
func (f *compactFlags) options() (compaction.Options, error) {
	exclude, err := parseFragments(f.exclude)
	if err != nil {
		return compaction.Options{}, err
	}
	// In the options a zero means the default; typed out it is a wish that makes
	// no sense.
	for _, name := range []string{"max-bytes-per-file", "max-source-bytes", "memory-limit", "max-transitions"} {
		if flag := f.cmd.Flags().Lookup(name); flag.Changed && flag.Value.String() == "0" {
			return compaction.Options{}, usagef("--%s: 0 is out of range: want 1 or more; leave the flag out for the default", name)
		}
	}
	opts := compaction.Options{
		TargetRows:         f.targetRows,
		MaxBytesPerFile:    uint64(f.maxBytesPerFile),
		DeletionThreshold:  float64(f.threshold),
		AnyDeletion:        f.threshold == 0,
		MaxSourceRows:      f.maxSourceRows,
		MaxSourceBytes:     uint64(f.maxSourceBytes),
		MaxSourceFragments: int(f.maxSourceFrags),
		ExcludeFragments:   exclude,
		Threads:            int(f.threads),
		MemoryLimit:        uint64(f.memoryLimit),
		NoSync:             f.noSync,
		KeepCached:         f.keepCached,
		Mode:               compaction.Mode(f.mode),
		FRI:                compaction.FRIMode(f.fri),
		IndexPolicy:        compaction.IndexPolicy(f.policy),
		Force:              f.force,
		KeepOrder:          f.keepOrder,
		MaxTransitions:     f.maxTransitions,
	}
	opts.EnsureDefaults()
	switch err := opts.Validate(); {
	case err == nil:
		return opts, nil
	case errors.Is(err, table.ErrUnsupported):
		return opts, err
	default:
		return opts, &usageError{err}
	}
}

// checkExcluded refuses fragments to exclude that the version does not have: whoever
// names one believes it safe. A range is good if it has some.
func (f *compactFlags) checkExcluded(s *table.Snapshot) error {
	for _, item := range f.exclude {
		ids, err := parseFragments([]string{item})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(s.Fragments, func(x table.Fragment) bool { return x.ID >= ids[0] && x.ID <= ids[len(ids)-1] }) {
			continue
		}
		return usagef("--exclude-fragments: version %d of table %s has no fragment %s; it has %s",
			s.Version, s.Table, strings.TrimSpace(item), orNothing(idRanges(sorted(fragmentIDs(s)))))
	}
	return nil
}

// parseFragments reads fragment ids and ranges of them, ends included.
func parseFragments(list []string) ([]table.FragmentID, error) {
	// More than any table has; a typing error must not fill the memory.
	const limit = 1 << 20
	var ids []table.FragmentID
	for _, item := range list {
		first, last, ranged := strings.Cut(strings.TrimSpace(item), "-")
		from, err := strconv.ParseUint(first, 10, 32)
		to := from
		if err == nil && ranged {
			to, err = strconv.ParseUint(last, 10, 32)
		}
		switch {
		case err != nil:
			return nil, usagef("--exclude-fragments: %q is no fragment id and no range like 10-19", item)
		case to < from:
			return nil, usagef("--exclude-fragments: the range %q ends before it starts", item)
		case to-from >= limit || len(ids) > limit:
			return nil, usagef("--exclude-fragments: %q: more than %d fragments", item, limit)
		}
		for id := from; id <= to; id++ {
			ids = append(ids, table.FragmentID(id))
		}
	}
	return ids, nil
}
