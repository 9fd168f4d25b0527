package main

import (
	"fmt"
	"slices"
	"sort"

	"github.com/rehome-db/rehome/dml"
)

// history is the model: for each key what its row was, version by version.
//
// It is made by replaying the writers' changes in the order of the versions that
// they became, each by what it means: a change computed from version r and committed
// as version c is about the rows that matched at r, and none of these may have been
// changed by others between r and c, unless both sides deleted it. A writer that
// overlooked another's change (a lost update), or was not stopped by one, is found
// when its change is replayed; a row that is lost, doubled or resurrected when a
// version is compared with the table.
//
// Writers share all keys. So the rule itself is tested, not only that nobody
// disturbs what nobody else touches.
type history struct {
	events map[int64][]event // by key, ascending
	upTo   uint64            // the last version that was replayed
}

// event is a key's row from a version on.
type event struct {
	version uint64
	value   int64
	live    bool
}

func newHistory(version uint64) *history {
	return &history{events: map[int64][]event{}, upTo: version}
}

// at is the row of a key at a version.
func (h *history) at(key int64, version uint64) (value int64, live bool) {
	list := h.events[key]
	i := sort.Search(len(list), func(i int) bool { return list[i].version > version })
	if i == 0 {
		return 0, false
	}
	return list[i-1].value, list[i-1].live
}

// survived says whether a row that a version has is the same row in a later one, be it
// with other values.
func (h *history) survived(key int64, from, to uint64) bool {
	for _, e := range h.events[key] {
		if e.version > from && e.version <= to && !e.live {
			return false
		}
	}
	return true
}

// rows are all rows at a version.
func (h *history) rows(version uint64) map[int64]int64 {
	out := map[int64]int64{}
	for key := range h.events {
		if value, live := h.at(key, version); live {
			out[key] = value
		}
	}
	return out
}

// forget drops what is only needed for versions before the given one.
func (h *history) forget(before uint64) {
	for key, list := range h.events {
		i := sort.Search(len(list), func(i int) bool { return list[i].version > before })
		if i > 0 {
			list = list[i-1:]
		}
		if len(list) == 1 && !list[0].live {
			delete(h.events, key)
			continue
		}
		h.events[key] = slices.Clone(list)
	}
}

// change is what a writer committed.
type change struct {
	kind string
	// read is the version that it was computed from, version what it became.
	read, version uint64

	// matches are the rows that a delete or an update is about; of a merge those
	// that are deleted if the source does not have them.
	matches func(key, value int64) bool
	// set is what an update makes of them.
	set func(key, value int64) int64
	// source are the rows of an append or a merge, and matched is what becomes of
	// those whose key is there.
	source  map[int64]int64
	matched dml.WhenMatched
}

// The kinds of changes.
const (
	kindAppend = "append"
	kindDelete = "delete"
	kindUpdate = "update"
	kindUpsert = "upsert"
)

func (c *change) String() string {
	return fmt.Sprintf("%s computed from version %d and committed as %d", c.kind, c.read, c.version)
}

// replay applies a change. It must be the next after all that were replayed. The
// error says what the writer should have been stopped by.
func (h *history) replay(c *change) error {
	if c.version <= h.upTo || c.read >= c.version {
		return fmt.Errorf("%v: the table was at version %d", c, h.upTo)
	}
	h.upTo = c.version
	put := func(key, value int64, live bool) {
		h.events[key] = append(h.events[key], event{c.version, value, live})
	}
	if c.matches != nil {
		for key := range h.events {
			was, live := h.at(key, c.read)
			if _, given := c.source[key]; given || !live || !c.matches(key, was) {
				continue
			}
			gone, err := h.undisturbed(key, c, c.set == nil)
			switch {
			case err != nil:
				return err
			case gone:
			case c.set != nil:
				put(key, c.set(key, was), true)
			default:
				put(key, 0, false)
			}
		}
	}
	for key, value := range c.source {
		if _, live := h.at(key, c.read); !live {
			if _, now := h.at(key, c.version); now {
				return fmt.Errorf("%v: key %d was inserted by others meanwhile, and the key is unique", c, key)
			}
			put(key, value, true)
			continue
		}
		switch c.matched {
		case dml.MatchedFail:
			return fmt.Errorf("%v: key %d was there", c, key)
		case dml.MatchedKeep:
			continue
		}
		gone, err := h.undisturbed(key, c, c.matched == dml.MatchedDelete)
		switch {
		case err != nil:
			return err
		case !gone:
			put(key, value, c.matched == dml.MatchedUpdate)
		}
	}
	return nil
}

// undisturbed says whether a row that a change is about was left alone between the
// version that the change was computed from and its commit. That it was deleted is
// told by gone and, if the change deletes it too, no error: deletions merge.
func (h *history) undisturbed(key int64, c *change, deletes bool) (gone bool, err error) {
	for _, e := range h.events[key] {
		if e.version <= c.read || e.version == c.version {
			continue
		}
		if !e.live && deletes {
			return true, nil // what came after is another row
		}
		return false, fmt.Errorf("%v: the row of key %d was changed in version %d and that was overlooked", c, key, e.version)
	}
	return false, nil
}

// differences compares a version with the rows that were read from the table, and
// returns the first few differences.
func (h *history) differences(version uint64, read []row) []string {
	const most = 5
	var out []string
	add := func(format string, args ...any) {
		if len(out) < most {
			out = append(out, fmt.Sprintf("version %d: ", version)+fmt.Sprintf(format, args...))
		}
	}
	want := h.rows(version)
	seen := map[int64]bool{}
	for _, r := range read {
		value, live := want[r.key]
		switch {
		case seen[r.key]:
			add("key %d is there twice", r.key)
		case !live:
			add("key %d is there with %d, and was deleted or never committed: %v", r.key, r.value, h.events[r.key])
		case value != r.value:
			add("key %d has %d, want %d: %v", r.key, r.value, value, h.events[r.key])
		case !r.whole:
			add("key %d has another row's text", r.key)
		}
		seen[r.key] = true
	}
	for key := range want {
		if !seen[key] {
			add("key %d is lost: %v", key, h.events[key])
		}
	}
	return out
}
