package compaction

import (
	"fmt"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// A compaction moves rows, and every secondary index that covers them holds their
// old addresses. There are three ways to keep all answers right without
// rewriting index files, and which of them is right depends on the table, and on who
// reads it.
//
// Leave. No index is touched. It goes on claiming fragments that are gone, which
// is what makes readers drop the addresses that point there, and the rewritten
// rows, claimed by no index, are scanned. Right for every kind of index and with
// every reader known; the cost is the scan, until the index is rebuilt. Coverage
// must not be "cleaned up" on the way: some readers drop stale addresses only as
// long as the fragment that vanished is still claimed.
//
// Through. The commit carries a fragment reuse index, and the indexes that can
// be read through it are re-targeted: old fragments out of their coverage, new
// ones in. Kinds that some reader gets wrong behind a fragment reuse index are
// masked: their coverage is emptied, and their rows are scanned. Kinds that a
// reader gets wrong even so (table.ReuseRefuses) forbid the fragment reuse index
// altogether, because it applies to the table and not to one index. An index must
// cover all of a group's fragments or none: the new fragments hold rows of all.
//
// A table may carry a fragment reuse index already and a later compaction choose
// leave, which rewrites a destination of an earlier transition without recording
// it. That is right, too. An index that reads through the earlier transition
// translates its addresses to the fragment that is now gone; it claims that
// fragment (readers re-target coverage by the same transition that translates the
// addresses) and so the argument for leave applies unchanged. An index that does
// not claim the fragment, because it is masked, is not asked about it. The
// recorded history stays as it is: a transition more would be needed only by who
// wants those addresses followed further, and that is what through is for.
//
// Retarget. Where rows have stable ids, indexes hold those, which do not move, and
// the new fragments need only be claimed in the place of the old ones. Nothing else
// is right there: a fragment reuse index would be taken for a translation of ids, and
// with the old claims left alone some reader finds rows both in a vector index and by
// scanning them. As with through, an index must cover all of a group or nothing. A
// kind that holds addresses even so (table.IndexMeta.ByAddress) gives up what was
// rewritten, and the rows are scanned.

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
	// Forced says that some reader is known to answer wrongly and that the caller
	// wanted it all the same.
	Forced bool `json:"forced,omitempty"`
	// Indexes has an entry for each segment that indexes data.
	Indexes []IndexDecision `json:"indexes"`
}

// decide chooses the policy for rewriting the given groups of fragments of s. gain
// says whether some index gains by being read through; see anyGain. The error, for
// a choice that would make some reader answer wrongly, is [table.ErrUnsupported].
func decide(s *table.Snapshot, v indexView, p Publishing, groups [][]table.FragmentID, gain bool) (Decision, error) {
	if s.StableRowIDs {
		return decideByID(s, v, p, groups)
	}
	d := Decision{Policy: IndexLeave, Indexes: []IndexDecision{}}
	indexed, obstacle := survey(v)
	// What cannot be written cannot be forced.
	force := p.Force && v.obstacle == ""

	demand := p.FRI == FRIAlways || p.IndexPolicy == IndexThrough && gain
	switch {
	case p.FRI == FRINever:
		d.Reason = "no fragment reuse index is to be published"
	case !indexed && p.FRI == FRIAlways && obstacle != "":
		return d, refusal(s, obstacle, false)
	case !indexed:
		d.PublishFRI = obstacle == "" && (p.FRI == FRIAlways || p.Advice == table.ReuseAlways)
		d.Reason = "the table has no index"
	case p.IndexPolicy == IndexLeave && p.FRI == FRIAlways:
		// Readers re-target coverage by every transition they find, so that what
		// was left is then read through, also by the kinds that must be masked.
		obstacle = "with a fragment reuse index an untouched index is read through it, whatever its kind (use index policy through, or publish no fragment reuse index)"
		if v.obstacle != "" {
			obstacle = v.obstacle
		}
		if !force {
			return d, refusal(s, obstacle, v.obstacle == "")
		}
		d.PublishFRI, d.Forced, d.Reason = true, true, "forced, although "+obstacle
	case p.IndexPolicy == IndexLeave:
		d.Reason = "indexes are to be left alone"
	case obstacle != "" && demand && !force:
		return d, refusal(s, obstacle, v.obstacle == "")
	case obstacle != "" && demand:
		d.Policy, d.PublishFRI, d.Forced = IndexThrough, true, true
		d.Reason = "forced, although " + obstacle
	case obstacle != "":
		d.Reason = obstacle
	case demand:
		d.Policy, d.PublishFRI = IndexThrough, true
		d.Reason = "a fragment reuse index is wanted and every index bears it"
	case gain:
		d.Policy, d.PublishFRI = IndexThrough, true
		d.Reason = "every index bears a fragment reuse index and some index goes on answering through it"
	case p.Advice == table.ReuseAlways:
		d.Policy, d.PublishFRI = IndexThrough, true
		d.Reason = "every index bears a fragment reuse index and the engine wants every move recorded"
	default:
		d.Reason = "no index would answer through a fragment reuse index: none of those that could covers a whole group"
	}
	d.describe(v, groups)
	return d, nil
}

// decideByID is decide for a table with stable row ids, which has one right policy.
func decideByID(s *table.Snapshot, v indexView, p Publishing, groups [][]table.FragmentID) (Decision, error) {
	d := Decision{Policy: IndexRetarget, Indexes: []IndexDecision{}, Reason: "rows keep their ids, which is what indexes hold"}
	switch {
	case p.FRI == FRIAlways || p.IndexPolicy == IndexThrough:
		return d, refusal(s, "rows have stable ids, and readers would translate the ids that indexes hold as if they were addresses", false)
	case p.IndexPolicy == IndexLeave && !p.Force:
		return d, table.Unsupportedf("compaction: table %s version %d has stable row ids: some readers find rows twice if index coverage is left alone there. Use index policy auto", s.Table, s.Version)
	case p.IndexPolicy == IndexLeave:
		d.Policy, d.Forced, d.Reason = IndexLeave, true, "forced, although some readers find rows twice"
	}
	d.describe(v, groups)
	return d, nil
}

// describe adds what happens to each index.
func (d *Decision) describe(v indexView, groups [][]table.FragmentID) {
	for _, m := range v.indexes {
		if !m.System {
			d.Indexes = append(d.Indexes, d.of(m, groups))
		}
	}
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
		// Also when it covers nothing that is rewritten now: what its files hold
		// from before is not known here, and a mask costs only speed.
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
		switch {
		case m.System:
		case d.Policy == IndexRetarget && !m.CoverageKnown:
		case d.Policy == IndexRetarget && m.ByAddress:
			if c, changed := uncover(m, groups); changed {
				out[m.UUID] = c
			}
		case d.Policy == IndexRetarget:
			if c, changed := retarget(m, groups); changed {
				out[m.UUID] = c
			}
		case !readsThrough(m):
			if len(m.Coverage) > 0 || !m.CoverageKnown {
				out[m.UUID] = []table.FragmentID{}
			}
		default:
			if c, changed := retarget(m, groups); changed {
				out[m.UUID] = c
			}
		}
	}
	return out
}
