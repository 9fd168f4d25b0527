package datafile

import (
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/table"
)

// What a field's metadata can ask for.
const (
	compressionKey           = "lance-encoding:compression"
	compressionLevelKey      = "lance-encoding:compression-level"
	structuralKey            = "lance-encoding:structural-encoding"
	runThresholdKey          = "lance-encoding:rle-threshold"
	splitBytesKey            = "lance-encoding:bss"
	dictionaryDivisorKey     = "lance-encoding:dict-divisor"
	dictionaryRatioKey       = "lance-encoding:dict-size-ratio"
	dictionaryCompressionKey = "lance-encoding:dict-values-compression"
	chunkBytesKey            = "lance-encoding:minichunk-size"
)

// CanWrite says why a column of the leaf cannot be written in a format, nil if it
// can (ErrUnsupported, naming column and type).
func CanWrite(version Version, leaf schema.Leaf) error {
	refuse := func(what string) error {
		return table.Unsupportedf("datafile: column %q: format %s has no %s", leaf.Path, version, what)
	}
	switch {
	case leaf.Unsupported != nil:
		return leaf.Unsupported
	case version < V2_2 && leaf.Described:
		return refuse("blobs with descriptions")
	case version < V2_2 && leaf.Type.Kind == level.Variable && leaf.Type.Parts != "" && (version != V2_0 || hasVariable(leaf.Type.Parts)):
		return refuse("packed structs of variable width")
	case version < V2_2 && leaf.Map:
		return refuse("maps")
	case version >= V2_2 && leaf.Blob:
		return refuse("blobs of this kind")
	case leaf.Blob && level.MaxRep(leaf.Layers) > 0:
		return refuse("blobs in lists")
	}
	return nil
}

// hasVariable says whether a field of a packed struct has bytes of any number.
func hasVariable(parts level.Parts) bool {
	return slices.ContainsFunc(parts.List(), func(p level.Part) bool { return p.Variable })
}

// encodeOptions takes what the leaf's type and the field's metadata ask for.
func encodeOptions(version Version, leaf schema.Leaf) encoding.EncodeOptions {
	opts := encoding.EncodeOptions{Version: version, Layers: leaf.Layers}
	for t, ok := leaf.Arrow.(*arrow.FixedSizeListType); ok; t, ok = t.Elem().(*arrow.FixedSizeListType) {
		opts.Dims = append(opts.Dims, int(t.Len()))
	}
	if d := leaf.Dictionary; d != nil {
		opts.IndexBits = d.IndexType.(arrow.FixedWidthDataType).BitWidth()
		opts.IndexSigned = arrow.IsSignedInteger(d.IndexType.ID())
	}
	if leaf.Field == nil {
		return opts
	}
	opts.EmptyStructs = leaf.Type.Kind == level.Nothing && leaf.Arrow != nil && leaf.Arrow.ID() == arrow.STRUCT
	askedOptions(&opts, leaf.Field.Metadata)
	return opts
}

// askedOptions takes what a field's metadata asks for. What makes no sense is
// passed over: it stays in the metadata, and readers need none of it.
func askedOptions(opts *encoding.EncodeOptions, metadata map[string]string) {
	number := func(key string) float64 {
		f, err := strconv.ParseFloat(metadata[key], 64)
		if err != nil || !(f > 0) || f > 1<<30 {
			return 0
		}
		return f
	}
	switch s := metadata[compressionKey]; s {
	case "lz4", "zstd", "fsst", "none":
		opts.Compression = s
	}
	opts.CompressionLevel = int(number(compressionLevelKey))
	switch strings.ToLower(metadata[structuralKey]) {
	case "miniblock":
		opts.Mini = true
	case "fullzip":
		opts.Zip = true
	}
	opts.RunThreshold = number(runThresholdKey)
	opts.SplitBytes = strings.EqualFold(metadata[splitBytesKey], "on")
	opts.DictionaryDivisor = int(number(dictionaryDivisorKey))
	opts.DictionaryRatio = number(dictionaryRatioKey)
	switch s := metadata[dictionaryCompressionKey]; s {
	case "lz4", "zstd", "none":
		opts.DictionaryCompression = s
	}
	opts.ChunkBytes = int(number(chunkBytesKey))
}
