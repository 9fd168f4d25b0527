package version

import (
	"path"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	indexpb "github.com/rehome-db/rehome/lance/internal/pb/index"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/table"
)

// System indexes index no data; the format keeps them where indexes are kept.
const (
	systemPrefix   = "__lance_"
	reuseIndexName = "__lance_frag_reuse"
)

// Names of index kinds, as people write them.
const (
	kindBTree     = "BTree"
	kindBitmap    = "Bitmap"
	kindLabelList = "LabelList"
	kindInverted  = "Inverted"
	kindIVFFlat   = "IVF_FLAT"
	kindIVFPQ     = "IVF_PQ"
	kindIVFSQ     = "IVF_SQ"
	kindIVFRQ     = "IVF_RQ"
	kindIVF       = "IVF" // a vector index that does not say which
	kindNGram     = "NGram"
)

// reuseSupport is what stock readers were seen to do with an index behind a
// fragment reuse index, up to the index version that was tried. What is not here
// refuses: HNSW graphs fail once a row was dropped, FM answers nothing, zone maps
// and Bloom filters know ranges of addresses, the others nobody has tried.
var reuseSupport = map[string]struct {
	support table.ReuseSupport
	// Readers ignore an index of a version that they do not know, and what a
	// newer one means for addresses is not known here.
	maxVersion int32
}{
	kindBitmap:    {table.ReuseThrough, 0},
	kindLabelList: {table.ReuseThrough, 1},
	kindIVFFlat:   {table.ReuseThrough, 1},
	kindIVFPQ:     {table.ReuseThrough, 1},
	kindIVFRQ:     {table.ReuseThrough, 2},
	// Both answer through it, until a stock compaction rewrites the new
	// fragments: their remapping reads the files raw.
	kindBTree:    {table.ReuseMasked, 0},
	kindInverted: {table.ReuseMasked, 2},
}

// holdRowIDs are the kinds that were seen to hold row ids in tables that have stable
// ones, up to the index version that was. Zone maps and Bloom filters know ranges of
// addresses; FM indexes and the BTree of Lance 14, which has index version 1, hold
// addresses. What nobody has seen is taken to be like these: that costs a scan, and the
// reverse wrong answers.
var holdRowIDs = map[string]int32{
	kindBTree: 0, kindBitmap: 0, kindLabelList: 1, kindInverted: 2, kindNGram: 0,
	kindIVFFlat: 1, kindIVFPQ: 1, kindIVFSQ: 1, kindIVFRQ: 2, kindIVF: 1,
	"IVF_HNSW_FLAT": 1, "IVF_HNSW_PQ": 1, "IVF_HNSW_SQ": 1,
}

func indexesOf(section *tablepb.IndexSection) ([]table.IndexMeta, error) {
	var out []table.IndexMeta
	for _, ix := range section.GetIndices() {
		m, err := indexMeta(ix)
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

// indexMeta puts an index segment into the terms of package table. The message is
// the handle: it holds what those terms leave out.
func indexMeta(ix *tablepb.IndexMetadata) (table.IndexMeta, error) {
	coverage, err := manifest.Coverage(ix.GetFragmentBitmap())
	if err != nil {
		return table.IndexMeta{}, table.Corruptf("index %q: %w", ix.GetName(), err)
	}
	m := table.IndexMeta{
		UUID:           uuidOf(ix.GetUuid()),
		Name:           ix.GetName(),
		Kind:           indexKind(ix.GetIndexDetails()),
		Fields:         ix.GetFields(),
		DatasetVersion: ix.GetDatasetVersion(),
		Coverage:       coverage,
		CoverageKnown:  coverage != nil,
		System:         strings.HasPrefix(ix.GetName(), systemPrefix),
		Handle:         ix,
	}
	idsUpTo, ids := holdRowIDs[m.Kind]
	m.ByAddress = !ids || ix.GetIndexVersion() > idsUpTo
	if known, ok := reuseSupport[m.Kind]; ok && !m.System && ix.GetIndexVersion() <= known.maxVersion {
		m.Reuse = known.support
	}
	return m, nil
}

// indexKind names the kind of index that the details describe: "BTree" for
// "/lance.table.BTreeIndexDetails".
func indexKind(details *anypb.Any) string {
	if details.GetTypeUrl() == "" {
		return "unknown" // from before details were recorded
	}
	name := path.Base(details.GetTypeUrl())
	name = name[strings.LastIndexByte(name, '.')+1:]
	name = strings.TrimSuffix(strings.TrimSuffix(name, "Details"), "Index")
	if name == "Vector" {
		return vectorKind(details.GetValue())
	}
	return name
}

// vectorKind tells vector indexes apart. Engines before Lance 8 wrote empty
// details, which leaves open what the index is.
func vectorKind(details []byte) string {
	var d indexpb.VectorIndexDetails
	if err := proto.Unmarshal(details, &d); err != nil {
		return kindIVF
	}
	var kind string
	switch d.GetCompression().(type) {
	case *indexpb.VectorIndexDetails_Flat:
		kind = kindIVFFlat
	case *indexpb.VectorIndexDetails_Pq:
		kind = kindIVFPQ
	case *indexpb.VectorIndexDetails_Sq:
		kind = kindIVFSQ
	case *indexpb.VectorIndexDetails_Rq:
		kind = kindIVFRQ
	default:
		return kindIVF
	}
	if d.GetHnswIndexConfig() != nil {
		return strings.Replace(kind, "IVF_", "IVF_HNSW_", 1)
	}
	return kind
}

func uuidOf(u *tablepb.UUID) (out table.UUID) {
	copy(out[:], u.GetUuid())
	return out
}

func uuidMessage(u table.UUID) *tablepb.UUID { return &tablepb.UUID{Uuid: u[:]} }

// IndexMessage puts an index segment back into the format's terms.
func IndexMessage(m table.IndexMeta) *tablepb.IndexMetadata {
	if ix, ok := m.Handle.(*tablepb.IndexMetadata); ok {
		return ix
	}
	ix := &tablepb.IndexMetadata{
		Uuid: uuidMessage(m.UUID), Name: m.Name, Fields: m.Fields, DatasetVersion: m.DatasetVersion,
	}
	if m.CoverageKnown {
		ix.FragmentBitmap = manifest.CoverageBytes(m.Coverage)
	}
	return ix
}
