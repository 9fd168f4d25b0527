package rebase_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/rebase"
	"github.com/rehome-db/rehome/table"
)

// operations are one example of every kind, about a fragment of the given id, or a
// key or a name that goes with it.
var operations = []struct {
	name string
	make func(id table.FragmentID) table.Operation
}{
	{"append", func(table.FragmentID) table.Operation { return table.Append{Fragments: fragments(0)} }},
	{"delete", func(id table.FragmentID) table.Operation { return table.Delete{Updated: fragments(id)} }},
	{"delete_fragment", func(id table.FragmentID) table.Operation {
		return table.Delete{Removed: []table.FragmentID{id}}
	}},
	{"update", func(id table.FragmentID) table.Operation {
		return table.Update{Updated: fragments(id), New: fragments(0)}
	}},
	{"update_in_place", func(id table.FragmentID) table.Operation {
		return table.Update{Updated: fragments(id), InPlace: true, ModifiedFields: []int32{1}}
	}},
	{"update_keys", func(id table.FragmentID) table.Operation {
		return table.Update{Updated: fragments(id), New: fragments(0), UniqueKeys: []int32{0}}
	}},
	{"overwrite", func(id table.FragmentID) table.Operation {
		return table.Overwrite{Fragments: fragments(0), Config: []string{key(id)}}
	}},
	{"create_index", func(id table.FragmentID) table.Operation { return createIndex(id, true) }},
	{"create_index_unknown", func(id table.FragmentID) table.Operation { return createIndex(id, false) }},
	{"rewrite", func(id table.FragmentID) table.Operation {
		return table.Rewrite{Groups: []table.RewriteGroup{{Old: fragments(id), New: fragments(9)}}}
	}},
	{"merge", func(table.FragmentID) table.Operation { return table.Merge{Fragments: fragments(0, 1, 2)} }},
	{"project", func(table.FragmentID) table.Operation { return table.Project{} }},
	{"restore", func(table.FragmentID) table.Operation { return table.Restore{Target: 1} }},
	{"reserve_fragments", func(table.FragmentID) table.Operation { return table.ReserveFragments{Count: 1} }},
	{"update_config", func(id table.FragmentID) table.Operation {
		return table.UpdateConfig{Config: table.SettingsUpdate{Set: []string{key(id)}}}
	}},
	{"data_replacement", func(id table.FragmentID) table.Operation {
		return table.DataReplacement{Replaced: []table.FragmentFields{{Fragment: id, Fields: []int32{1}}}}
	}},
	{"data_overlay", func(table.FragmentID) table.Operation { return table.DataOverlay{} }},
	{"update_mem_wal_state", func(table.FragmentID) table.Operation { return table.UpdateMemWALState{} }},
	{"update_bases", func(id table.FragmentID) table.Operation {
		return table.UpdateBases{Bases: []table.Base{{ID: uint32(id) + 1, Path: "/" + key(id)}}}
	}},
	{"clone", func(table.FragmentID) table.Operation { return table.Clone{} }},
	{"unknown", func(table.FragmentID) table.Operation { return table.Unknown{Name: "from_the_future"} }},
}

func key(id table.FragmentID) string { return fmt.Sprintf("key %d", id) }

func fragments(ids ...table.FragmentID) (out []table.Fragment) {
	for _, id := range ids {
		out = append(out, table.Fragment{ID: id, PhysicalRows: 100})
	}
	return out
}

func createIndex(id table.FragmentID, known bool) table.Operation {
	m := table.IndexMeta{UUID: table.UUID{byte(id) + 1}, Name: fmt.Sprintf("index %d", id), Fields: []int32{1}, CoverageKnown: known}
	if known {
		m.Coverage = []table.FragmentID{id}
	}
	return table.CreateIndex{New: []table.IndexMeta{m}}
}

func operation(t *testing.T, name string, id table.FragmentID) table.Operation {
	t.Helper()
	for _, o := range operations {
		if o.name == name {
			return o.make(id)
		}
	}
	t.Fatalf("no operation %q", name)
	return nil
}

// pair compares the two, about the same fragment or about two.
func pair(t *testing.T, mine, theirs string, same bool) rebase.Comparison {
	t.Helper()
	other := table.FragmentID(2)
	if same {
		other = 1
	}
	return rebase.Compare(rebase.FootprintOf(operation(t, mine, 1)), rebase.FootprintOf(operation(t, theirs, other)))
}

// stock is the recorded decision of the stock engine, by mine, theirs.
func stock(t *testing.T) map[[2]string][2]string {
	t.Helper()
	f, err := os.Open("testdata/stock.txt")
	require.NoError(t, err)
	defer f.Close()
	out := map[[2]string][2]string{}
	var columns []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || words[0] == "#":
		case columns == nil:
			columns = words
		default:
			require.Len(t, words, len(columns)+1, words[0])
			for i, cell := range words[1:] {
				same, other, two := strings.Cut(cell, "/")
				if !two {
					other = same
				}
				out[[2]string{words[0], columns[i]}] = [2]string{same, other}
			}
		}
	}
	return out
}

var inStockTerms = map[rebase.Verdict]string{rebase.Compatible: "ok", rebase.Relocate: "rows", rebase.Retry: "R", rebase.Incompatible: "X"}

// TestMatrix lists every ordered pair of operations, and every cell in which the
// verdict is not that of the stock engine.
func TestMatrix(t *testing.T) {
	recorded := stock(t)
	datadriven.RunTest(t, "testdata/matrix.txt", func(t *testing.T, d *datadriven.TestData) string {
		var b strings.Builder
		line := func(name, which string, c rebase.Comparison, more string) {
			fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%-21s %-6s %-13s %s%s", name, which, c.Verdict, more, c.Reason), " "))
		}
		switch d.Cmd {
		case "commit":
			for _, theirs := range operations {
				line(theirs.name, "same", pair(t, d.CmdArgs[0].Key, theirs.name, true), "")
				line(theirs.name, "other", pair(t, d.CmdArgs[0].Key, theirs.name, false), "")
			}
		case "better", "otherwise":
			for _, mine := range operations {
				for _, theirs := range operations {
					want, ok := recorded[[2]string{mine.name, theirs.name}]
					if !ok {
						continue
					}
					for i, which := range []string{"same", "other"} {
						c := pair(t, mine.name, theirs.name, i == 0)
						if better := c.Verdict == rebase.Relocate; better != (d.Cmd == "better") {
							continue
						}
						if want[i] != "-" && inStockTerms[c.Verdict] != want[i] {
							line(mine.name+" over "+theirs.name, which, c, "not "+want[i]+": ")
						}
					}
				}
			}
		default:
			t.Fatalf("unknown command %q", d.Cmd)
		}
		return b.String()
	})
}

// pairNames are the changes of the recorded run: two fragments of 100 rows, rows
// named by the half of the fragment that they lie in.
var pairNames = map[string]struct {
	operation string
	fragment  table.FragmentID
	// reruns: the client does the work again by itself, so that a retryable
	// conflict shows as a success.
	reruns bool
}{
	"append":     {"append", 0, false},
	"del_f0a":    {"delete", 0, true},
	"del_f0b":    {"delete", 0, true},
	"del_f0same": {"delete", 0, true},
	"del_f1":     {"delete", 1, true},
	"del_frag0":  {"delete_fragment", 0, true},
	"upd_f0a":    {"update", 0, true},
	"upd_f0b":    {"update", 0, true},
	"upd_f1":     {"update", 1, true},
	"merge_f0":   {"update", 0, true},
	"overwrite":  {"overwrite", 0, false},
	"optimize":   {"rewrite", 0, false},
	"idx_id":     {"create_index", 0, false},
	"idx_cat":    {"create_index", 1, false},
	"addcol":     {"merge", 0, false},
	"dropcol":    {"project", 0, false},
	"rename":     {"project", 0, false},
	"restore":    {"restore", 0, false},
}

// TestRecordedPairs: what a stock client was told, commit by commit.
func TestRecordedPairs(t *testing.T) {
	f, err := os.Open("testdata/stock-pairs.txt")
	require.NoError(t, err)
	defer f.Close()
	n, better := 0, map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		words := strings.Fields(lines.Text())
		require.Equal(t, "after", words[1])
		mine, theirs, told := words[0], strings.TrimSuffix(words[2], ":"), words[3]
		if told == "ERR" {
			continue // the client's own complaint about its input, not a conflict
		}
		n++
		got := rebase.Compare(rebase.FootprintOf(recordedOperation(t, mine)), rebase.FootprintOf(recordedOperation(t, theirs)))
		name := fmt.Sprintf("%s: %s, %s", lines.Text(), got.Verdict, got.Reason)
		switch told {
		case "ok":
			if pairNames[mine].reruns {
				require.NotEqual(t, rebase.Incompatible, got.Verdict, name)
			} else {
				require.Equal(t, rebase.Compatible, got.Verdict, name)
			}
		case "RETRYABLE":
			if got.Verdict == rebase.Relocate {
				better[pairNames[mine].operation+" over "+pairNames[theirs].operation]++
				continue
			}
			require.Equal(t, rebase.Retry, got.Verdict, name)
		case "INCOMPATIBLE":
			require.Equal(t, rebase.Incompatible, got.Verdict, name)
		default:
			t.Fatal(name)
		}
	}
	require.Greater(t, n, 300)
	require.Equal(t, map[string]int{
		"rewrite over delete": 4, "rewrite over delete_fragment": 1, "rewrite over update": 4, "rewrite over create_index": 2,
	}, better)
}

// recordedOperation is as recorded: compactions, indexes and new columns concerned
// both fragments.
func recordedOperation(t *testing.T, name string) table.Operation {
	p, ok := pairNames[name]
	require.True(t, ok, name)
	switch op := operation(t, p.operation, p.fragment).(type) {
	case table.Rewrite:
		op.Groups[0].Old = fragments(0, 1)
		return op
	case table.CreateIndex:
		op.New[0].Coverage = []table.FragmentID{0, 1}
		return op
	case table.Overwrite:
		op.Config = nil
		return op
	default:
		return op
	}
}
