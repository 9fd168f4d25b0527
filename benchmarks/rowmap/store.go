package rowmap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

// Stored is a stored form of the change of address.
type Stored string

// The stored forms.
const (
	StoredFRI    Stored = "fri"
	StoredPlain  Stored = "plain"
	StoredPacked Stored = "packed"
)

// Cost of storing a change of address.
type Cost struct {
	// Last is what the last commit wrote on account of it. A reuse index is
	// written whole by each commit; a map twice.
	Last uint64 `json:"last_commit_bytes"`
	// Total is what all commits wrote.
	Total uint64 `json:"all_commits_bytes"`
	// Kept is what has to be read to translate: a map once for each commit.
	Kept uint64 `json:"kept_bytes"`
	// Build is the time from the deletion vectors to the bytes, of all commits.
	Build time.Duration `json:"build_ns"`
	// Coding of the packed form, and the sizes of the map of the first commit in
	// every coding that was tried.
	Coding string         `json:"coding,omitempty"`
	Tried  map[string]int `json:"tried,omitempty"`
	// Refused says why the form cannot express the workload; then all else is 0.
	Refused string `json:"refused,omitempty"`
}

// Write makes the workload and stores its change of address in dir in the given
// forms.
func Write(ctx context.Context, w Workload, dir string, forms []Stored) (map[Stored]Cost, error) {
	compactions, err := w.Compactions()
	if err != nil {
		return nil, err
	}
	var first []fri.Digest
	for _, g := range compactions[0] {
		first = append(first, g.Sources...)
	}
	b, err := json.Marshal(first)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "sources.json"), b, 0o644); err != nil {
		return nil, err
	}
	out := make(map[Stored]Cost)
	for _, form := range forms {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var c Cost
		if form == StoredFRI {
			c, err = writeHistory(compactions, dir)
		} else {
			c, err = writeMaps(compactions, dir, form)
		}
		if errors.Is(err, table.ErrUnsupported) {
			c, err = Cost{Refused: err.Error()}, nil
		}
		if err != nil {
			return nil, err
		}
		out[form] = c
	}
	return out, nil
}

func historyPath(dir string) string { return filepath.Join(dir, "details.binpb") }

func mapPath(dir string, form Stored, i int) string {
	return filepath.Join(dir, fmt.Sprintf("%s-%03d.txn", form, i))
}

func writeHistory(compactions [][]Group, dir string) (Cost, error) {
	var c Cost
	h := &fri.History{}
	var content []byte
	for i, gs := range compactions {
		start := startWatch()
		ts := make([]*fri.Transition, len(gs))
		for j, g := range gs {
			if g.Order != nil {
				return c, table.Unsupportedf("fri: a bitmap cannot express a rewrite that does not keep the order")
			}
			var b fri.Builder
			for k, s := range g.Sources {
				if err := b.AddSource(s, g.Deleted[k]); err != nil {
					return c, err
				}
			}
			var err error
			if ts[j], err = b.Build(g.Destinations); err != nil {
				return c, err
			}
		}
		var err error
		if h, err = h.Append(uint64(i+1), ts...); err != nil {
			return c, err
		}
		content = h.Encode()
		details, external := fri.EncodeDetails(content, version.ReuseFile)
		c.Build += start.elapsed()
		c.Last = uint64(len(indexEntry(details)))
		if external != nil {
			c.Last += external.Size
		}
		c.Total += c.Last
	}
	c.Kept = uint64(len(content))
	return c, os.WriteFile(historyPath(dir), content, 0o644)
}

// indexEntry is the entry of the reuse index in the manifest, which a map does not
// need: IndexMetadata { 1 uuid { 1 bytes }, 3 name, 4 dataset_version, 5
// fragment_bitmap, 6 index_details { 1 type_url, 2 value }, 8 created_at }.
func indexEntry(details []byte) []byte {
	b := appendBytes(nil, 1, appendBytes(nil, 1, make([]byte, 16)))
	b = appendBytes(b, 3, []byte("__lance_frag_reuse"))
	b = protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.VarintType), 1)
	b = appendBytes(b, 5, make([]byte, 18)) // of one fragment
	b = appendBytes(b, 6, appendBytes(appendBytes(nil, 1, []byte(version.ReuseTypeURL)), 2, details))
	return protowire.AppendVarint(protowire.AppendTag(b, 8, protowire.VarintType), 1<<40)
}

func writeMaps(compactions [][]Group, dir string, form Stored) (Cost, error) {
	var c Cost
	for i, gs := range compactions {
		coding := Plain
		if form == StoredPacked {
			best, tried, err := Smallest(gs)
			if err != nil {
				return c, err
			}
			coding = best.Coding
			if i == 0 {
				c.Coding, c.Tried = coding.String(), make(map[string]int)
				for k, n := range tried {
					c.Tried[k.String()] = n
				}
			}
		}
		// The time is that of the coding chosen, not of those tried.
		start := startWatch()
		t, err := NewTransaction(gs, coding)
		if err != nil {
			return c, err
		}
		b, err := t.Encode()
		if err != nil {
			return c, err
		}
		c.Build += start.elapsed()
		if c.Last, err = t.Committed(b); err != nil {
			return c, err
		}
		c.Total += c.Last
		c.Kept += uint64(len(b))
		if err := os.WriteFile(mapPath(dir, form, i), b, 0o644); err != nil {
			return c, err
		}
	}
	return c, nil
}

// Approach is a stored form, and what it is decoded to.
type Approach struct {
	Stored Stored `json:"stored"`
	Form   Form   `json:"form"`
}

// Form is a decoded form.
type Form string

// The decoded forms.
const (
	FormFRI       Form = "fri"
	FormHash      Form = "hash"
	FormSorted    Form = "sorted"
	FormIntervals Form = "intervals"
)

// String names the approach in results.
func (a Approach) String() string {
	if a.Stored == StoredFRI {
		return "fri"
	}
	return fmt.Sprintf("%s, %s", a.Stored, a.Form)
}

// Approaches lists all that are measured, the reuse index first.
func Approaches() []Approach {
	return []Approach{
		{StoredFRI, FormFRI}, {StoredPlain, FormHash}, {StoredPlain, FormSorted},
		{StoredPacked, FormHash}, {StoredPacked, FormSorted}, {StoredPacked, FormIntervals},
	}
}

// Open reads what Write stored.
func (a Approach) Open(w Workload, dir string) (ChangeOfAddress, error) {
	w.EnsureDefaults()
	if a.Form == FormFRI {
		content, err := os.ReadFile(historyPath(dir))
		if err != nil {
			return nil, err
		}
		return OpenHistory(content)
	}
	txs := make([]*Transaction, w.Stacked)
	for i := range txs {
		b, err := os.ReadFile(mapPath(dir, a.Stored, i))
		if err != nil {
			return nil, err
		}
		if txs[i], err = DecodeTransaction(b); err != nil {
			return nil, err
		}
	}
	switch a.Form {
	case FormHash:
		return OpenHash(txs)
	case FormSorted:
		return OpenSorted(txs)
	case FormIntervals:
		return OpenIntervals(txs)
	}
	return nil, fmt.Errorf("rowmap: no decoded form %q", a.Form)
}
