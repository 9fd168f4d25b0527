package compaction

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/table"
)

// Mode says how the bytes of a group are rewritten.
type Mode string

// The modes.
const (
	// ModeAuto lets the engine copy what is worth copying.
	ModeAuto Mode = "auto"
	// ModeCopy copies every encoded page of which no row is dropped, however small.
	ModeCopy Mode = "copy"
	// ModeReencode decodes every page and encodes the surviving rows anew.
	ModeReencode Mode = "reencode"
)

// pageCopy is the mode in the terms of engines.
func (m Mode) pageCopy() table.PageCopy {
	switch m {
	case ModeCopy:
		return table.CopyAlways
	case ModeReencode:
		return table.CopyNever
	default:
		return table.CopyAuto
	}
}

var modes = []Mode{ModeAuto, ModeCopy, ModeReencode}

const modeNames = "auto, copy, reencode"

// FRIMode says whether a compaction publishes a fragment reuse index.
type FRIMode string

// The fragment reuse index modes.
const (
	// FRIAuto publishes one when the engine's advice and the index policy want it.
	FRIAuto FRIMode = "auto"
	// FRIAlways publishes one, or refuses if some reader would answer wrongly.
	FRIAlways FRIMode = "always"
	// FRINever publishes none.
	FRINever FRIMode = "never"
)

// IndexPolicy says what happens to the secondary indexes that cover rewritten
// fragments; see policy.go.
type IndexPolicy string

// The index policies.
const (
	// IndexAuto decides between the three below by what is right everywhere.
	IndexAuto IndexPolicy = "auto"
	// IndexLeave touches no index: it goes on claiming the fragments that it was
	// built from, and readers scan the rewritten rows.
	IndexLeave IndexPolicy = "leave"
	// IndexThrough publishes a fragment reuse index, and indexes that cover a
	// group wholly go on answering for it through that.
	IndexThrough IndexPolicy = "through"
	// IndexRetarget makes indexes that hold stable row ids claim the new fragments
	// instead of the old ones. IndexAuto chooses it, for tables that have such ids;
	// it cannot be asked for.
	IndexRetarget IndexPolicy = "retarget"
	// IndexRemap rewrites the indexes in the same commit. Not supported yet.
	IndexRemap IndexPolicy = "remap"
)

// Options is everything that a caller can ask of a compaction. The zero value
// means the defaults. Options that decide what is done travel inside the tasks
// that [Plan] makes, so that planning, executing and publishing cannot disagree.
type Options struct {
	// TargetRows is the number of rows of a full fragment. Fragments with fewer
	// physical rows are merged with their neighbours. New fragments are full, but
	// for the last one, and where that would hold less than an eighth of the
	// others' rows, its rows are shared among them. The default is 1048576.
	TargetRows uint64
	// MaxBytesPerFile is the size of a full fragment, whatever its rows: without
	// it a table of large values would be merged again and again. It is kept on
	// average, not exactly. The default is 16 GiB.
	MaxBytesPerFile uint64
	// DeletionThreshold is a share of deleted rows. A fragment with a larger share is
	// rewritten for that alone, even a full one. 1 turns this off, and more is
	// refused. The default is 0.1.
	DeletionThreshold float64
	// AnyDeletion makes a single deleted row enough, whatever DeletionThreshold is. The
	// default is false.
	AnyDeletion bool

	// MaxSourceRows bounds the live rows that one run takes. The default is no
	// bound.
	MaxSourceRows uint64
	// MaxSourceBytes bounds the recorded bytes of the fragments that one run
	// takes. The default is no bound.
	MaxSourceBytes uint64
	// MaxSourceFragments bounds the number of fragments that one run takes. The
	// default is no bound.
	MaxSourceFragments int
	// MaxTransitions bounds the fragment reuse index. If a compaction adds to it and
	// leaves more transitions than this, it trims the index in a separate commit: it
	// drops older transitions that nothing needs, and always keeps the newest
	// MaxTransitions, over which addresses held outside the table stay translatable.
	// Less than 0 means never. The default is 1000.
	MaxTransitions int
	// KeepOrder keeps the order in which a scan reads the rows of the planned version:
	// only the end of the table is rewritten. Even so a scan reads rows that others
	// append during the compaction before the rewritten ones. The default is false.
	KeepOrder bool
	// ExcludeFragments are left alone. The default is none.
	ExcludeFragments []table.FragmentID

	// Threads bounds the parallelism, over tasks and inside them. The default is
	// the number of CPUs.
	Threads int
	// MemoryLimit bounds, roughly, the bytes that the tasks running at one time
	// hold together. The default is the engine's own choice.
	MemoryLimit uint64
	// NoSync leaves flushing of data files to the operating system; see
	// [table.WriteOptions]. The default is false.
	NoSync bool
	// KeepCached leaves large new files in the page cache; see
	// [table.WriteOptions]. The default is false.
	KeepCached bool
	// Mode says how bytes are rewritten. The default is ModeAuto.
	Mode Mode

	// FRI says whether a fragment reuse index is published. The default is
	// FRIAuto.
	FRI FRIMode
	// IndexPolicy says what happens to indexes. The default is IndexAuto.
	IndexPolicy IndexPolicy
	// Advice is the engine's word on when FRIAuto should publish; [Compact] takes
	// it from the engine, a caller of [Plan] from [table.AdvisedReusePolicy]. The
	// default is table.ReuseAlways.
	Advice table.ReusePolicy
	// Force publishes even if some reader is known to answer wrongly then. The
	// default is false.
	Force bool

	// MaxAttempts bounds how often [Publish] tries to commit while other writers
	// are faster. The default is 100.
	MaxAttempts int
	// Events are told what happens. The default is nobody.
	Events Events

	// sleep is time passing; tests replace it. The default is a timer.
	sleep func(context.Context, time.Duration) error
}

// EnsureDefaults replaces zero values by their defaults.
func (o *Options) EnsureDefaults() {
	if o.MaxTransitions == 0 {
		o.MaxTransitions = 1000
	}
	def(&o.TargetRows, 1<<20)
	def(&o.MaxBytesPerFile, 16<<30)
	def(&o.DeletionThreshold, 0.1)
	def(&o.MaxSourceRows, math.MaxUint64)
	def(&o.MaxSourceBytes, math.MaxUint64)
	def(&o.MaxSourceFragments, math.MaxInt)
	def(&o.Threads, runtime.NumCPU())
	def(&o.Mode, ModeAuto)
	def(&o.FRI, FRIAuto)
	def(&o.IndexPolicy, IndexAuto)
	def(&o.MaxAttempts, 100)
	if o.sleep == nil {
		o.sleep = commit.Sleep
	}
	o.Events.EnsureDefaults()
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports the first option that makes no sense, after EnsureDefaults.
// Options that are sensible and not supported yet are [table.ErrUnsupported].
func (o *Options) Validate() error {
	switch {
	case o.TargetRows > 1<<31:
		return fmt.Errorf("compaction: target of %d rows a fragment is above 2^31: row offsets have 32 bits", o.TargetRows)
	case !(o.DeletionThreshold >= 0 && o.DeletionThreshold <= 1):
		return fmt.Errorf("compaction: deletion threshold %v is not a share of the rows: want 0 to 1", o.DeletionThreshold)
	case o.MaxSourceFragments < 0 || o.Threads < 0 || o.MaxAttempts < 0:
		return fmt.Errorf("compaction: negative bound: source fragments %d, threads %d, attempts %d", o.MaxSourceFragments, o.Threads, o.MaxAttempts)
	case !slices.Contains(modes, o.Mode):
		return fmt.Errorf("compaction: mode %q is none of %s", o.Mode, modeNames)
	}
	return o.publishing().validate()
}

// publishing is the part of the options that decides what a commit contains.
func (o *Options) publishing() Publishing {
	return Publishing{FRI: o.FRI, IndexPolicy: o.IndexPolicy, Advice: o.Advice, Force: o.Force}
}

// Publishing is the part of [Options] that decides what a commit contains beside
// the rewritten fragments.
type Publishing struct {
	FRI         FRIMode           `json:"fri"`
	IndexPolicy IndexPolicy       `json:"index_policy"`
	Advice      table.ReusePolicy `json:"advice"`
	Force       bool              `json:"force,omitempty"`
}

func (p Publishing) validate() error {
	switch {
	case !slices.Contains([]FRIMode{FRIAuto, FRIAlways, FRINever}, p.FRI):
		return fmt.Errorf("compaction: fragment reuse index mode %q is none of auto, always, never", p.FRI)
	case p.IndexPolicy == IndexRemap:
		return table.Unsupportedf("compaction: index policy remap is not supported yet: indexes cannot be rewritten with the data. " +
			"Use leave, and rebuild or remap the indexes afterwards (the remap service will do that)")
	case !slices.Contains([]IndexPolicy{IndexAuto, IndexLeave, IndexThrough}, p.IndexPolicy):
		return fmt.Errorf("compaction: index policy %q is none of auto, leave, through, remap", p.IndexPolicy)
	case p.IndexPolicy == IndexThrough && p.FRI == FRINever:
		return fmt.Errorf("compaction: index policy through reads through the fragment reuse index, and that is never to be published")
	}
	return nil
}
