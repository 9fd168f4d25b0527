package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/table"
)

// expressionHelp is what the commands say about the SQL that they take.
const expressionHelp = `EXPR is SQL as in a WHERE clause: id = 7, name LIKE 'a%', price IS NULL AND NOT
(tag IN ('x', 'y')). Strings are in single quotes; a column whose name is no plain word
is in backticks. A condition that is null picks no row, as in SQL.`

const besideHelp = `Others may read and write the table meanwhile, and compactions too: rows that one
moves are followed. If others change the same rows, everything is computed again from
the newest version. If it fails the table is as it was.`

func (a *app) deleteCommand() *cobra.Command {
	var f changeFlags
	var where string
	cmd := &cobra.Command{
		Use:   "delete TABLE --where EXPR",
		Short: "Delete the rows that a condition picks",
		Long: `delete marks the rows that a condition picks as deleted, in one commit. Their values
stay in the files until a compaction drops them. If it picks none nothing is
committed.

` + expressionHelp + `

` + besideHelp,
		Example: `  rehome delete ./t.lance --where "id IN (3, 8)"
  rehome delete ./t.lance --where "created_at < timestamp '2024-01-01'" --dry-run
  rehome delete ./t.lance --where true`,
		Args: exactly("a TABLE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(where) == "" {
				return usagef("delete needs --where EXPR; to delete every row say --where true (see %s --help)", cmd.CommandPath())
			}
			return a.runChange(cmd.Context(), args[0], f, func(schema table.Schema) (dml.Change, error) {
				p, err := predicate("--where", where, schema)
				return dml.Delete{Where: p}, err
			})
		},
	}
	cmd.Flags().StringVar(&where, "where", "", "delete the rows for which `EXPR` is true")
	f.register(cmd)
	return cmd
}
