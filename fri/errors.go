package fri

import (
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/table"
)

// Rule names a requirement on transitions, for callers and tests that have to
// tell violations apart.
type Rule string

// The rules on one transition by itself.
const (
	RuleWire                 Rule = "well-formed message"
	RuleHasSources           Rule = "at least one source"
	RuleFragmentID           Rule = "fragment ids have 32 bits and are not the tombstone"
	RulePhysicalRows         Rule = "row counts have 32 bits and sources are not empty"
	RuleDeletedRows          Rule = "no more rows deleted than there are"
	RuleDistinctFragments    Rule = "a fragment occurs once"
	RuleDestinationsAreWhole Rule = "destinations have no deletions"
	RuleRowsMatch            Rule = "as many rows arrive as survive"
	RuleBitmap               Rule = "well-formed survivor bitmap"
	RuleOwnAddresses         Rule = "survivors lie in the sources"
	RuleSurvivors            Rule = "as many survivors as the digest says"
	RuleConsumed             Rule = "nothing follows the survivor bitmap"
	RuleOneMapping           Rule = "exactly one mapping"
	RuleMapReference         Rule = "a label file has an id and a size"
	RuleDestinationCount     Rule = "a stable partition has 1 to 65,536 destinations"
	RuleIndexVersion         Rule = "tagged transitions are of index version 1"
)

// The rules on the transitions of a history together.
const (
	RuleOneConsumer Rule = "a fragment is rewritten once"
	RuleOneProducer Rule = "a fragment is written once"
	RuleAcyclic     Rule = "no fragment is its own ancestor"
	RuleChainRows   Rule = "a fragment has the same physical rows wherever it occurs"
	RuleOrder       Rule = "producers before consumers, versions ascending"
	RuleSourceOrder Rule = "sources by ascending id"
	RuleOwnMap      Rule = "a label file belongs to one transition"
	RuleComplete    Rule = "every transition is understood"
)

// The rules on the label file of a stable partition.
const (
	RuleCounts   Rule = "well-formed matrix of counts"
	RuleLabels   Rule = "labels agree with the counts"
	RuleReadable Rule = "the label file can be read"
)

// TransitionError says what is wrong with a transition. It wraps ErrCorrupt,
// ErrUnsupported or ErrConflict of package table.
type TransitionError struct {
	// Index is the transition's position in its history, from 0; -1 for one that
	// is in none yet.
	Index int
	// DatasetVersion is what the transition records, 0 if it does not, or not yet.
	DatasetVersion uint64
	// Rule is the requirement that is broken.
	Rule Rule

	err error
}

func (e *TransitionError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("fri: new transition: %v", e.err)
	}
	if e.DatasetVersion == 0 { // tagged, or of a writer that recorded none
		return fmt.Sprintf("fri: transition %d: %v", e.Index, e.err)
	}
	return fmt.Sprintf("fri: transition %d (dataset version %d): %v", e.Index, e.DatasetVersion, e.err)
}

func (e *TransitionError) Unwrap() error { return e.err }

func violation(sentinel error, rule Rule, format string, args ...any) *TransitionError {
	err := fmt.Errorf(format, args...)
	switch sentinel {
	case table.ErrUnsupported:
		err = table.Unsupportedf("%w", err)
	case table.ErrConflict:
		err = table.Conflictf("%w", err)
	default:
		err = table.Corruptf("%w", err)
	}
	return &TransitionError{Index: -1, Rule: rule, err: err}
}

func broken(rule Rule, format string, args ...any) *TransitionError {
	return violation(table.ErrCorrupt, rule, format, args...)
}

// at places a violation in a history. Other errors pass through.
func at(err error, index int, datasetVersion uint64) error {
	var e *TransitionError
	if !errors.As(err, &e) {
		return err
	}
	placed := *e
	placed.Index, placed.DatasetVersion = index, datasetVersion
	return &placed
}
