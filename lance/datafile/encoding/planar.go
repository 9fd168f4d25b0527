package encoding

import (
	"math"

	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
	"github.com/rehome-db/rehome/table"
)

// A planar layout says two things of a page apart from each other: how rows become
// leaf slots (dense: by levels; sparse: by lists of slots), and how leaf slots become
// bytes. The dense ones are the layouts of format 2.2 in other words, byte for byte,
// and are turned into those as soon as they are read.

// Dense returns the layout of format 2.2 that a planar layout with levels stands for,
// or nil if its structure is sparse.
func Dense(p *enc23pb.PlanarLayout) (*enc21pb.PageLayout, error) {
	var layers []enc21pb.RepDefLayer
	switch s := p.GetStructure().GetCodec().(type) {
	case *enc23pb.StructuralPlane_Dense:
		layers = s.Dense.GetLayers()
	case *enc23pb.StructuralPlane_Sparse:
		return nil, nil
	default:
		return nil, table.Unsupportedf("encoding: the page has a structure that is not known")
	}
	switch v := p.GetValues().GetCodec().(type) {
	case *enc23pb.ValuePlane_Chunked:
		return denseChunks(v.Chunked, layers)
	case *enc23pb.ValuePlane_Zipped:
		return denseZip(v.Zipped, layers)
	case *enc23pb.ValuePlane_Constant:
		scalar := v.Constant.GetScalar()
		if len(scalar) == 0 || len(scalar) > maxInlineConstant {
			return nil, table.Corruptf("encoding: a constant of %d bytes", len(scalar))
		}
		return constantLayout(&enc21pb.ConstantLayout{Layers: layers, InlineValue: scalar}), nil
	case *enc23pb.ValuePlane_None:
		return constantLayout(&enc21pb.ConstantLayout{Layers: layers}), nil
	default:
		return nil, table.Unsupportedf("encoding: the page has values in a form that is not known with levels")
	}
}

func constantLayout(c *enc21pb.ConstantLayout) *enc21pb.PageLayout {
	return &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_Constant{Constant: c}}
}

func denseChunks(v *enc23pb.ChunkedValues, layers []enc21pb.RepDefLayer) (*enc21pb.PageLayout, error) {
	if v.GetLevels() == nil {
		return nil, table.Corruptf("encoding: chunks without levels")
	}
	return &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_MiniBlock{MiniBlock: &enc21pb.MiniBlockLayout{
		RepCompression: v.GetLevels().GetRepetition(), DefCompression: v.GetLevels().GetDefinition(),
		RepetitionIndexDepth: v.GetLevels().GetRepetitionIndexDepth(), ValueCompression: v.GetCompression(),
		Dictionary: v.GetDictionary(), NumDictionaryItems: v.GetNumDictionaryItems(), Layers: layers,
		NumBuffers: v.GetNumBuffers(), NumItems: v.GetNumItems(), HasLargeChunk: true,
	}}}, nil
}

func denseZip(v *enc23pb.ZippedValues, layers []enc21pb.RepDefLayer) (*enc21pb.PageLayout, error) {
	if v.GetNumItems() > math.MaxUint32 || v.GetNumVisibleItems() > math.MaxUint32 {
		return nil, table.Corruptf("encoding: full-zip values of %d entries", v.GetNumItems())
	}
	out := &enc21pb.FullZipLayout{
		BitsRep: v.GetLevels().GetBitsRepetition(), BitsDef: v.GetLevels().GetBitsDefinition(),
		NumItems: uint32(v.GetNumItems()), NumVisibleItems: uint32(v.GetNumVisibleItems()),
		ValueCompression: v.GetCompression(), Layers: layers,
	}
	switch a := v.GetAddressing().(type) {
	case *enc23pb.ZippedValues_BitsPerValue:
		out.Details = &enc21pb.FullZipLayout_BitsPerValue{BitsPerValue: a.BitsPerValue}
	case *enc23pb.ZippedValues_BitsPerOffset:
		out.Details = &enc21pb.FullZipLayout_BitsPerOffset{BitsPerOffset: a.BitsPerOffset}
	}
	return &enc21pb.PageLayout{Layout: &enc21pb.PageLayout_FullZip{FullZip: out}}, nil
}

// Planar returns the planar layout that says of a page what l says, or false if none
// does: levels of constants have no place there.
func Planar(l *enc21pb.PageLayout, buffers int) (*enc23pb.PlanarLayout, bool) {
	var layers []enc21pb.RepDefLayer
	values := new(enc23pb.ValuePlane)
	switch c := l.GetLayout().(type) {
	case *enc21pb.PageLayout_MiniBlock:
		m := c.MiniBlock
		if !m.GetHasLargeChunk() {
			return nil, false
		}
		layers = m.GetLayers()
		values.Codec = &enc23pb.ValuePlane_Chunked{Chunked: &enc23pb.ChunkedValues{
			Compression: m.GetValueCompression(), Dictionary: m.GetDictionary(), NumDictionaryItems: m.GetNumDictionaryItems(),
			NumBuffers: m.GetNumBuffers(), NumItems: m.GetNumItems(),
			Levels: &enc23pb.DenseChunkLevels{Repetition: m.GetRepCompression(), Definition: m.GetDefCompression(),
				RepetitionIndexDepth: m.GetRepetitionIndexDepth()},
		}}
	case *enc21pb.PageLayout_FullZip:
		z := c.FullZip
		layers = z.GetLayers()
		out := &enc23pb.ZippedValues{
			Compression: z.GetValueCompression(), NumItems: uint64(z.GetNumItems()), NumVisibleItems: uint64(z.GetNumVisibleItems()),
			Levels: &enc23pb.DenseZipLevels{BitsRepetition: z.GetBitsRep(), BitsDefinition: z.GetBitsDef()},
		}
		switch d := z.GetDetails().(type) {
		case *enc21pb.FullZipLayout_BitsPerValue:
			out.Addressing = &enc23pb.ZippedValues_BitsPerValue{BitsPerValue: d.BitsPerValue}
		case *enc21pb.FullZipLayout_BitsPerOffset:
			out.Addressing = &enc23pb.ZippedValues_BitsPerOffset{BitsPerOffset: d.BitsPerOffset}
		}
		values.Codec = &enc23pb.ValuePlane_Zipped{Zipped: out}
	case *enc21pb.PageLayout_Constant:
		layers = c.Constant.GetLayers()
		switch {
		case buffers > 0:
			return nil, false
		case c.Constant.InlineValue == nil:
			if len(layers) != 1 || layers[0] != enc21pb.RepDefLayer_REPDEF_NULLABLE_ITEM {
				return nil, false
			}
			values.Codec = &enc23pb.ValuePlane_None{None: &enc23pb.NoValues{}}
		default:
			for _, l := range layers {
				if l != enc21pb.RepDefLayer_REPDEF_ALL_VALID_ITEM {
					return nil, false
				}
			}
			values.Codec = &enc23pb.ValuePlane_Constant{Constant: &enc23pb.ConstantValue{Scalar: c.Constant.GetInlineValue()}}
		}
	default:
		return nil, false
	}
	return &enc23pb.PlanarLayout{
		Structure: &enc23pb.StructuralPlane{Codec: &enc23pb.StructuralPlane_Dense{Dense: &enc23pb.DenseStructure{Layers: layers}}},
		Values:    values,
	}, true
}

// PlanarName is [LayoutName] of a planar layout.
func PlanarName(p *enc23pb.PlanarLayout) string {
	if dense, err := Dense(p); err == nil && dense != nil {
		return LayoutName(dense)
	}
	switch v := p.GetValues().GetCodec().(type) {
	case *enc23pb.ValuePlane_Chunked:
		return "sparse chunks of " + Name(v.Chunked.GetCompression())
	case *enc23pb.ValuePlane_Zipped:
		return "sparse full_zip " + Name(v.Zipped.GetCompression())
	case *enc23pb.ValuePlane_Constant:
		return "sparse constant"
	case *enc23pb.ValuePlane_None:
		return "sparse without values"
	case *enc23pb.ValuePlane_Indexed:
		return "sparse indices " + Name(v.Indexed.GetIndices()) + " of full_zip " + Name(v.Indexed.GetItems().GetCompression())
	default:
		return "none"
	}
}

// Planar layouts have no place for the levels of pages without values, nor for those of
// constants. Such pages get a sparse structure, and those that are much smaller with one;
// all others have levels as in format 2.2.

// planarPage describes a page in planar terms. One without values is encoded anew.
func (e *Encoder) planarPage(l *levels, page EncodedPage) EncodedPage {
	switch {
	case page.Planar != nil:
	case page.Layout.GetConstant() != nil:
		return e.sparsePage(l, &enc23pb.ValuePlane{Codec: &enc23pb.ValuePlane_None{None: &enc23pb.NoValues{}}})
	default:
		page.Planar, _ = Planar(page.Layout, len(page.Buffers)) // there are no others
	}
	return page
}
