package cli

import (
	"bufio"
	"context"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/table"
)

type scanFlags struct {
	version  uint64
	where    string
	columns  []string
	limit    uint64
	limited  bool
	withAddr bool
	raw      bool
}

func (a *app) scanCommand() *cobra.Command {
	var f scanFlags
	cmd := &cobra.Command{
		Use:   "scan TABLE",
		Short: "Print the rows, one JSON object a line",
		Long: `scan prints the live rows in table order, one JSON object a line: all, or those that a
condition picks. The condition may look at columns that are not printed.

` + expressionHelp + `

Integers are JSON numbers, decimals decimal strings, dates and times ISO 8601 at
the column's full precision, binary base64; NaN and the infinities are strings.
With --raw, 64-bit integers and times are strings of the stored number, decimals
{"dec": little-endian hex} and binary {"b64": ...}: for comparing bit by bit.`,
		Example: `  rehome scan ./t.lance --limit 5
  rehome scan ./t.lance --version 3 --columns id,name | jq .name
  rehome scan ./t.lance --where "price > 10 AND name LIKE 'a%'" --columns id
  rehome scan ./t.lance --with-row-addr`,
		Args: exactly("a TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("where") && strings.TrimSpace(f.where) == "" {
				return usagef("--where is empty: want a condition (see %s --help)", cmd.CommandPath())
			}
			f.limited = cmd.Flags().Changed("limit")
			return a.scan(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().Var(number(&f.version, 1, math.MaxUint64), "version", versionUsage)
	cmd.Flags().StringVar(&f.where, "where", "", "print only the rows for which `EXPR` is true")
	cmd.Flags().StringSliceVar(&f.columns, "columns", nil, "print only these `columns`, in this order; user.id is a field of a struct")
	cmd.Flags().Var(number(&f.limit, 0, math.MaxUint64), "limit", "stop after this many `rows` (default: all)")
	cmd.Flags().BoolVar(&f.withAddr, "with-row-addr", false, `add each row's address as "`+rowjson.RowAddrName+`"`)
	cmd.Flags().BoolVar(&f.raw, "raw", false, "print stored values, exactly comparable")
	return cmd
}

func (a *app) scan(ctx context.Context, location string, f scanFlags) error {
	s, err := a.load(ctx, location, f.version)
	if err != nil {
		return err
	}
	defer s.close()
	snapshot := s.snapshot
	columns, err := project(snapshot.Schema, f.columns)
	if err != nil {
		return err
	}
	encoding := rowjson.Plain
	if f.raw {
		encoding = rowjson.Raw
	}
	encoder, err := rowjson.New(columns.schema, encoding)
	if err != nil {
		return err
	}
	filter, err := newFilter(f.where, s.engine, snapshot, columns.read)
	if err != nil || filter.none {
		return err
	}
	opts := table.ReadOptions{Columns: filter.columns, WithAddrs: f.withAddr || filter.positions.Any()}
	left := ^uint64(0)
	if f.limited {
		if left = f.limit; left == 0 {
			return nil
		}
		if filter.where == nil {
			opts.BatchRows = int(min(left, 8192))
		}
	}
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	rows := rowPrinter{columns: columns, encoder: encoder, out: out, left: left}
	defer rows.release()
	for batch, err := range s.engine.Rows(ctx, snapshot, fragmentIDs(snapshot), opts) {
		addrs := batch.Addrs
		if !f.withAddr {
			addrs = nil
		}
		if err == nil {
			err = filter.each(ctx, batch, func(rec arrow.RecordBatch, i int) error { return rows.print(rec, i, addrs) })
		}
		if err != nil {
			// The rows before the bad one are good: let them be seen.
			_ = out.Flush()
			return err
		}
		if rows.left == 0 {
			break
		}
	}
	return out.Flush()
}

// rowPrinter prints rows up to a number of them.
type rowPrinter struct {
	columns *projection
	encoder *rowjson.Encoder
	out     *bufio.Writer
	left    uint64
	line    []byte
	// from is the record of the row before, and picked the columns of it to print.
	from, picked arrow.RecordBatch
}

func (p *rowPrinter) release() {
	if p.from != nil {
		p.from.Release()
		p.picked.Release()
		p.from = nil
	}
}

// print prints row i of a record; addrs is nil or has its address.
func (p *rowPrinter) print(rec arrow.RecordBatch, i int, addrs []table.RowAddr) (err error) {
	if p.left == 0 {
		return nil
	}
	if p.from != rec {
		p.release()
		rec.Retain()
		p.from, p.picked = rec, p.columns.pick(rec)
	}
	var addr *table.RowAddr
	if addrs != nil {
		addr = &addrs[i]
	}
	if p.line, err = p.encoder.AppendRow(p.line[:0], p.picked, i, addr); err != nil {
		return err
	}
	p.left--
	_, err = p.out.Write(append(p.line, '\n'))
	return err
}
