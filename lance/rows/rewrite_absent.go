package rows

import (
	"context"
	"fmt"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// A fragment that is older than a column does not have it, and its rows are null.
// A column can also be there in part: a struct was given another field since. Then
// the new field is null wherever the struct is there, and where it is null itself,
// or inside a list that is null or empty, the levels of the new leaf have to say
// the same as those of the others. They are made up from the levels of a leaf that
// the fragment has.

// absence is how to make up the levels of a leaf that a fragment does not have.
type absence struct {
	// sibling is a leaf that the fragment has, -1 if it has none of the column:
	// then all rows are null.
	sibling int
	// shared is the number of layers that the two have in common.
	shared int
}

// findAbsent finds an absence for each leaf that the fragment lacks, and checks
// that it can be null.
func findAbsent(f table.Fragment, s *schema.Schema, leaves []schema.Leaf, places []leafPlace) ([]absence, error) {
	w := absenceWalk{leaves: leaves, places: places, out: make([]absence, len(leaves))}
	for _, top := range s.Fields {
		leaf := w.next
		if w.walk(top, 1) {
			continue
		}
		if top.LogicalType == "struct" && len(top.Children) == 0 {
			return nil, table.Unsupportedf("fragment %d: no file holds column %q, and the null of a struct without fields cannot be stored", f.ID, leaves[leaf].Path)
		}
		if !top.Nullable {
			return nil, table.Corruptf("fragment %d: no file holds column %q, which cannot be null", f.ID, top.Name)
		}
	}
	if w.err != nil {
		return nil, fmt.Errorf("fragment %d: %w", f.ID, w.err)
	}
	return w.out, nil
}

// checkNullStructs checks that no field that the fragment lacks is a struct: where it is
// made up it is null, which format 2.0 cannot store.
func checkNullStructs(f table.Fragment, leaves []schema.Leaf, places []leafPlace, absent []absence) error {
	for i, leaf := range leaves {
		if places[i].file >= 0 {
			continue
		}
		// The field that is missing, counted from the leaf.
		at := len(leaf.Layers) - absent[i].shared - 1
		if at > 0 && !leaf.Layers[at].IsList() || at == 0 && leaf.Type.Parts != "" {
			return table.Unsupportedf("fragment %d: no file holds a struct of column %q, and format 2.0 cannot store that it is null", f.ID, leaf.Path)
		}
	}
	return nil
}

type absenceWalk struct {
	leaves []schema.Leaf
	places []leafPlace
	out    []absence
	next   int // the leaf that comes next
	err    error
}

// walk visits f, which is the given number of layers from the outside, and says
// whether anything of it is there.
func (w *absenceWalk) walk(f *schema.Field, depth int) bool {
	first := w.next
	if w.leaves[first].Field == f {
		w.next++
		w.out[first].sibling = -1
		return w.places[first].file >= 0
	}
	sibling := -1
	type part struct {
		field     *schema.Field
		from, end int
	}
	var missing []part
	for _, c := range f.Children {
		from := w.next
		if !w.walk(c, depth+1) {
			missing = append(missing, part{c, from, w.next})
			continue
		}
		for i := from; i < w.next; i++ {
			if w.places[i].file >= 0 && (sibling < 0 || cheaper(w.leaves[i], w.leaves[sibling])) {
				sibling = i
			}
		}
	}
	if sibling < 0 {
		return false
	}
	for _, m := range missing {
		if !m.field.Nullable && w.err == nil {
			w.err = table.Corruptf("no file holds field %q of column %q, which cannot be null", m.field.Name, w.leaves[m.from].Path)
		}
		for i := m.from; i < m.end; i++ {
			w.out[i] = absence{sibling: sibling, shared: depth}
		}
	}
	return true
}

// cheaper says whether a is likely less work to read than b.
func cheaper(a, b schema.Leaf) bool {
	if m, n := level.MaxRep(a.Layers), level.MaxRep(b.Layers); m != n {
		return m < n
	}
	return !a.Blob && a.Type.Kind != level.Variable && (b.Type.Kind == level.Variable || a.Type.ValueBits() < b.Type.ValueBits())
}

// takeAbsent appends the rows of a part of a source for a leaf that it lacks.
func (r *rewriteRun) takeAbsent(ctx context.Context, f *rewriteFile, s *rewriteSlice, a absence, to *datafile.ColumnWriter) error {
	if a.sibling < 0 {
		return to.TakeNulls(int(s.rows))
	}
	source := &r.group.sources[s.source]
	place := source.places[a.sibling]
	of, err := r.group.open(ctx, source, place.file)
	if err != nil {
		return err
	}
	defer of.Release()
	column, err := place.Open(of)
	if err != nil {
		return source.wrap(err)
	}
	take := func(c *level.Cursor, n int) error { return to.TakeAbsent(c, n, a.shared) }
	from := &columnReading{run: r, file: f, of: of, column: column, leaf: r.group.leaves[a.sibling], take: take}
	return source.wrap(from.reencode(ctx, s.runs))
}
