package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/remap"
	"github.com/rehome-db/rehome/table"
)

// translation is the answer for one address.
type translation struct {
	Addr  table.RowAddr `json:"addr"`
	State string        `json:"state"`
	// To is where the row is now: the new address, or Addr itself if nothing
	// rewrote it; null if it was deleted, or if that is not to be had.
	To *table.RowAddr `json:"to"`
	// Reason says why, if the state is unknown.
	Reason string `json:"reason,omitempty"`
}

// stateUnknown is an answer that nobody can give: the version does not have such a
// row, or not where the history leads, or the history cannot be followed.
const stateUnknown = "unknown"

// newTranslation answers for one address. That its row cannot be followed is an
// answer and no error.
func newTranslation(ctx context.Context, r *remap.Remapper, addr table.RowAddr) (translation, error) {
	t, err := r.Addr(addr)
	if err == nil {
		out := translation{Addr: addr, State: t.State.String()}
		if t.State != fri.Deleted {
			out.To = &t.Addr
		}
		return out, nil
	}
	var untranslatable *remap.UntranslatableError
	if ctx.Err() != nil || !errors.As(err, &untranslatable) {
		return translation{}, fmt.Errorf("translate %v: %w", addr, err)
	}
	return translation{Addr: addr, State: stateUnknown, Reason: oneLine(untranslatable.Cause)}, nil
}

// text is the answer in words: "moved to 3:17".
func (t translation) text() string {
	switch {
	case t.To == nil:
		return t.State
	case *t.To == t.Addr:
		return t.State
	default:
		return t.State + " to " + t.To.String()
	}
}

func (a *app) translateCommand() *cobra.Command {
	var version uint64
	cmd := &cobra.Command{
		Use:   "translate TABLE ADDR...",
		Short: "Follow old row addresses to where the rows are now",
		Long: `translate follows row addresses through the table's fragment reuse index. An
address is a decimal number or FRAGMENT:OFFSET; - reads one a line from standard
input. The answers come in the order of the questions:

  unaffected   no compaction rewrote the row: the address stands
  moved        the row is at another address now
  deleted      the row was deleted before a compaction, and dropped by it
  unknown      the row may be anywhere, or gone, or there never was one; the reason
               is given: its fragment is gone and no record (or none any more) says
               what became of it, never was, or has fewer rows; the record leads to a
               fragment that is gone; or the record is damaged, or of a kind that this
               release does not know

The answers are about the latest version, or the one that --version names. A row that was deleted after the last compaction still has an address; whether it
is alive is for the table to say.`,
		Example: `  rehome translate ./t.lance 0:17 4294967299
  cut -f1 old-addresses.tsv | rehome translate ./t.lance -`,
		Args: atLeast(2, "a TABLE and at least one ADDR, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.translate(cmd.Context(), args[0], version, args[1:])
		},
	}
	cmd.Flags().Uint64Var(&version, "version", 0, "where the rows are in version `N` instead of the latest")
	return cmd
}

func (a *app) translate(ctx context.Context, location string, version uint64, addrs []string) error {
	// Before the table is opened: a typing error is the first thing to hear of.
	for _, s := range addrs {
		if s == "-" {
			continue
		}
		if _, err := table.ParseRowAddr(s); err != nil {
			return &usageError{err}
		}
	}
	ss, err := a.load(ctx, location, version)
	if err != nil {
		return err
	}
	defer ss.close()
	h, err := openFRI(ctx, ss.engine, ss.snapshot)
	if err != nil {
		return err
	}
	if err := h.CheckComplete(); err != nil {
		fmt.Fprintf(a.Stderr, "%s: rows that went through a part of the fragment reuse index are untranslatable: %s\n", a.program(), oneLine(err))
	}
	r := remap.New(h, remap.Options{Current: ss.snapshot})
	if a.json {
		return a.translateJSON(ctx, r, ss.snapshot.Version, addrs)
	}
	// Answered as the questions come: a list of millions is not held.
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	for addr, err := range a.addresses(ctx, addrs) {
		var t translation
		if err == nil {
			t, err = newTranslation(ctx, r, addr)
		}
		if err == nil {
			_, err = out.WriteString(line(t))
		}
		if err != nil {
			return errors.Join(err, out.Flush())
		}
	}
	return out.Flush()
}

func line(t translation) string {
	s := t.Addr.String() + "\t" + t.State
	if t.To != nil {
		s += "\t" + t.To.String()
	}
	if t.Reason != "" {
		s += "\t\t" + t.Reason // nowhere, because
	}
	return s + "\n"
}

// translateJSON prints all answers or, if a question is none, only the error.
func (a *app) translateJSON(ctx context.Context, r *remap.Remapper, version uint64, args []string) error {
	var doc []byte
	separator := "[\n    "
	for addr, err := range a.addresses(ctx, args) {
		if err != nil {
			return err
		}
		t, err := newTranslation(ctx, r, addr)
		if err != nil {
			return err
		}
		b, err := json.Marshal(t)
		if err != nil {
			return err
		}
		doc = append(append(doc, separator...), b...)
		separator = ",\n    "
	}
	if doc == nil {
		doc = []byte("[")
	} else {
		doc = append(doc, "\n  "...)
	}
	_, err := fmt.Fprintf(a.Stdout, "{\n  \"version\": %d,\n  \"addresses\": %s]\n}\n", version, doc)
	return err
}

// addresses yields the addresses asked for, those of standard input in the place
// of each -.
func (a *app) addresses(ctx context.Context, args []string) iter.Seq2[table.RowAddr, error] {
	return func(yield func(table.RowAddr, error) bool) {
		for _, arg := range args {
			if arg != "-" {
				addr, err := table.ParseRowAddr(arg)
				if !yield(addr, err) || err != nil {
					return
				}
				continue
			}
			lines := bufio.NewScanner(a.Stdin)
			for n := 1; lines.Scan(); n++ {
				text := strings.TrimSpace(lines.Text())
				if text == "" {
					continue
				}
				addr, err := table.ParseRowAddr(text)
				if ctx.Err() != nil {
					err = ctx.Err()
				} else if err != nil {
					err = usagef("standard input line %d: %w", n, err)
				}
				if !yield(addr, err) || err != nil {
					return
				}
			}
			if err := lines.Err(); err != nil {
				yield(0, fmt.Errorf("standard input: %w", err))
				return
			}
		}
	}
}
