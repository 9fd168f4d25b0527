package rows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/internal/arrowcheck"
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// Text that is not UTF-8 makes all that is read together with it unreadable for stock
// engines: a whole fragment, if it is scanned. A rewrite must not put it into one file
// with the rows of other fragments, so it looks at all text that it writes, and at that
// of pages that it copies into a file with rows of other fragments. Of a fragment that
// becomes a file by itself pages are copied as they are: nobody is worse off.

// isText says whether the values of a leaf are text.
func isText(leaf schema.Leaf) bool {
	t := leaf.Arrow
	if d, ok := t.(*arrow.DictionaryType); ok {
		t = d.ValueType
	}
	for t.ID() == arrow.EXTENSION {
		t = t.(arrow.ExtensionType).StorageType()
	}
	return leaf.Type.Kind == level.Variable && !leaf.Blob && !leaf.Described && (t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING)
}

// validText says whether all slots of a block are UTF-8, those below nulls too.
func validText(v *level.Values) bool {
	if v.N == 0 {
		return true
	}
	last := v.Offsets[v.N]
	if !utf8.Valid(v.Data[v.Offsets[0]:last]) {
		return false
	}
	for _, at := range v.Offsets[:v.N] {
		if at < last && !utf8.RuneStart(v.Data[at]) {
			return false
		}
	}
	return true
}

// textKey is a leaf of a source.
type textKey struct{ source, leaf int }

// checkText looks at a block of a leaf of a source. What is wrong below a null, or in a
// row that is deleted, is not passed on and does not count.
func (r *rewriteRun) checkText(ctx context.Context, key textKey, b *level.Block) error {
	if validText(&b.Values) {
		return nil
	}
	r.textMu.Lock()
	defer r.textMu.Unlock()
	if r.hiddenText[key] {
		return nil
	}
	if err := r.findText(ctx, key); err != nil {
		return err
	}
	if r.hiddenText == nil {
		r.hiddenText = map[textKey]bool{}
	}
	r.hiddenText[key] = true
	return nil
}

// findText reads the live rows of a leaf's column in a source and says which of them has
// text that is not UTF-8. It is slow, and done at most once.
func (r *rewriteRun) findText(ctx context.Context, key textKey) error {
	f := r.group.sources[key.source].fragment
	column := r.group.topLevel(key.leaf)
	for b, err := range r.group.table.Rows(ctx, r.req.Snapshot, []table.FragmentID{f.ID}, table.ReadOptions{Columns: []string{column}, WithAddrs: true}) {
		if err != nil {
			return err
		}
		err := arrowcheck.Text(column, b.Record.Column(0))
		var wrong *arrowcheck.Error
		if !errors.As(err, &wrong) {
			continue
		}
		row := "some row"
		if wrong.Row >= 0 && wrong.Row < len(b.Addrs) {
			row = fmt.Sprintf("row %d", b.Addrs[wrong.Row].Offset())
		}
		return table.Corruptf("%s: column %q: %s, and every row beside it in a new file would be unreadable for other engines: delete the row, or update it (verify --deep finds all of them)",
			row, wrong.Column, wrong.Reason)
	}
	return nil
}

// topLevel is the column that a leaf belongs to.
func (g *rewriteGroup) topLevel(leaf int) string {
	for _, f := range g.schema.Fields {
		if leaf -= len(f.Leaves()); leaf < 0 {
			return f.Name
		}
	}
	return ""
}

// pageChecks looks at the text of pages that are copied. A worker that has no column
// left does it beside the copying, if there is one.
type pageChecks struct {
	run   *rewriteRun
	aside sync.WaitGroup
	mu    sync.Mutex
	err   error // the first
}

// page looks at a page, now or by the time that wait returns. The column's file stays
// open as long.
func (c *pageChecks) page(ctx context.Context, key textKey, column *datafile.Column, page int) {
	check := func() {
		defer c.aside.Done()
		if err := c.run.checkPage(ctx, key, column, page); err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.err = cmp.Or(c.err, err)
		}
	}
	c.aside.Add(1)
	if !c.run.helped(check) {
		check()
	}
}

func (c *pageChecks) wait() error {
	c.aside.Wait()
	return c.err
}

// checkPage looks at the text of a page.
func (r *rewriteRun) checkPage(ctx context.Context, key textKey, column *datafile.Column, page int) error {
	first, rows := column.PartRows(page)
	for block, err := range column.BlocksRange(ctx, r.group.leaves[key.leaf], first, first+rows) {
		if err == nil {
			err = r.checkText(ctx, key, block)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
