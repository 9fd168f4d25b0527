package rows

import (
	"context"
	"iter"
	"strconv"
	"strings"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

// Some formats are several that call themselves the same, and what is written has to be
// of the kind that the table is of, so that whoever could read it still can:
//
//   - 2.3: Lance reads and writes the one up to 13, the other from 14 on, and neither
//     reads the other's;
//   - 2.2: what Lance wrote before the format was finished. Files of Lance up to 1 are
//     read by Lance up to 2 alone; Lance 2 reads those and its own, and of later ones
//     only what has no newer pages. See [datafile.File.Kind].

// writableFormats are the data file versions that can be written; for the kinds of 2.3
// see pagesOf.
var writableFormats = map[string]datafile.Version{"2.0": datafile.V2_0, "2.1": datafile.V2_1, "2.2": datafile.V2_2, "2.3": datafile.V2_3}

// WritableFormat returns the version of data files with a name.
func WritableFormat(name string) (datafile.Version, error) {
	v, ok := writableFormats[name]
	switch {
	case name == "0.1":
		return 0, table.Unsupportedf("lance: data files of format 0.1 (\"legacy\") are not supported: write the table anew with a current Lance engine, which makes it 2.x")
	case !ok:
		return 0, table.Unsupportedf("lance: data files of format %s cannot be written, only 2.0 to 2.3", name)
	}
	return v, nil
}

// pagesOf returns the format of what is written in place of fragments, or beside them:
// the table's, and of its kind. The first of them that has pages which tell decides.
func (t *Table) pagesOf(ctx context.Context, s *table.Snapshot, fragments []table.Fragment) (datafile.Version, error) {
	format, err := WritableFormat(s.DataFormat)
	if err != nil || format != datafile.V2_2 && format != datafile.V2_3 {
		return format, err
	}
	kind, found, err := t.firstKind(ctx, fragments)
	switch {
	case err != nil:
		return 0, err
	case !found && format == datafile.V2_3:
		return kindByWriter(s)
	case format == datafile.V2_3:
		return kind, nil
	}
	return t.kindOf22(ctx, s, fragments, kind, found)
}

// firstKind returns the kind of the first file that tells.
func (t *Table) firstKind(ctx context.Context, fragments []table.Fragment) (datafile.Version, bool, error) {
	for kind, err := range t.kinds(ctx, fragments) {
		return kind, err == nil, err
	}
	return 0, false, nil
}

// kinds yields the kinds of the fragments' files that tell.
func (t *Table) kinds(ctx context.Context, fragments []table.Fragment) iter.Seq2[datafile.Version, error] {
	return func(yield func(datafile.Version, error) bool) {
		for _, f := range fragments {
			for _, d := range f.Files {
				file, err := t.root.OpenData(ctx, f, d)
				if err != nil {
					yield(0, err)
					return
				}
				kind, tells := file.Kind()
				file.Release()
				if tells && !yield(kind, nil) {
					return
				}
			}
		}
	}
}

// lanceWriter returns the release of Lance that wrote a version, or false if it was no
// Lance engine.
func lanceWriter(s *table.Snapshot) (major int, ok bool, err error) {
	v, err := version.Of(s)
	if err != nil {
		return 0, false, err
	}
	w := v.Contents.Manifest.GetWriterVersion()
	digits, _, _ := strings.Cut(w.GetVersion(), ".")
	n, err := strconv.Atoi(digits)
	return n, w.GetLibrary() == "lance" && err == nil, nil
}
