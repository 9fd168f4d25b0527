package cli

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/internal/recovered"
	"github.com/rehome-db/rehome/table"
)

type upsertFlags struct {
	changeFlags
	on              []string
	whenMatched     string
	whenNotMatched  string
	deleteNotInFile bool
	where           string
	duplicates      string
}

func (a *app) upsertCommand() *cobra.Command {
	var f upsertFlags
	cmd := &cobra.Command{
		Use:   "upsert TABLE FILE --on COLUMN[,COLUMN]",
		Short: "Update the rows that a file has by key, and insert the others",
		Long: `upsert merges the rows of FILE into the table by key, in one commit: a row that has
the key of a row of the table replaces its values, the others are inserted. The flags
say otherwise. A key with a null in it is equal to none.

FILE has JSON lines as scan prints them, or is an Arrow IPC file or stream or a
Parquet file; - is standard input. Its columns are some or all of the table's, in any order, but at
least the key. Those that it does not have keep their values in rows that are updated,
and are null in rows that are inserted. The rows of the file are held in memory.
Without rows it is refused together with --delete-not-in-source.

` + besideHelp,
		Example: `  rehome upsert ./t.lance new.jsonl --on id
  rehome scan ./a.lance | rehome upsert ./b.lance - --on id
  rehome upsert ./t.lance rows.arrow --on shop,sku --when-not-matched nothing
  rehome upsert ./t.lance today.jsonl --on id --delete-not-in-source --where "day = date '2024-05-01'"`,
		Args: exactly("a TABLE", "a FILE (- for standard input)"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			m, err := f.merge(cmd)
			if err != nil {
				return err
			}
			in, err := a.openRows(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			defer in.close()
			defer func() { err = in.blame(err) }()
			defer recovered.Into(&err)
			return a.runChange(cmd.Context(), args[0], f.changeFlags, func(schema table.Schema) (dml.Change, error) {
				if err := checkColumns("--on", f.on, schema); err != nil {
					return nil, err
				}
				if f.where != "" {
					if m.DeleteIf, err = predicate("--where", f.where, schema); err != nil {
						return nil, err
					}
				}
				m.Source = in.rows(schema.Arrow())
				if f.deleteNotInFile {
					m.Source = someRows(m.Source)
				}
				return m, nil
			})
		},
	}
	set := cmd.Flags()
	set.StringSliceVar(&f.on, "on", nil, "the key `columns`")
	set.StringVar(&f.whenMatched, "when-matched", "update", "`what` becomes of a row that the file has too: update, nothing, delete or fail")
	set.StringVar(&f.whenNotMatched, "when-not-matched", "insert", "`what` becomes of a row of the file that the table does not have: insert or nothing")
	set.BoolVar(&f.deleteNotInFile, "delete-not-in-source", false, "delete the rows of the table that the file does not have")
	set.StringVar(&f.where, "where", "", "delete only those of them for which `EXPR` is true")
	set.StringVar(&f.duplicates, "duplicates", "fail", "`what` to do about rows of the file with the same key: fail (if they are for the same row of the table) or first (leave out the others)")
	f.register(cmd)
	return cmd
}

// merge makes the clauses out of the flags.
func (f *upsertFlags) merge(cmd *cobra.Command) (m dml.MergeInsert, err error) {
	if len(f.on) == 0 {
		return m, usagef("upsert needs --on COLUMN, the key by which rows are the same (see %s --help)", cmd.CommandPath())
	}
	m.On = f.on
	if m.WhenMatched, err = choose("--when-matched", f.whenMatched, map[string]dml.WhenMatched{
		"update": dml.MatchedUpdate, "nothing": dml.MatchedKeep, "delete": dml.MatchedDelete, "fail": dml.MatchedFail,
	}); err != nil {
		return m, err
	}
	if m.WhenNotMatched, err = choose("--when-not-matched", f.whenNotMatched, map[string]dml.WhenNotMatched{
		"insert": dml.NotMatchedInsert, "nothing": dml.NotMatchedSkip,
	}); err != nil {
		return m, err
	}
	if m.Duplicates, err = choose("--duplicates", f.duplicates, map[string]dml.Duplicates{
		"fail": dml.DuplicatesFail, "first": dml.DuplicatesFirst,
	}); err != nil {
		return m, err
	}
	if f.deleteNotInFile {
		m.WhenNotMatchedBySource = dml.BySourceDelete
	} else if f.where != "" {
		return m, usagef("--where narrows --delete-not-in-source, which is not set")
	}
	if m.WhenMatched == dml.MatchedKeep && m.WhenNotMatched == dml.NotMatchedSkip && !f.deleteNotInFile {
		return m, usagef("nothing is to be done with rows that match, nor with those that do not")
	}
	return m, nil
}

// someRows refuses a source without rows. Where the rows that are not in it are to be
// deleted, what was meant to write it failed, more likely than not.
func someRows(rows iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		empty := true
		for b, err := range rows {
			empty = empty && err == nil && b.NumRows() == 0
			if !yield(b, err) {
				return
			}
		}
		if empty {
			yield(nil, errors.New("the file has no rows, and --delete-not-in-source would delete everything; if that is meant, use delete --where"))
		}
	}
}

// choose reads a flag that takes one of a few words.
func choose[T any](flag, word string, values map[string]T) (T, error) {
	v, ok := values[word]
	if !ok {
		return v, usagef("%s is %q: want %s", flag, word, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	return v, nil
}
