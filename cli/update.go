package cli

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/dml/sqlexpr"
	"github.com/rehome-db/rehome/table"
)

func (a *app) updateCommand() *cobra.Command {
	var f changeFlags
	var where string
	var set []string
	cmd := &cobra.Command{
		Use:   "update TABLE --where EXPR --set COLUMN=EXPR",
		Short: "Give columns of the rows that a condition picks new values",
		Long: `update gives columns of the rows that a condition picks new values, each computed
from the row as it was, in one commit. A value is cast to the column's type if it
fits. If the condition picks no row nothing is committed.

A row is updated by writing it anew, whole, in a new fragment, and deleting the old
one.

` + expressionHelp + `

` + besideHelp,
		Example: `  rehome update ./t.lance --where "id = 7" --set "name='seven'" --set "price=price*2"
  rehome update ./t.lance --where true --set "checked=NULL"`,
		Args: exactly("a TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(where) == "" {
				return usagef("update needs --where EXPR; to update every row say --where true (see %s --help)", cmd.CommandPath())
			}
			if len(set) == 0 {
				return usagef("update needs --set COLUMN=EXPR (see %s --help)", cmd.CommandPath())
			}
			return a.runChange(cmd.Context(), args[0], f, func(schema table.Schema) (dml.Change, error) {
				now := sqlexpr.At(time.Now()) // one for all expressions
				p, err := predicate("--where", where, schema, now)
				if err != nil {
					return nil, err
				}
				u := dml.Update{Where: p, Set: map[string]dml.Expr{}}
				return u, assignments(set, schema, u.Set, now)
			})
		},
	}
	cmd.Flags().StringVar(&where, "where", "", "update the rows for which `EXPR` is true")
	// An array, not a slice: an expression may have commas.
	cmd.Flags().StringArrayVar(&set, "set", nil, "`COLUMN=EXPR`, as often as there are columns to set")
	f.register(cmd)
	return cmd
}

// assignments parses what --set says and puts it into values, by column.
func assignments(set []string, schema table.Schema, values map[string]dml.Expr, options ...sqlexpr.Option) error {
	for _, text := range set {
		parsed, err := sqlexpr.ParseAssignment(text, options...)
		if err != nil {
			return usagef("--set: %w", err)
		}
		column, value, err := parsed.For(schema)
		if err != nil {
			return usagef("--set: %w", err)
		}
		if _, twice := values[column]; twice {
			return usagef("--set: column %q is set twice", column)
		}
		values[column] = value
	}
	return nil
}
