package compaction

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/rehome-db/rehome/commit"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// TrimOptions says what a trim keeps for unknown readers. A trim always keeps what the
// table's indexes need. It does not know who holds row addresses outside the table (an
// index beside it, a job that read a version and returns to its rows); the options
// provide for them.
type TrimOptions struct {
	// RetainVersions keeps the row addresses of so many versions before the
	// latest translatable. The default is 0.
	RetainVersions uint64
	// ReaderWindow keeps row addresses translatable for so long after the
	// compaction that made them old. The default is 0.
	ReaderWindow time.Duration
	// KeepTransitions keeps the newest so many transitions. The default is 0.
	KeepTransitions int
	// DropDamaged drops the transitions that are damaged, whoever needs them: no row
	// can be followed through one, and readers that do not check take its rows for
	// deleted. Indexes that need one have what it rewrote taken out of what they
	// claim, and the rows are scanned; on a table with stable row ids they claim
	// what it made of them. The default is false.
	DropDamaged bool
	// MaxAttempts bounds the commits tried. The default is that of [Options].
	MaxAttempts int
	// Events are told of attempts. The default is nobody.
	Events Events

	// now and sleep are time; tests replace them.
	now   func() time.Time
	sleep func(context.Context, time.Duration) error
}

// EnsureDefaults sets what is not set.
func (o *TrimOptions) EnsureDefaults() {
	var d Options
	d.EnsureDefaults()
	if o.MaxAttempts == 0 {
		o.MaxAttempts = d.MaxAttempts
	}
	if o.sleep == nil {
		o.sleep = d.sleep
	}
	if o.now == nil {
		o.now = time.Now
	}
	o.Events.EnsureDefaults()
}

// Validate says what is wrong with the options.
func (o *TrimOptions) Validate() error {
	switch {
	case o.ReaderWindow < 0:
		return fmt.Errorf("compaction: trim: ReaderWindow is %v", o.ReaderWindow)
	case o.KeepTransitions < 0:
		return fmt.Errorf("compaction: trim: KeepTransitions is %d", o.KeepTransitions)
	case o.MaxAttempts < 1:
		return fmt.Errorf("compaction: trim: MaxAttempts is %d", o.MaxAttempts)
	}
	return nil
}

// TrimReport is what [Trim] did, or found. It is plain data.
type TrimReport struct {
	Table string `json:"table"`
	// Version is the version that holds the trimmed history, or the latest if
	// nothing was dropped.
	Version   uint64 `json:"version"`
	Committed bool   `json:"committed"`
	// Dropped and Kept are numbers of transitions.
	Dropped int `json:"dropped"`
	Kept    int `json:"kept"`
	// BytesBefore and BytesAfter are the sizes of the history.
	BytesBefore uint64 `json:"bytes_before"`
	BytesAfter  uint64 `json:"bytes_after"`
	// Transitions are all that there were, oldest first.
	Transitions []TrimTransition `json:"transitions"`
	Attempts    int              `json:"attempts"`
}

// TrimTransition is one transition and what becomes of it.
type TrimTransition struct {
	Sources      []table.FragmentID `json:"sources"`
	Destinations []table.FragmentID `json:"destinations"`
	// Committed is the version that published the transition; 0 if that is not known
	// any more, and CommitUnknown says why then.
	Committed     uint64 `json:"committed"`
	CommitUnknown string `json:"commit_unknown,omitempty"`
	// Damage says what is wrong with the transition, if anything is.
	Damage  string `json:"damage,omitempty"`
	Dropped bool   `json:"dropped"`
	// NeededBy names the indexes that may hold addresses from before it.
	NeededBy []string `json:"needed_by"`
	// Reason says in words what keeps it; empty if it is dropped.
	Reason string `json:"reason,omitempty"`
}

// Trim drops the transitions of the table's fragment reuse index that nothing
// needs any more, by the rule of [fri.History.Trim], and commits what is left. If
// that is none, the fragment reuse index goes as a whole. With nothing to drop it
// commits nothing. Only metadata is read and written; an object that holds the
// replaced history stays, for the older versions that refer to it.
//
// At every attempt Trim applies the rule to the version being replaced. So it judges a
// transition that a compaction added meanwhile like the others, does not bring back one
// that another trim dropped, and sees an index that was built meanwhile. It cannot see
// an index whose build began before a compaction and is committed after the trim;
// engines refuse such a commit, because its fragments are gone.
//
// The error is a table.ErrUnsupported if this release does not understand all of
// the history, and a table.ErrAmbiguousCommit if nobody can tell whether the trim
// was committed: to trim again is then harmless.
func Trim(ctx context.Context, e table.Engine, opts TrimOptions) (TrimReport, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return TrimReport{}, err
	}
	t := trimmer{engine: e, opts: opts, commits: newCommitFinder(e)}
	l := commit.Loop{Engine: e, By: "compaction", ID: uuid.NewString(), Fresh: true, MaxAttempts: opts.MaxAttempts, Sleep: opts.sleep, Hooks: hooks(opts.Events)}
	done, err := l.Commit(ctx, func(ctx context.Context, w commit.Window) (*table.Proposal, error) {
		l.Table = w.Base.Table
		p, err := t.plan(ctx, w.Base)
		if err != nil || len(p.dropped) == 0 {
			return nil, err
		}
		return &table.Proposal{
			Base:        w.Base,
			Transaction: table.Transaction{ID: l.ID, ReadVersion: w.Base.Version, Operation: table.CreateIndex{}},
			Change:      p.change(),
		}, nil
	})
	if err != nil {
		if errors.Is(err, table.ErrAmbiguousCommit) {
			err = fmt.Errorf("compaction: table %s: whether trim %s was committed is unknown; to trim again does no harm: %w", l.Table, l.ID, err)
		}
		return TrimReport{}, err
	}
	report := t.last.report(done.Version)
	report.Committed, report.Attempts = !done.Nothing, l.Attempts()
	if done.Lost != nil {
		return report, done.Lost
	}
	return report, nil
}

// PlanTrim says what [Trim] would do to the history of a version, and why. Options
// about committing do not matter.
func PlanTrim(ctx context.Context, e table.Engine, s *table.Snapshot, opts TrimOptions) (TrimReport, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return TrimReport{}, err
	}
	t := trimmer{engine: e, opts: opts, commits: newCommitFinder(e)}
	p, err := t.plan(ctx, s)
	if err != nil {
		return TrimReport{}, err
	}
	return p.report(s.Version), nil
}

// trimmer is one trim, over all its attempts.
type trimmer struct {
	engine  table.Engine
	opts    TrimOptions
	commits *commitFinder
	last    trimPlan
}

// trimPlan is what the rule says of one version.
type trimPlan struct {
	base    *table.Snapshot
	history *fri.History
	commits []fri.Commit
	needs   []fri.Need
	kept    *fri.History
	dropped []int
	// made and gone are, of each transition, what its commit added and removed, where
	// that is known.
	made, gone [][]table.FragmentID
	// coverage is what indexes claim when it is dropped, where that changes.
	coverage map[table.UUID][]table.FragmentID
}

func (t *trimmer) plan(ctx context.Context, base *table.Snapshot) (trimPlan, error) {
	p := trimPlan{base: base}
	fail := func(err error) (trimPlan, error) {
		return p, fmt.Errorf("compaction: table %s version %d: trim: %w", base.Table, base.Version, err)
	}
	var err error
	if p.history, err = readHistory(ctx, t.engine, base); err != nil {
		return p, err
	}
	var times []time.Time
	for _, tr := range p.history.All() {
		c, at, err := t.commits.find(ctx, base, tr)
		if err != nil {
			return fail(err)
		}
		made, gone := t.commits.changed(c.Version)
		p.commits, times = append(p.commits, c), append(times, at)
		p.made, p.gone = append(p.made, made), append(p.gone, gone)
	}
	trimming := fri.Trimming{Indexes: base.Indexes, Commits: p.commits, OldestReader: t.oldestReader(base, p.commits, times), ClaimDoubts: true, DropDamaged: t.opts.DropDamaged}
	if p.needs, err = p.history.Needs(trimming); err != nil {
		return fail(err)
	}
	if p.kept, p.dropped, err = p.history.Trim(trimming); err != nil {
		return fail(err)
	}
	if p.coverage, err = p.claims(); err != nil {
		return fail(err)
	}
	t.last = p
	return p, nil
}

// oldestReader is the oldest version that the options keep translatable, 0 for
// none.
func (t *trimmer) oldestReader(base *table.Snapshot, commits []fri.Commit, times []time.Time) uint64 {
	var oldest uint64
	keep := func(v uint64) {
		if v = max(v, 1); oldest == 0 || v < oldest {
			oldest = v
		}
	}
	if n := t.opts.RetainVersions; n > 0 {
		keep(base.Version - min(n, base.Version))
	}
	if n := t.opts.KeepTransitions; n > 0 {
		keep(base.Version) // for the transitions of which nothing is known
		for _, c := range commits[max(0, len(commits)-n):] {
			if c.Version > 0 {
				keep(c.Version - 1)
			}
		}
	}
	if t.opts.ReaderWindow > 0 {
		keep(base.Version) // for the transitions of which nothing is known
		since := t.opts.now().Add(-t.opts.ReaderWindow)
		for i, c := range commits {
			// Its sources could be read until it was committed.
			if c.Version > 0 && times[i].After(since) {
				keep(c.Version - 1)
			}
		}
	}
	return oldest
}

// change replaces the history by what is kept.
func (p trimPlan) change() table.Change {
	content := p.kept.Encode()
	if len(content) == 0 {
		return table.Change{DropReuse: true, SetCoverage: p.coverage}
	}
	up := &table.ReuseIndexUpdate{Content: content, IndexVersion: p.kept.IndexVersion()}
	for _, tr := range p.kept.All() {
		if !tr.Followed() {
			continue
		}
		for _, d := range tr.Destinations() {
			up.Coverage = append(up.Coverage, d.ID)
		}
	}
	slices.Sort(up.Coverage)
	return table.Change{Reuse: up, SetCoverage: p.coverage}
}

func (p trimPlan) report(version uint64) TrimReport {
	r := TrimReport{
		Table: p.base.Table, Version: version, Dropped: len(p.dropped), Kept: p.kept.Len(),
		BytesAfter: uint64(len(p.kept.Encode())), Transitions: []TrimTransition{},
	}
	if p.base.Reuse != nil {
		r.BytesBefore = p.base.Reuse.Bytes
	}
	for i, tr := range p.history.All() {
		x := TrimTransition{
			Sources: digestIDs(tr.Sources()), Destinations: digestIDs(tr.Destinations()),
			CommitUnknown: commitText(p.commits[i]), NeededBy: p.needs[i].IndexNames(),
		}
		if x.CommitUnknown == "" {
			x.Committed = p.commits[i].Version
		}
		if damage := p.history.Damage(i); damage != nil {
			x.Damage = damage.Error()
		}
		if x.Dropped = !p.needs[i].Needed(); !x.Dropped {
			x.Reason = p.needs[i].String()
		}
		r.Transitions = append(r.Transitions, x)
	}
	return r
}

func digestIDs(ds []fri.Digest) []table.FragmentID {
	ids := make([]table.FragmentID, len(ds))
	for i, d := range ds {
		ids[i] = d.ID
	}
	return ids
}
