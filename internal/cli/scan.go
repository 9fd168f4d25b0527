package cli

import (
	"bufio"
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/internal/rowjson"
	"github.com/rehome-db/rehome/table"
)

type scanFlags struct {
	version  uint64
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
		Long: `scan prints the live rows in table order, one JSON object a line.

Integers are JSON numbers, decimals decimal strings, dates and times ISO 8601 at
the column's full precision, binary base64; NaN and the infinities are strings.
With --raw, 64-bit integers and times are strings of the stored number, decimals
{"dec": little-endian hex} and binary {"b64": ...}: for comparing bit by bit.`,
		Example: `  rehome scan ./t.lance --limit 5
  rehome scan ./t.lance --version 3 --columns id,name | jq .name
  rehome scan ./t.lance --with-row-addr`,
		Args: exactly("a TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.limited = cmd.Flags().Changed("limit")
			return a.scan(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().Uint64Var(&f.version, "version", 0, versionUsage)
	cmd.Flags().StringSliceVar(&f.columns, "columns", nil, "print only these top-level `columns`, in this order")
	cmd.Flags().Uint64Var(&f.limit, "limit", 0, "stop after this many `rows` (default: all)")
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
	schema, err := project(snapshot.Schema, f.columns)
	if err != nil {
		return err
	}
	encoding := rowjson.Plain
	if f.raw {
		encoding = rowjson.Raw
	}
	encoder, err := rowjson.New(schema, encoding)
	if err != nil {
		return err
	}
	opts := table.ReadOptions{Columns: f.columns, WithAddrs: f.withAddr}
	left := ^uint64(0)
	if f.limited {
		if left = f.limit; left == 0 {
			return nil
		}
		opts.BatchRows = int(min(left, 8192))
	}
	out := bufio.NewWriterSize(a.Stdout, 64<<10)
	var line []byte
	for batch, err := range s.engine.Rows(ctx, snapshot, fragmentIDs(snapshot), opts) {
		if err != nil {
			// The rows before the bad one are good: let them be seen.
			_ = out.Flush()
			return err
		}
		for i := 0; i < int(batch.Record.NumRows()) && left > 0; i++ {
			var addr *table.RowAddr
			if f.withAddr {
				addr = &batch.Addrs[i]
			}
			if line, err = encoder.AppendRow(line[:0], batch.Record, i, addr); err != nil {
				_ = out.Flush()
				return err
			}
			if _, err := out.Write(append(line, '\n')); err != nil {
				return err
			}
			left--
		}
		if left == 0 {
			break
		}
	}
	return out.Flush()
}

// project returns the schema of the named columns, all if there are none.
func project(schema table.Schema, columns []string) (*arrow.Schema, error) {
	if len(columns) == 0 {
		return schema.Arrow(), nil
	}
	picked := table.Schema{Metadata: schema.Metadata}
	for i, name := range columns {
		field, ok := schema.Field(name)
		if !ok {
			names := make([]string, len(schema.Fields))
			for i, f := range schema.Fields {
				names[i] = f.Name
			}
			return nil, usagef("--columns: the table has no column %q, it has %s", name, strings.Join(names, ", "))
		}
		if slices.Contains(columns[:i], name) {
			return nil, usagef("--columns: column %q is named twice", name)
		}
		picked.Fields = append(picked.Fields, field)
	}
	return picked.Arrow(), nil
}
