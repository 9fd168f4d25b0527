package rebase

import (
	"cmp"
	"fmt"
)

// Verdict is what one change has to do about another that was committed before it.
type Verdict uint8

// From nothing to the worst.
const (
	// OK: the change is right as it is.
	OK Verdict = iota
	// Relocate: both know the rows they are about, and the rows decide: deletions
	// merge, or are carried to where the rows moved. Only a row that both changed
	// is a conflict.
	Relocate
	// Retry: the work has to be done again from the current version.
	Retry
	// Incompatible: doing it again would not be the same change any more.
	Incompatible
)

// String names the verdict.
func (v Verdict) String() string {
	switch v {
	case OK:
		return "ok"
	case Relocate:
		return "relocate"
	case Retry:
		return "retry"
	default:
		return "incompatible"
	}
}

// Comparison is a verdict and the pair of claims that decided it.
type Comparison struct {
	Verdict Verdict
	// Reason says in words why the verdict is not OK; empty if it is.
	Reason string
}

// Compare says what the change with the footprint mine, which is being committed,
// has to do about the one with the footprint theirs, which was committed after the
// version that mine was computed from. The order matters: theirs had what it
// required when it was committed, and cannot lose it any more.
//
// It takes time in proportion to the claims of both.
func Compare(mine, theirs *Footprint) Comparison {
	for _, f := range []*Footprint{theirs, mine} {
		if f.unknown {
			return Comparison{Verdict: Incompatible, Reason: fmt.Sprintf("what %q does is not known", f.operation)}
		}
	}
	worst := conflict{}
	meet := func(m, t Claim) {
		if c := (conflict{judge(m, t), m, t}); c.worseThan(worst) {
			worst = c
		}
	}
	// Of two regions that share a coordinate one lies in the other, so that it is
	// enough to widen each side in turn.
	for c, m := range mine.claims {
		if t, ok := theirs.claims[c]; ok {
			meet(m, t)
		}
		for w := range c.wider {
			if t, ok := theirs.claims[w]; ok {
				meet(m, t)
			}
		}
	}
	for c, t := range theirs.claims {
		for w := range c.wider {
			if m, ok := mine.claims[w]; ok {
				meet(m, t)
			}
		}
	}
	if worst.verdict == OK {
		return Comparison{}
	}
	return Comparison{Verdict: worst.verdict, Reason: worst.reason(mine.operation, theirs.operation)}
}

// judge is the rule, the only one there is, for two claims that overlap.
func judge(mine, theirs Claim) Verdict {
	kind := kinds[mine.Coordinate.Kind]
	byRow := mine.ByRow && theirs.ByRow
	switch {
	case theirs.Mode == Requires:
		return OK
	case mine.Mode == WritesPart && theirs.Mode == WritesPart && !(byRow && kind.shared):
		return OK
	case byRow && !(mine.Mode == Writes && theirs.Mode == Writes):
		return Relocate
	case kind.terminal:
		return Incompatible
	default:
		return Retry
	}
}

// conflict is a pair of claims that is not OK.
type conflict struct {
	verdict      Verdict
	mine, theirs Claim
}

// worseThan orders conflicts by verdict, then so that the same pair of footprints
// always gives the same answer.
func (c conflict) worseThan(d conflict) bool {
	if c.verdict != d.verdict {
		return c.verdict > d.verdict
	}
	return c.verdict != OK && cmp.Or(c.mine.Coordinate.compare(d.mine.Coordinate), c.theirs.Coordinate.compare(d.theirs.Coordinate)) < 0
}

func (c conflict) reason(mine, theirs string) string {
	do := [...]string{Requires: "relies on", WritesPart: "adds to", Writes: "replaces"}[c.mine.Mode]
	ours := fmt.Sprintf("%s %s %s", mine, do, c.mine.Coordinate)
	ended := kinds[c.theirs.Coordinate.Kind].ended
	switch {
	case c.theirs.Mode == WritesPart && ended != "":
		return fmt.Sprintf("%s, which %s %s", ours, theirs, ended)
	case c.mine.Coordinate != c.theirs.Coordinate && c.theirs.Mode == WritesPart:
		return fmt.Sprintf("%s, and %s added to %s", ours, theirs, c.theirs.Coordinate)
	case c.mine.Coordinate != c.theirs.Coordinate:
		return fmt.Sprintf("%s, and %s replaced %s", ours, theirs, c.theirs.Coordinate)
	case c.theirs.Mode == WritesPart:
		return fmt.Sprintf("%s, to which %s added", ours, theirs)
	default:
		return fmt.Sprintf("%s, which %s replaced", ours, theirs)
	}
}
