package lance

import (
	"context"
	"strconv"
	"strings"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/table"
)

// Data files of format 2.3 are of two kinds that call themselves the same: Lance reads
// and writes the one up to 13, the other from 14 on, and neither reads the other's. So
// what is written has to be of the kind that the table is of.

// pagesOf returns the format of what is written in place of fragments, or beside them:
// the table's, and in format 2.3 of their kind. The first of them that has pages decides.
func (e *Engine) pagesOf(ctx context.Context, s *table.Snapshot, fragments []table.Fragment) (datafile.Version, error) {
	format, err := writableFormat(s.DataFormat)
	if err != nil || format != datafile.V2_3 {
		return format, err
	}
	for _, f := range fragments {
		for _, d := range f.Files {
			file, err := e.openData(ctx, f, d)
			if err != nil {
				return 0, err
			}
			version, pages := file.Version(), file.Rows() > 0 && file.NumColumns() > 0
			file.release()
			if pages {
				return version, nil
			}
		}
	}
	return kindByWriter(s)
}

// kindByWriter goes by who wrote the version: of a table without rows nothing else
// tells.
func kindByWriter(s *table.Snapshot) (datafile.Version, error) {
	v, err := versionOf(s)
	if err != nil {
		return 0, err
	}
	w := v.contents.Manifest.GetWriterVersion()
	major, _, _ := strings.Cut(w.GetVersion(), ".")
	n, err := strconv.Atoi(major)
	switch {
	case w.GetLibrary() != "lance" || err != nil:
		return 0, table.Unsupportedf("lance: the table has format 2.3, which is one thing up to Lance 13 and another from Lance 14 on, and no rows that tell which: let a Lance engine write the first ones")
	case n >= 14:
		return datafile.V2_3Planar, nil
	default:
		return datafile.V2_3, nil
	}
}
