package main

import (
	"context"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// wrongRows counts what differs from the table as it must be now, as the stock
// engine reads it and as rehome does: rows that are missing, there twice, or
// without the value that the client gave them.
func wrongRows(ctx context.Context, client *interop.Engine, path string, rows int, values map[int64]string) (int, error) {
	a, err := client.Query(ctx, path, interop.Query{Columns: []string{"id", "s"}})
	if err != nil {
		return 0, err
	}
	defer a.Release()
	theirs := rowCheck{seen: make([]bool, rows), values: values}
	for _, rec := range a.Batches {
		if err := theirs.add(rec); err != nil {
			return 0, err
		}
	}

	e, err := lance.Open(ctx, path, lance.Options{})
	if err != nil {
		return 0, err
	}
	defer e.Close()
	s, err := e.Load(ctx, 0)
	if err != nil {
		return 0, err
	}
	var ids []table.FragmentID
	for _, f := range s.Fragments {
		ids = append(ids, f.ID)
	}
	ours := rowCheck{seen: make([]bool, rows), values: values}
	for b, err := range e.Rows(ctx, s, ids, table.ReadOptions{Columns: []string{"id", "s"}}) {
		if err == nil {
			err = ours.add(b.Record)
		}
		if err != nil {
			return 0, err
		}
	}
	return theirs.end() + ours.end(), nil
}

// rowCheck compares the rows of one reader.
type rowCheck struct {
	seen   []bool
	values map[int64]string
	wrong  int
}

func (c *rowCheck) add(rec arrow.RecordBatch) error {
	ids, ok := rec.Column(0).(*array.Int64)
	text, also := rec.Column(1).(*array.String)
	if !ok || !also {
		return fmt.Errorf("the columns are %s", rec.Schema())
	}
	for i, id := range ids.Int64Values() {
		want, updated := c.values[id]
		if id < 0 || id >= int64(len(c.seen)) || c.seen[id] || updated && text.Value(i) != want {
			c.wrong++
			continue
		}
		c.seen[id] = true
	}
	return nil
}

// end counts what did not come, too.
func (c *rowCheck) end() int {
	for _, s := range c.seen {
		if !s {
			c.wrong++
		}
	}
	return c.wrong
}
