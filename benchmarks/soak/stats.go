package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/rehome-db/rehome/rebase"
)

// stats count what happened. They are safe for concurrent use through add.
type stats struct {
	mu sync.Mutex

	changes   map[string]int // committed, by kind
	late      int            // of these, those committed some time after they were computed
	over      int            // versions that changes were rebased over
	relocated uint64         // rows of changes that were followed
	again     int            // changes that were computed more than once
	refused   map[string]int // changes that were not committed, by reason

	compactions    int
	compactionOver int    // versions that compactions were rebased over
	carried        uint64 // rows
	lost           map[string]int

	trims, dropped int
	indexes        int
	compared       int // versions compared with the model
}

func newStats() *stats {
	return &stats{changes: map[string]int{}, lost: map[string]int{}, refused: map[string]int{}}
}

func (s *stats) add(count func(*stats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count(s)
}

func (s *stats) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, n := range s.changes {
		total += n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "changes      %d committed (%s), %d of them some time after they were computed\n", total, counts(s.changes, ", "), s.late)
	fmt.Fprintf(&b, "             rebased over %d versions, %d rows followed to new addresses, %d changes computed again\n", s.over, s.relocated, s.again)
	fmt.Fprintf(&b, "compactions  %d committed, rebased over %d versions, %d rows carried\n", s.compactions, s.compactionOver, s.carried)
	fmt.Fprintf(&b, "trims        %d, %d transitions dropped\n", s.trims, s.dropped)
	fmt.Fprintf(&b, "indexes      %d built\n", s.indexes)
	fmt.Fprintf(&b, "versions     %d compared with the model, row by row\n", s.compared)
	for _, part := range []struct {
		name   string
		counts map[string]int
	}{{"compaction groups lost", s.lost}, {"changes refused", s.refused}} {
		if len(part.counts) > 0 {
			fmt.Fprintf(&b, "%s\n  %s\n", part.name, counts(part.counts, "\n  "))
		}
	}
	return b.String()
}

func counts(m map[string]int, separator string) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d %s", m[k], k))
	}
	return strings.Join(parts, separator)
}

var numbers = regexp.MustCompile(`[0-9]+([-,:][0-9]+)*`)

// reason is an error's without what differs from one time to the next.
func reason(err error) string {
	text := err.Error()
	if c := (*rebase.ConflictError)(nil); errors.As(err, &c) {
		text = c.Operation + ": " + c.Reason
	}
	return numbers.ReplaceAllString(text, "N")
}
