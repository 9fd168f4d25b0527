package compaction

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// Planned is what a compaction of one version would do. It is plain data.
type Planned struct {
	Table       string `json:"table"`
	ReadVersion uint64 `json:"read_version"`
	// Tasks in table order of their first fragments.
	Tasks []Task `json:"tasks"`
	// Decision is how the table's indexes would fare.
	Decision Decision `json:"decision"`
	// KeepsOrder says that a scan reads the rows in the same order before and after.
	// New fragments come last, so the order changes if a fragment after a rewritten one
	// stays.
	KeepsOrder bool `json:"keeps_order"`
	// Kept says why each of the other fragments stays as it is.
	Kept []Kept `json:"kept"`
}

// Kept is a fragment that a plan leaves alone.
type Kept struct {
	Fragment table.FragmentID `json:"fragment"`
	Reason   string           `json:"reason"`
}

// The reasons for leaving a fragment alone.
const (
	keptFull     = "large enough and not too many rows deleted"
	keptExcluded = "excluded"
	keptEmpty    = "holds no rows, not even deleted ones"
	keptNoGain   = "merging it with its neighbours would not save a quarter of the fragments"
	keptOrder    = "rewriting it would change the order in which rows are scanned"
	keptBound    = "over the bound on what one run takes"
)

// A fragment whose size in bytes reaches this share of a full one is full. Less
// than 1 because a writer closes files at about the size asked for.
const fullByBytes = 0.75

// What is left over when a group's rows are shared among its files may enlarge
// them by this share of the target.
const overshoot = 1.0 / 8

// A rewrite copies every row of a group, so that it has to save a quarter of the
// fragments: what becomes at most this share of them is worth it. Merging less than
// that would copy most rows again with every few fragments that come.
const worthwhile = 3.0 / 4

// A writer's bound on bytes is this many times what is wanted on average, so that files
// are closed by their rows, whose number is chosen for that average. The bound is for
// rows that are much larger than the rest.
const aboveAverage = 1.5

// Plan chooses what to compact in s. It is pure: it reads nothing but the snapshot.
//
// A fragment is a candidate because too many of its rows are deleted, or because
// it is small: fewer physical rows than the target, and fewer bytes. Plan groups
// candidates with their neighbours. Two candidates are neighbours if no other candidate
// lies between them: new fragments go to the end of the table, so a full fragment
// between two small ones does not keep them apart. A scan may therefore read the rows in
// another order afterwards: [Planned].KeepsOrder tells, and with
// [Options].KeepOrder Plan leaves out what would change it. When indexes can be read
// through a fragment reuse index, or hold stable row ids, candidates share a group only
// if the same indexes cover them. A group is worth rewriting if it holds a candidate of
// the first kind or saves a quarter of its fragments.
//
// Groups are cut so that compacting twice in a row finds nothing to do the second
// time: every group but the last is cut where its rows fill a whole number of
// files, or a little more that these files then share, and only the last leaves a
// file that is not full. (Cutting as soon as a group can fill one file, and
// writing what is over into a small file of its own, walls up such files between
// full ones.)
//
// A policy that makes readers answer wrongly is [table.ErrUnsupported].
func Plan(s *table.Snapshot, opts Options) (Planned, error) {
	return plan(s, indexView{indexes: s.Indexes}, opts)
}

func plan(s *table.Snapshot, v indexView, opts Options) (Planned, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return Planned{}, err
	}
	p := planner{snapshot: s, indexes: v.indexes, opts: opts, excluded: map[table.FragmentID]bool{}, kept: map[table.FragmentID]string{}}
	for _, id := range opts.ExcludeFragments {
		p.excluded[id] = true
	}
	// Where indexes can be read through a fragment reuse index, groups are formed
	// so that they will be, also if it then turns out that none of them covers a
	// group and nothing is to be read through: mixing covered fragments with others
	// would give up, for a few fragments less, what the compaction before this one
	// took care to keep.
	d, err := choose(s, v, opts.publishing(), true)
	if err != nil {
		return Planned{}, err
	}
	groups := p.groups(d.retargets())
	if opts.KeepOrder {
		groups = p.inOrder(groups)
	}
	if d, err = decide(s, v, opts.publishing(), groups.ids(), anyGain(v.indexes, groups.ids())); err != nil {
		return Planned{}, err
	}
	out := Planned{Table: s.Table, ReadVersion: s.Version, Decision: d, Tasks: []Task{}, Kept: []Kept{}, KeepsOrder: keepsOrder(s, groups.ids())}
	fields := rebase.ShapeOf(s.Schema)
	for _, g := range groups {
		out.Tasks = append(out.Tasks, p.task(g, fields))
	}
	for _, f := range s.Fragments {
		if reason := p.kept[f.ID]; reason != "" {
			out.Kept = append(out.Kept, Kept{Fragment: f.ID, Reason: reason})
		}
	}
	return out, nil
}

type planner struct {
	snapshot *table.Snapshot
	indexes  []table.IndexMeta
	opts     Options
	excluded map[table.FragmentID]bool
	// kept is why a fragment is in no group; empty if it is in one.
	kept map[table.FragmentID]string
}

// candidate is a fragment that may be rewritten.
type candidate struct {
	fragment table.Fragment
	// dead says that its deleted rows alone are reason enough.
	dead bool
}

// candidates are a run or a group of them.
type candidates []candidate

// grouping is the groups of a plan, in order.
type grouping []group

// group is some candidates and the bounds of the files they become.
type group struct {
	members           candidates
	sum               sum
	maxRows, maxBytes uint64
}

func (gs grouping) ids() [][]table.FragmentID {
	out := make([][]table.FragmentID, len(gs))
	for i, g := range gs {
		for _, c := range g.members {
			out[i] = append(out[i], c.fragment.ID)
		}
	}
	return out
}

// groups plans; bySignature keeps fragments apart that different indexes cover.
func (p *planner) groups(bySignature bool) grouping {
	clear(p.kept)
	var out grouping
	for _, run := range p.runs(bySignature) {
		out = append(out, p.cut(run)...)
	}
	// Table order, since the runs of different signatures interleave.
	slices.SortStableFunc(out, func(a, b group) int {
		return cmp.Compare(a.members[0].fragment.ID, b.members[0].fragment.ID)
	})
	return p.bound(out)
}

// runs collects the candidates that may share groups, in table order.
func (p *planner) runs(bySignature bool) []candidates {
	var runs []candidates
	may := retargetable(p.snapshot)
	open := map[string]int{} // the run that a signature's next candidate joins
	for _, f := range p.snapshot.Fragments {
		c, why := p.candidate(f)
		if why != "" {
			p.kept[f.ID] = why
			if p.opts.KeepOrder && f.LiveRows() > 0 {
				clear(open) // it would come before what its two sides become
			}
			continue
		}
		var key string
		if bySignature {
			key = signature(p.indexes, may, f.ID)
		}
		i, ok := open[key]
		if !ok && p.opts.KeepOrder {
			clear(open)
		}
		// Survivors are recorded by ascending address, so rows of a fragment with
		// a smaller id cannot follow in the same group.
		if !ok || runs[i][len(runs[i])-1].fragment.ID > f.ID {
			i = len(runs)
			open[key] = i
			runs = append(runs, nil)
		}
		runs[i] = append(runs[i], c)
	}
	return runs
}

// candidate says why a fragment may not be rewritten, if it may not.
func (p *planner) candidate(f table.Fragment) (candidate, string) {
	c := candidate{fragment: f}
	c.dead = p.opts.AnyDeletion && f.DeletedRows() > 0 || p.opts.DeletionThreshold < 1 && f.PhysicalRows > 0 &&
		float64(f.DeletedRows())/float64(f.PhysicalRows) > p.opts.DeletionThreshold
	small := !p.full(f.PhysicalRows, float64(f.Bytes()))
	switch {
	case p.excluded[f.ID]:
		return c, keptExcluded
	case f.PhysicalRows == 0:
		// Readers of a fragment reuse index stumble over a source without rows.
		return c, keptEmpty
	case !c.dead && !small:
		return c, keptFull
	}
	return c, ""
}

// full reports whether a fragment of so many rows and bytes is large enough.
func (p *planner) full(rows uint64, bytes float64) bool {
	return rows >= p.opts.TargetRows || bytes >= fullByBytes*float64(p.opts.MaxBytesPerFile)
}

// files is how many full files the live rows amount to.
func (p *planner) files(s sum) float64 {
	return max(float64(s.rows)/float64(p.opts.TargetRows), float64(s.bytes)/float64(p.opts.MaxBytesPerFile))
}

// liveBytes is an estimate: all rows are taken to be alike.
func liveBytes(f table.Fragment) uint64 {
	if f.PhysicalRows == 0 {
		return 0
	}
	return uint64(float64(f.Bytes()) * (float64(f.LiveRows()) / float64(f.PhysicalRows)))
}

// cut divides a run into groups, as the comment on Plan says.
func (p *planner) cut(run candidates) (out grouping) {
	left := run.sum()
	start := 0
	var taken sum
	for i, c := range run {
		taken.add(c)
		rest := sum{rows: left.rows - taken.rows, bytes: left.bytes - taken.bytes}
		if p.files(rest) < 1 {
			break
		}
		if g, ok := p.whole(run[start:i+1], taken); ok {
			out = append(out, g)
			start, left, taken = i+1, rest, sum{}
		}
	}
	if g, ok := p.last(run[start:]); ok {
		return append(out, g)
	}
	p.keep(run[start:], keptNoGain)
	return out
}

// whole makes a group of members, which have the given sum, if they fill a whole
// number of files or little more.
func (p *planner) whole(members candidates, s sum) (group, bool) {
	files := p.files(s)
	n := uint64(files)
	if n < 1 || files/float64(n) > 1+overshoot || !s.worth(n) {
		return group{}, false
	}
	g := group{members: members, sum: s, maxRows: (s.rows + n - 1) / n, maxBytes: p.maxBytes(1 + overshoot)}
	// Sharing rounds up, so that the last file gets fewer rows than the others,
	// and must not become a small one by that.
	last := s.rows - (g.files()-1)*g.maxRows
	return g, p.full(last, float64(s.bytes)*float64(last)/float64(s.rows))
}

// last makes a group of what remains of a run, if that is worthwhile.
func (p *planner) last(members candidates) (group, bool) {
	s := members.sum()
	if g, ok := p.whole(members, s); ok {
		return g, true
	}
	g := group{members: members, sum: s, maxRows: p.opts.TargetRows, maxBytes: p.maxBytes(1)}
	// Files that are full by bytes are closed by rows all the same, at the number
	// of rows that has so many bytes on average: writers differ in how they
	// estimate bytes, and one that closes files too early would always make
	// small files again.
	if perFile := float64(p.opts.MaxBytesPerFile) * float64(s.rows) / float64(s.bytes); perFile < float64(g.maxRows) {
		g.maxRows = max(1, uint64(math.Ceil(perFile)))
	}
	return g, s.worth(g.files())
}

// maxBytes is the writer's bound, of which rows are to stay clear on average.
func (p *planner) maxBytes(stretch float64) uint64 {
	return uint64(min(float64(p.opts.MaxBytesPerFile)*stretch*aboveAverage, math.MaxInt64))
}

func (p *planner) keep(cs candidates, reason string) {
	for _, c := range cs {
		p.kept[c.fragment.ID] = reason
	}
}

// files is the number of fragments that the group becomes.
func (g group) files() uint64 { return (g.sum.rows + g.maxRows - 1) / g.maxRows }

// sum is what some candidates amount to.
type sum struct {
	fragments, dead uint64
	rows, bytes     uint64 // of live rows; bytes estimated
}

func (s *sum) add(c candidate) {
	s.fragments++
	if c.dead {
		s.dead++
	}
	s.rows += c.fragment.LiveRows()
	s.bytes += liveBytes(c.fragment)
}

func (cs candidates) sum() (s sum) {
	for _, c := range cs {
		s.add(c)
	}
	return s
}

// worth reports whether making n fragments of the candidates gets rid of deleted
// rows that are too many, or of enough fragments to be worth copying all rows.
func (s sum) worth(n uint64) bool {
	return s.dead > 0 || s.fragments > 0 && float64(n) <= worthwhile*float64(s.fragments)
}

// bound keeps what one run may take: the fragments, group after group, that fit
// into what is left of it.
func (p *planner) bound(groups grouping) (out grouping) {
	fragments, rows, bytes := p.opts.MaxSourceFragments, p.opts.MaxSourceRows, p.opts.MaxSourceBytes
	for _, g := range groups {
		var fit candidates
		restRows, restBytes := rows, bytes
		for _, c := range g.members {
			if len(fit) == fragments || c.fragment.LiveRows() > restRows || c.fragment.Bytes() > restBytes {
				p.kept[c.fragment.ID] = keptBound
				continue
			}
			fit = append(fit, c)
			restRows, restBytes = restRows-c.fragment.LiveRows(), restBytes-c.fragment.Bytes()
		}
		if len(fit) < len(g.members) {
			var ok bool
			if g, ok = p.last(fit); !ok {
				p.keep(fit, keptBound)
				continue
			}
		}
		fragments, rows, bytes = fragments-len(fit), restRows, restBytes
		out = append(out, g)
	}
	return out
}

// task describes a group for its executor.
func (p *planner) task(g group, fields rebase.Shape) Task {
	t := Task{
		Table:       p.snapshot.Table,
		ReadVersion: p.snapshot.Version,
		Fields:      fields,
		Files:       g.files(),
		Writing: Writing{
			MaxRows: g.maxRows, MaxBytes: g.maxBytes, Mode: p.opts.Mode, NoSync: p.opts.NoSync, KeepCached: p.opts.KeepCached,
			Threads: p.opts.Threads, MemoryLimit: p.opts.MemoryLimit,
		},
		Publishing: p.opts.publishing(),
	}
	for _, c := range g.members {
		t.Sources = append(t.Sources, c.fragment)
		t.Bytes += c.fragment.Bytes()
	}
	t.Rows = g.sum.rows
	t.Reason = p.reason(g.sum, t.Files)
	return t
}

// reason says why a group of small candidates and dead ones is rewritten.
func (p *planner) reason(s sum, files uint64) string {
	var why []string
	if small := s.fragments - s.dead; small > 0 {
		why = append(why, fmt.Sprintf("%s of fewer than %d rows", plural(small, "fragment"), p.opts.TargetRows))
	}
	switch {
	case s.dead > 0 && p.opts.AnyDeletion:
		why = append(why, plural(s.dead, "fragment")+" with deleted rows")
	case s.dead > 0:
		percent := strconv.FormatFloat(100*p.opts.DeletionThreshold, 'g', 3, 64)
		why = append(why, fmt.Sprintf("%s with more than %s%% of the rows deleted", plural(s.dead, "fragment"), percent))
	}
	if files == 0 {
		return strings.Join(why, " and ") + ": no live row is left"
	}
	return strings.Join(why, " and ") + ": " + strconv.FormatUint(files, 10) + " instead"
}

func plural(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatUint(n, 10) + " " + what + "s"
}
