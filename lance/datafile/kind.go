package datafile

import "github.com/rehome-db/rehome/lance/datafile/encoding"

// kind is which of several formats of one version number a file is of, as far as its
// pages tell.
type kind struct {
	version Version
	known   bool
}

// add has a page of a file of the version tell what it can. Of format 2.2 the last kind
// counts: whoever reads the file has to read all of it.
func (k *kind) add(version Version, p encoding.Page) {
	if version.Minor() != V2_2.Minor() {
		*k = kind{version: version, known: true}
		return
	}
	is, tells := encoding.Kind(p)
	if tells && (!k.known || is.Has(k.version) || k.version == V2_2Narrow) {
		*k = kind{version: is, known: true}
	}
}

// Kind returns which of several formats of one version number the pages of the file
// show it to be of: the one that [NewWriter] has to be told for a file that the same
// readers read. It is false if they do not show that: a file without pages, or with such
// as all of them have.
//
// [V2_2Plain] means that no page needs more than that: a file of [V2_2] may have no
// such page.
func (f *File) Kind() (Version, bool) { return f.kind.version, f.kind.known }

// fits says whether page i could be part of a file of another version.
func (c *Column) fits(i int, version Version) bool {
	if version.Minor() != V2_2.Minor() || c.file.version.Minor() != V2_2.Minor() {
		return c.file.version == version
	}
	is, tells := encoding.Kind(c.page(i))
	return !tells || version.Has(is)
}
