package rebase

import (
	"cmp"
	"fmt"
)

// verdict says how a change must react to one that was committed before it.
type verdict uint8

// The verdicts, from harmless to worst.
const (
	// compatible: the change is right as it is.
	compatible verdict = iota
	// relocate: both name their rows, and the rows decide: deletions merge, or follow
	// their rows to the new addresses. Only a row that both changed is a conflict.
	relocate
	// retry: the caller must do the work again from the current version.
	retry
	// incompatible: done again, it would be another change.
	incompatible
)

// String names the verdict.
func (v verdict) String() string {
	switch v {
	case compatible:
		return "ok"
	case relocate:
		return "relocate"
	case retry:
		return "retry"
	default:
		return "incompatible"
	}
}

// comparison is a verdict and the pair of claims that decided it.
type comparison struct {
	Verdict verdict
	// Reason says in words why the verdict is not compatible; empty if it is.
	Reason string
}

// compare judges the change mine, which is being committed, against the change theirs,
// which was committed after the version that mine was computed from. The order matters:
// theirs had what it required when it was committed, and cannot lose it any more.
//
// It takes time in proportion to the claims of both.
func compare(mine, theirs *footprint) comparison {
	for _, f := range []*footprint{theirs, mine} {
		if f.unknown {
			return comparison{Verdict: incompatible, Reason: fmt.Sprintf("what %q does is not known", f.operation)}
		}
	}
	worst := conflict{}
	meet := func(m, t claim) {
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
	if worst.verdict == compatible {
		return comparison{}
	}
	return comparison{Verdict: worst.verdict, Reason: worst.reason(mine.operation, theirs.operation)}
}

// judge is the one rule for two claims that overlap.
func judge(mine, theirs claim) verdict {
	kind := kinds[mine.Coordinate.Kind]
	byRow := mine.ByRow && theirs.ByRow
	switch {
	case theirs.Mode == requires:
		return compatible
	case mine.Mode == writesPart && theirs.Mode == writesPart && !(byRow && kind.shared):
		return compatible
	case byRow && !(mine.Mode == writes && theirs.Mode == writes):
		return relocate
	case kind.terminal:
		return incompatible
	default:
		return retry
	}
}

// conflict is a pair of claims that are not compatible.
type conflict struct {
	verdict      verdict
	mine, theirs claim
}

// worseThan orders conflicts by verdict, then so that the same pair of footprints
// always gives the same answer.
func (c conflict) worseThan(d conflict) bool {
	if c.verdict != d.verdict {
		return c.verdict > d.verdict
	}
	return c.verdict != compatible && cmp.Or(c.mine.Coordinate.compare(d.mine.Coordinate), c.theirs.Coordinate.compare(d.theirs.Coordinate)) < 0
}

func (c conflict) reason(mine, theirs string) string {
	do := [...]string{requires: "relies on", writesPart: "adds to", writes: "replaces"}[c.mine.Mode]
	ours := fmt.Sprintf("%s %s %s", mine, do, c.mine.Coordinate)
	ended := kinds[c.theirs.Coordinate.Kind].ended
	switch {
	case c.theirs.Mode == writesPart && ended != "":
		return fmt.Sprintf("%s, which %s %s", ours, theirs, ended)
	case c.mine.Coordinate != c.theirs.Coordinate && c.theirs.Mode == writesPart:
		return fmt.Sprintf("%s, and %s added to %s", ours, theirs, c.theirs.Coordinate)
	case c.mine.Coordinate != c.theirs.Coordinate:
		return fmt.Sprintf("%s, and %s replaced %s", ours, theirs, c.theirs.Coordinate)
	case c.theirs.Mode == writesPart:
		return fmt.Sprintf("%s, to which %s added", ours, theirs)
	default:
		return fmt.Sprintf("%s, which %s replaced", ours, theirs)
	}
}
