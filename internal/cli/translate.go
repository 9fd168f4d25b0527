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
	"github.com/rehome-db/rehome/table"
)

// translation is the answer for one address.
type translation struct {
	Addr  table.RowAddr `json:"addr"`
	State string        `json:"state"`
	// To is where the row is now: the new address, or Addr itself if nothing
	// rewrote it; null if it was deleted, or if that is not to be had.
	To *table.RowAddr `json:"to"`
}

// newTranslation answers for one address. That a release to come recorded what
// happened to the row is an answer; that the record is damaged is an error.
func newTranslation(h *fri.Translator, addr table.RowAddr) (translation, error) {
	t, err := h.Translate(addr)
	if err != nil && !errors.Is(err, table.ErrUnsupported) {
		return translation{}, fmt.Errorf("translate %v: %w", addr, err)
	}
	out := translation{Addr: addr, State: t.State.String()}
	if t.State == fri.Unaffected || t.State == fri.Moved {
		out.To = &t.Addr
	}
	return out, nil
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
	return &cobra.Command{
		Use:   "translate TABLE ADDR...",
		Short: "Follow old row addresses to where the rows are now",
		Long: `translate follows row addresses through the table's fragment reuse index. An
address is a decimal number or FRAGMENT:OFFSET; - reads one a line from standard
input. The answers come in the order of the questions:

  unaffected   no compaction on record rewrote the row: the address stands
  moved        the row is at another address now
  deleted      the row was deleted before a compaction, and dropped by it
  untranslatable
               a compaction that it went through is recorded in a way that this
               release does not know: the row may be anywhere, or gone

A row that was deleted after the last compaction still has an address; whether it
is alive is for the table to say.`,
		Example: `  rehome translate ./t.lance 0:17 4294967299
  cut -f1 old-addresses.tsv | rehome translate ./t.lance -`,
		Args: atLeast(2, "a TABLE and at least one ADDR, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.translate(cmd.Context(), args[0], args[1:])
		},
	}
}

func (a *app) translate(ctx context.Context, location string, addrs []string) error {
	// Before the table is opened: a typing error is the first thing to hear of.
	for _, s := range addrs {
		if s == "-" {
			continue
		}
		if _, err := table.ParseRowAddr(s); err != nil {
			return &usageError{err}
		}
	}
	ss, err := a.load(ctx, location, 0)
	if err != nil {
		return err
	}
	defer ss.close()
	h, err := openFRI(ctx, ss.engine, ss.snapshot)
	if err != nil {
		return err
	}
	if err := h.CheckComplete(); err != nil {
		fmt.Fprintf(a.Stderr, "rehome: rows that went through a part of the fragment reuse index are untranslatable: %s\n", oneLine(err))
	}
	history := h.Translator()
	if a.json {
		return a.translateJSON(ctx, history, addrs)
	}
	// Answered as the questions come: a list of millions is not held.
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	for addr, err := range a.addresses(ctx, addrs) {
		var t translation
		if err == nil {
			t, err = newTranslation(history, addr)
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
	return s + "\n"
}

// translateJSON prints all answers or, if a question is none, only the error.
func (a *app) translateJSON(ctx context.Context, h *fri.Translator, args []string) error {
	var doc []byte
	separator := "[\n  "
	for addr, err := range a.addresses(ctx, args) {
		if err != nil {
			return err
		}
		t, err := newTranslation(h, addr)
		if err != nil {
			return err
		}
		b, err := json.Marshal(t)
		if err != nil {
			return err
		}
		doc = append(append(doc, separator...), b...)
		separator = ",\n  "
	}
	if doc == nil {
		doc = []byte("[")
	}
	_, err := a.Stdout.Write(append(doc, "\n]\n"...))
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
