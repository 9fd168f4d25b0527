package compaction

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// A compaction moves rows, and every secondary index that covers them holds their old
// addresses. Three policies keep all answers right without rewriting index files; the
// table and its readers decide which of them is right.
//
// Leave. The commit touches no index. Each goes on claiming fragments that are gone,
// which makes readers drop the addresses that point there; no index claims the
// rewritten rows, so readers scan them. This is right for every kind of index and with
// every known reader; it costs the scan, until the index is rebuilt. Coverage must not
// be "cleaned up" on the way: some readers drop stale addresses only as long as the
// index claims the fragment that vanished.
//
// Through. The commit carries a fragment reuse index, and the indexes that can
// be read through it are re-targeted: old fragments out of their coverage, new
// ones in. Kinds that some reader gets wrong behind a fragment reuse index are
// masked: their coverage is emptied, and their rows are scanned. Kinds that a
// reader gets wrong even so (table.ReuseRefuses) forbid the fragment reuse index
// altogether, because it applies to the table and not to one index. An index must
// cover all of a group's fragments or none: the new fragments hold rows of all.
//
// If a table carries a fragment reuse index already, a later compaction may choose
// leave, and rewrite a destination of an earlier transition without recording it. That
// is right, too. An index that reads through the earlier transition translates its
// addresses to the fragment that is now gone. It claims that fragment (readers
// re-target coverage by the transition that translates the addresses), so the argument
// for leave applies unchanged. An index that does not claim the fragment, because it is
// masked, is not asked about it. The recorded history stays as it is: another
// transition would only serve readers that follow those addresses further, and for
// them there is through.
//
// Retarget. Where rows have stable ids, indexes hold the ids, which do not change; the
// commit only makes them claim the new fragments instead of the old ones. No other
// policy is right there: readers would translate ids by a fragment reuse index, and if
// the old claims stayed, some reader would find rows twice, in a vector index and by a
// scan. As with through, an index must cover all of a group or nothing. A kind that
// holds addresses even so (table.IndexMeta.ByAddress) gives up the rewritten fragments,
// and their rows are scanned.

// Action is what a commit does to one index.
type Action string

// The actions.
const (
	// ActionNone: the index covers nothing that was rewritten.
	ActionNone Action = "none"
	// ActionLeft: untouched; rewritten rows are scanned.
	ActionLeft Action = "left"
	// ActionThrough: answers for the new fragments through the fragment reuse index.
	ActionThrough Action = "through"
	// ActionMasked: claims nothing any more; all rows are scanned.
	ActionMasked Action = "masked"
	// ActionRetargeted: claims the new fragments instead of the old ones, and answers
	// for them as before, because it holds row ids.
	ActionRetargeted Action = "retargeted"
	// ActionUncovered: gives up the rewritten fragments; their rows are scanned.
	ActionUncovered Action = "uncovered"
)

// IndexDecision is what happens to one index segment and why.
type IndexDecision struct {
	Segment string `json:"segment"` // its UUID
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Action  Action `json:"action"`
	Reason  string `json:"reason"`
}

// Decision is how a commit treats the table's indexes. It is plain data.
type Decision struct {
	// Policy is IndexLeave, IndexThrough or IndexRetarget.
	Policy IndexPolicy `json:"policy"`
	// PublishFRI says that the commit carries a fragment reuse index.
	PublishFRI bool   `json:"publish_fri"`
	Reason     string `json:"reason"`
	// Forced says that some reader is known to answer wrongly, and that the caller
	// accepted this (Options.Force).
	Forced bool `json:"forced,omitempty"`
	// Indexes has an entry for each segment that indexes data.
	Indexes []IndexDecision `json:"indexes"`
}

// situation is what the rules look at.
type situation struct {
	Publishing
	// indexed says that some index holds data, and gain that some index would answer
	// for a whole group through a fragment reuse index; see anyGain.
	indexed, gain bool
	// obstacle is, in words, what forbids a fragment reuse index.
	obstacle string
}

// demanded says that the caller wants indexes read through a fragment reuse index.
func (t situation) demanded() bool {
	return t.FRI == FRIAlways || t.IndexPolicy == IndexThrough && t.gain
}

// rule is one line of the policy.
type rule struct {
	when    func(situation) bool
	policy  IndexPolicy
	publish bool
	reason  string
	// over is the objection to the policy, empty for none. With one the policy needs
	// Options.Force, or is refused.
	over func(situation) string
}

func (t situation) inTheWay() string { return t.obstacle }

// leftBehind is the objection to a fragment reuse index beside indexes that are left
// alone. Readers re-target coverage by every transition that they find, so they would
// read those indexes through it, also the kinds that must be masked.
const leftBehind = "with a fragment reuse index an untouched index is read through it, whatever its kind (use index policy through, or publish no fragment reuse index)"

// rules are the policy for tables whose indexes hold addresses. The first that applies
// decides.
var rules = []rule{
	{when: func(t situation) bool { return t.FRI == FRINever },
		policy: IndexLeave, reason: "no fragment reuse index is to be published"},

	{when: func(t situation) bool { return !t.indexed && t.FRI == FRIAlways },
		policy: IndexLeave, publish: true, reason: "the table has no index", over: situation.inTheWay},
	{when: func(t situation) bool { return !t.indexed && t.Advice == table.ReuseAlways && t.obstacle == "" },
		policy: IndexLeave, publish: true, reason: "the table has no index"},
	{when: func(t situation) bool { return !t.indexed },
		policy: IndexLeave, reason: "the table has no index"},

	{when: func(t situation) bool { return t.IndexPolicy == IndexLeave && t.FRI == FRIAlways },
		policy: IndexLeave, publish: true, over: func(situation) string { return leftBehind }},
	{when: func(t situation) bool { return t.IndexPolicy == IndexLeave },
		policy: IndexLeave, reason: "indexes are to be left alone"},

	{when: situation.demanded,
		policy: IndexThrough, publish: true, reason: "a fragment reuse index is wanted and every index bears it", over: situation.inTheWay},
	{when: func(t situation) bool { return t.obstacle != "" },
		policy: IndexLeave}, // for that reason
	{when: func(t situation) bool { return t.gain },
		policy: IndexThrough, publish: true, reason: "every index bears a fragment reuse index and some index goes on answering through it"},
	{when: func(t situation) bool { return t.Advice == table.ReuseAlways },
		policy: IndexThrough, publish: true, reason: "every index bears a fragment reuse index and the engine wants every move recorded"},
	{when: func(situation) bool { return true },
		policy: IndexLeave, reason: "no index would answer through a fragment reuse index: none of those that could covers a whole group"},
}

// choose chooses the policy for a rewrite in s. gain says whether some index gains by
// being read through; see anyGain. The error, for a choice that would make some reader
// answer wrongly, is [table.ErrUnsupported].
func choose(s *table.Snapshot, v indexView, p Publishing, gain bool) (Decision, error) {
	if s.StableRowIDs {
		return chooseByID(s, p)
	}
	t := situation{Publishing: p, gain: gain}
	t.indexed, t.obstacle = survey(v)
	r := rules[slices.IndexFunc(rules, func(r rule) bool { return r.when(t) })]
	d := Decision{Policy: r.policy, PublishFRI: r.publish, Reason: cmp.Or(r.reason, t.obstacle), Indexes: []IndexDecision{}}
	if r.over == nil || r.over(t) == "" {
		return d, nil
	}
	// What cannot be written cannot be forced.
	against := cmp.Or(v.obstacle, r.over(t))
	if !p.Force || v.obstacle != "" {
		return d, refusal(s, against, v.obstacle == "")
	}
	d.Forced, d.Reason = true, "forced, although "+against
	return d, nil
}

// decide chooses the policy and says what becomes of each index of s if the given
// groups of fragments are rewritten.
func decide(s *table.Snapshot, v indexView, p Publishing, groups [][]table.FragmentID, gain bool) (Decision, error) {
	d, err := choose(s, v, p, gain)
	if err != nil {
		return d, err
	}
	for _, m := range v.indexes {
		if !m.System {
			d.Indexes = append(d.Indexes, d.of(m, groups))
		}
	}
	return d, nil
}

// chooseByID is choose for a table with stable row ids, which has one right policy.
func chooseByID(s *table.Snapshot, p Publishing) (Decision, error) {
	d := Decision{Policy: IndexRetarget, Indexes: []IndexDecision{}, Reason: "rows keep their ids, which is what indexes hold"}
	switch {
	case p.FRI == FRIAlways || p.IndexPolicy == IndexThrough:
		return d, refusal(s, "rows have stable ids, and readers would translate the ids that indexes hold as if they were addresses", false)
	case p.IndexPolicy == IndexLeave && !p.Force:
		return d, table.Unsupportedf("compaction: table %s version %d has stable row ids: some readers find rows twice if index coverage is left alone there. Use index policy auto", s.Table, s.Version)
	case p.IndexPolicy == IndexLeave:
		d.Policy, d.Forced, d.Reason = IndexLeave, true, "forced, although some readers find rows twice"
	}
	return d, nil
}

func refusal(s *table.Snapshot, obstacle string, forcible bool) error {
	hint := ""
	if forcible {
		hint = ". Force publishes it all the same"
	}
	return table.Unsupportedf("compaction: table %s version %d: a fragment reuse index is refused: %s%s", s.Table, s.Version, obstacle, hint)
}

// survey reports whether any index holds data, and in words what forbids a
// fragment reuse index, if anything does.
func survey(v indexView) (indexed bool, obstacle string) {
	obstacle = v.obstacle
	for _, m := range v.indexes {
		if m.System {
			continue
		}
		indexed = true
		switch {
		case obstacle != "":
		case m.Reuse == table.ReuseRefuses:
			obstacle = fmt.Sprintf("some readers answer wrongly from index %q of kind %s once the table has a fragment reuse index", m.Name, m.Kind)
		case m.Reuse == table.ReuseThrough && !m.CoverageKnown:
			obstacle = fmt.Sprintf("index %q of kind %s does not record which fragments it covers", m.Name, m.Kind)
		}
	}
	return indexed, obstacle
}

// anyGain reports whether some index that can be read through covers a whole
// group, which is then still answered from the index.
func anyGain(indexes []table.IndexMeta, groups [][]table.FragmentID) bool {
	for _, m := range indexes {
		if !readsThrough(m) {
			continue
		}
		for _, g := range groups {
			if covered(m, g) == len(g) && len(g) > 0 {
				return true
			}
		}
	}
	return false
}

// readsThrough reports whether the index can be re-targeted with a fragment reuse
// index.
func readsThrough(m table.IndexMeta) bool {
	return !m.System && m.Reuse == table.ReuseThrough && m.CoverageKnown
}

// holdsIDs reports whether the index can be re-targeted where rows have stable ids.
func holdsIDs(m table.IndexMeta) bool {
	return !m.System && !m.ByAddress && m.CoverageKnown
}

// retargetable is which indexes of s a commit may re-target, if its policy is to
// re-target any. Groups are formed for their sake.
func retargetable(s *table.Snapshot) func(table.IndexMeta) bool {
	if s.StableRowIDs {
		return holdsIDs
	}
	return readsThrough
}

// retargets says whether the policy re-targets indexes.
func (d Decision) retargets() bool { return d.Policy == IndexThrough || d.Policy == IndexRetarget }

// covered counts the fragments that the index claims.
func covered(m table.IndexMeta, ids []table.FragmentID) (n int) {
	for _, id := range ids {
		if m.Covers(id) {
			n++
		}
	}
	return n
}

// of is the decision for one index.
func (d Decision) of(m table.IndexMeta, groups [][]table.FragmentID) IndexDecision {
	out := IndexDecision{Segment: m.UUID.String(), Name: m.Name, Kind: m.Kind, Action: ActionNone, Reason: "covers no fragment that is rewritten"}
	touched := !m.CoverageKnown
	for _, g := range groups {
		touched = touched || covered(m, g) > 0
	}
	switch {
	case d.Policy == IndexThrough && !readsThrough(m):
		// Also when it covers nothing that is rewritten now: its files may hold older
		// addresses, and a mask costs only speed.
		out.Action = ActionMasked
		out.Reason = "some readers answer wrongly from this kind behind a fragment reuse index, so it claims nothing until it is rebuilt"
	case d.Policy == IndexRetarget && touched && m.ByAddress && m.CoverageKnown:
		out.Action = ActionUncovered
		out.Reason = "it holds addresses, so the rewritten rows are scanned until it is rebuilt"
	case d.Policy == IndexRetarget && touched && m.CoverageKnown:
		out.Action = ActionRetargeted
		out.Reason = "it holds row ids, and those did not change"
	case d.Policy == IndexThrough && touched:
		out.Action = ActionThrough
		out.Reason = "its addresses are translated when it is read"
	case touched:
		out.Action = ActionLeft
		out.Reason = "the rewritten rows are scanned until it is rebuilt"
	}
	return out
}

// coverage is what the decision writes into the indexes' coverage. Only ids of
// groups that every index covers wholly or not at all may be given; see straddles.
func (d Decision) coverage(indexes []table.IndexMeta, groups []rebase.Placed) map[table.UUID][]table.FragmentID {
	if !d.retargets() {
		return nil
	}
	out := map[table.UUID][]table.FragmentID{}
	for _, m := range indexes {
		var c []table.FragmentID
		var changed bool
		switch {
		case m.System || d.Policy == IndexRetarget && !m.CoverageKnown:
		case d.Policy == IndexRetarget && m.ByAddress:
			c, changed = uncover(m, groups)
		case d.Policy == IndexRetarget || readsThrough(m):
			c, changed = retarget(m, groups)
		default:
			c, changed = []table.FragmentID{}, len(m.Coverage) > 0 || !m.CoverageKnown
		}
		if changed {
			out[m.UUID] = c
		}
	}
	return out
}
