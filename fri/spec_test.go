package fri_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// TestSpec runs testdata/spec: each file states what the package does, in terms of
// fragments and addresses.
func TestSpec(t *testing.T) {
	datadriven.Walk(t, "testdata/spec", func(t *testing.T, path string) {
		s := &spec{transitions: map[string]*fri.Transition{}, histories: map[string]*fri.History{}, labels: labelFiles{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := s.run(t, d)
			if !strings.HasSuffix(out, "\n") {
				out += "\n"
			}
			return out
		})
	})
}

type spec struct {
	transitions map[string]*fri.Transition
	histories   map[string]*fri.History
	labels      labelFiles
}

func (s *spec) run(t *testing.T, d *datadriven.TestData) string {
	name := ""
	if len(d.CmdArgs) > 0 && len(d.CmdArgs[0].Vals) == 0 {
		name = d.CmdArgs[0].Key
	}
	switch d.Cmd {
	case "rewrite": // build a transition as a rewrite does
		tr, err := buildFrom(t, d)
		if err != nil {
			return describe(t, err)
		}
		s.transitions[name] = tr
		return fmt.Sprintf("%v\n%d moved, %d dropped", tr, tr.MovedRows(), tr.DroppedRows())

	case "renumber": // the same transition with other destination ids
		var ids []table.FragmentID
		for _, f := range strings.Fields(d.Input) {
			ids = append(ids, table.FragmentID(number(t, f)))
		}
		tr, err := s.transition(t, name).WithDestinations(ids)
		if err != nil {
			return describe(t, err)
		}
		s.transitions[name] = tr
		return tr.String()

	case "commit": // append transitions to a history
		var version uint64
		d.ScanArgs(t, "version", &version)
		base := &fri.History{}
		if d.HasArg("on") {
			var on string
			d.ScanArgs(t, "on", &on)
			base = s.history(t, on)
		}
		var ts []*fri.Transition
		for _, f := range strings.Fields(d.Input) {
			ts = append(ts, s.transition(t, f))
		}
		h, err := base.Append(version, ts...)
		if err != nil {
			return describe(t, err)
		}
		// What is stored is what was built.
		again, err := fri.Decode(h.Encode(), h.IndexVersion())
		require.NoError(t, err)
		require.Equal(t, list(h), list(again))
		s.histories[name] = again.WithPartitions(t.Context(), s.labels.open)
		return list(h)

	case "upgrade": // to index version 1
		h, err := s.history(t, name).Upgrade(1)
		require.NoError(t, err)
		require.Equal(t, s.history(t, name).Encode(), h.Encode(), "what is there keeps its bytes")
		s.histories[name] = h
		return list(h)

	case "partition": // build a stable partition, and keep its labels
		tr, err := s.labels.build(t, d)
		if err != nil {
			return describe(t, err)
		}
		s.transitions[name] = tr
		return show(tr)

	case "labels": // put other labels into a label file
		s.labels.damage(t, name, d.Input)
		return "ok"

	case "counts": // a matrix from its description
		return decodeCounts(t, d)

	case "decode": // a history from a description of its messages
		var index int
		d.MaybeScanArgs(t, "index", &index)
		content := encode(t, d.Input)
		h, err := fri.Decode(content, int32(index))
		if err == nil {
			err = h.Validate() // what opening leaves for later
		}
		if err != nil {
			return describe(t, err)
		}
		require.Equal(t, content, h.Encode(), "entries are carried unchanged")
		s.histories[name] = h.WithPartitions(t.Context(), s.labels.open)
		return list(h)

	case "bytes":
		return hexLines(s.history(t, name).Encode())

	case "translate":
		var b strings.Builder
		for _, f := range strings.Fields(d.Input) {
			addr, err := table.ParseRowAddr(f)
			require.NoError(t, err)
			tr := s.history(t, name).Translate(addr)
			fmt.Fprintf(&b, "%v %v", addr, tr.State)
			same, err := s.history(t, name).Translator().Translate(addr)
			require.Equal(t, tr, same)
			switch tr.State {
			case fri.Moved:
				fmt.Fprintf(&b, " %v", tr.Addr)
			case fri.Untranslatable:
				fmt.Fprintf(&b, ", %s", strings.ReplaceAll(describe(t, err), "\n", ", "))
			default:
				require.NoError(t, err)
			}
			b.WriteByte('\n')
		}
		return b.String()

	case "heirs":
		var b strings.Builder
		for _, f := range strings.Fields(d.Input) {
			fmt.Fprintf(&b, "%s: %v\n", f, s.history(t, name).Heirs(table.FragmentID(number(t, f))))
		}
		return b.String()

	case "follow":
		var b strings.Builder
		for _, line := range strings.Split(d.Input, "\n") {
			var coverage []table.FragmentID
			for _, f := range strings.Fields(line) {
				coverage = append(coverage, table.FragmentID(number(t, f)))
			}
			now, straddled := s.history(t, name).Follow(coverage)
			fmt.Fprintf(&b, "%v: %v", coverage, now)
			if len(straddled) > 0 {
				fmt.Fprintf(&b, ", straddled %v", straddled)
			}
			b.WriteByte('\n')
		}
		return b.String()

	case "needed":
		var committed uint64
		d.MaybeScanArgs(t, "committed", &committed)
		var indexes []table.IndexMeta
		for _, line := range strings.Split(d.Input, "\n") {
			indexes = append(indexes, index(t, line))
		}
		var b strings.Builder
		only := -1
		d.MaybeScanArgs(t, "transition", &only)
		for i := range s.history(t, name).Len() {
			if only >= 0 && i != only {
				continue
			}
			fmt.Fprintf(&b, "%d:", i)
			for _, x := range s.history(t, name).NeededBy(i, committed, indexes) {
				fmt.Fprintf(&b, " %s", x.Name)
			}
			b.WriteByte('\n')
		}
		return b.String()

	case "trim":
		return trimSpec(t, d, s.history(t, name))

	default:
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
		return ""
	}
}

func (s *spec) transition(t *testing.T, name string) *fri.Transition {
	tr, ok := s.transitions[name]
	require.True(t, ok, "no transition %q", name)
	return tr
}

func (s *spec) history(t *testing.T, name string) *fri.History {
	h, ok := s.histories[name]
	require.True(t, ok, "no history %q", name)
	return h
}

func list(h *fri.History) string {
	var b strings.Builder
	for i, t := range h.All() {
		if h.IndexVersion() > 0 && t.DatasetVersion() == 0 {
			fmt.Fprintf(&b, "%d: tagged: %s\n", i, show(t))
		} else {
			fmt.Fprintf(&b, "%d: version %d: %s\n", i, t.DatasetVersion(), show(t))
		}
	}
	if h.Len() == 0 {
		b.WriteString("(empty)\n")
	}
	if err := h.CheckComplete(); err != nil {
		fmt.Fprintf(&b, "incomplete: %v\n", err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// show prints a transition with its mapping, unless that is the usual one.
func show(t *fri.Transition) string {
	switch ref, ok := t.Partition(); {
	case ok && ref.HasBase:
		return fmt.Sprintf("%v by the labels in %s (%d bytes, base %d)", t, ref.MapID, ref.Bytes, ref.Base)
	case ok:
		return fmt.Sprintf("%v by the labels in %s (%d bytes)", t, ref.MapID, ref.Bytes)
	case t.Mapping() != fri.OrderedCompaction:
		return fmt.Sprintf("%v, mapping %v", t, t.Mapping())
	default:
		return t.String()
	}
}

// describe prints an error with its class and the rule it names.
func describe(t *testing.T, err error) string {
	class := "error"
	switch {
	case errors.Is(err, table.ErrCorrupt):
		class = "corrupt"
	case errors.Is(err, table.ErrUnsupported):
		class = "unsupported"
	case errors.Is(err, table.ErrConflict):
		class = "conflict"
	}
	var te *fri.TransitionError
	if errors.As(err, &te) {
		return fmt.Sprintf("%s: %v\nrule: %s", class, err, te.Rule)
	}
	return fmt.Sprintf("%s: %v", class, err)
}

func number(t *testing.T, s string) uint64 {
	v, err := strconv.ParseUint(s, 0, 64)
	require.NoError(t, err)
	return v
}

// attrs splits "10 rows=8 deleted=2,5-6" into the first word and the rest.
func attrs(line string) (first string, kv map[string]string) {
	kv = map[string]string{}
	for i, f := range strings.Fields(line) {
		if k, v, ok := strings.Cut(f, "="); ok {
			kv[k] = v
		} else if i == 0 {
			first = f
		}
	}
	return first, kv
}

// offsets reads "2,5-6".
func offsets(t *testing.T, s string) *deletion.Vector {
	v := deletion.Of()
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		a, b, ok := strings.Cut(f, "-")
		if !ok {
			b = a
		}
		v = v.Union(deletion.Range(number(t, a), number(t, b)+1))
	}
	return v
}

// buildFrom reads one source a line, then one destination a line that begins with
// an arrow.
func buildFrom(t *testing.T, d *datadriven.TestData) (*fri.Transition, error) {
	var b fri.Builder
	var dests []fri.Digest
	for _, line := range strings.Split(d.Input, "\n") {
		if dest, ok := strings.CutPrefix(line, "->"); ok {
			id, kv := attrs(dest)
			if id == "" {
				continue
			}
			dests = append(dests, fri.Digest{ID: table.FragmentID(number(t, id)), PhysicalRows: number(t, kv["rows"])})
			continue
		}
		id, kv := attrs(line)
		deleted := offsets(t, kv["deleted"])
		dg := fri.Digest{ID: table.FragmentID(number(t, id)), PhysicalRows: number(t, kv["rows"]), DeletedRows: deleted.Cardinality()}
		if c, ok := kv["count"]; ok {
			dg.DeletedRows = number(t, c)
		}
		var set table.OffsetSet
		if !deleted.IsEmpty() {
			set = deleted
		}
		if err := b.AddSource(dg, set); err != nil {
			return nil, err
		}
	}
	return b.Build(dests)
}

// index reads "name version=3 covers=0,1 [unknown] [system]".
func index(t *testing.T, line string) table.IndexMeta {
	name, kv := attrs(line)
	x := table.IndexMeta{Name: name, DatasetVersion: number(t, kv["version"]), CoverageKnown: !strings.Contains(line, " unknown"), System: strings.Contains(line, " system")}
	for o := range offsets(t, kv["covers"]).All() {
		x.Coverage = append(x.Coverage, table.FragmentID(o))
	}
	return x
}

func hexLines(b []byte) string {
	var out strings.Builder
	for len(b) > 0 {
		n := min(16, len(b))
		fmt.Fprintf(&out, "% x\n", b[:n])
		b = b[n:]
	}
	return out.String()
}
