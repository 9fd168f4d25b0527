package encoding

import (
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	"github.com/rehome-db/rehome/table"
)

// planEarlySparse checks a sparse page as Lance 9 to 13 write it.
func (d *Decoder) planEarlySparse(l *enc21pb.SparseLayout, p Page) (*sparse, error) {
	if len(p.Buffers) < 2 {
		return nil, table.Corruptf("encoding: a sparse page of %d buffers", len(p.Buffers))
	}
	s := &sparse{buffers: p.Buffers[2:], slots: l.GetNumVisibleItems()}
	for i, in := range l.GetLayers() {
		layer := sparseLayer{}
		var validity *enc21pb.SparseValidity
		var err error
		switch x := in.GetLayer().(type) {
		case *enc21pb.SparseLayer_Validity:
			layer.slots, validity = x.Validity.GetNumSlots(), x.Validity.GetValidity()
			layer.children = layer.slots
		case *enc21pb.SparseLayer_List:
			layer.list, layer.slots, layer.children = true, x.List.GetNumSlots(), x.List.GetNumChildSlots()
			validity = x.List.GetValidity()
			if layer.nonEmpty, err = d.earlyPositions(x.List.GetNonEmptyPositions(), layer.slots); err == nil {
				layer.counts, err = d.earlyCounts(x.List.GetCounts(), layer.nonEmpty.n)
			}
		case *enc21pb.SparseLayer_FixedSizeList:
			err = table.Unsupportedf("encoding: fixed-size lists around other types are not supported")
		default:
			err = table.Unsupportedf("encoding: layer %d of a sparse page is of a kind that is not known", i)
		}
		if err != nil {
			return nil, err
		}
		if layer.nulls, err = markedNulls(validity.GetMeaning()); err != nil {
			return nil, err
		}
		if layer.marked, err = d.earlyPositions(validity.GetPositions(), layer.slots); err != nil {
			return nil, err
		}
		s.layers = append(s.layers, layer)
	}
	if err := s.plan(d, p.Rows); err != nil {
		return nil, err
	}
	flat := &enc21pb.MiniBlockLayout{
		ValueCompression: l.GetValueCompression(), NumBuffers: l.GetNumBuffers(), NumItems: s.slots,
		Layers: withoutStructure, HasLargeChunk: l.GetHasLargeChunk(),
	}
	page := Page{Rows: s.slots, Buffers: p.Buffers[:2], File: p.File, Size: p.Size}
	inner, err := d.flat().planMiniBlock(flat, page)
	if err != nil {
		return nil, err
	}
	inner.counted = true
	s.values = &storedValues{plan: inner, page: page, all: true}
	return s, s.checkBuffers()
}

func (d *Decoder) earlyPositions(p *enc21pb.SparsePositions, slots uint64) (sparseSequence, error) {
	out := sparseSequence{codec: noSequence{}, n: p.GetNumPositions()}
	switch x := p.GetPositions().(type) {
	case *enc21pb.SparsePositions_Explicit:
		fixed, err := compileFixed(x.Explicit, 64, inBlock, d.limits.Expanded, 0)
		if err != nil {
			return out, err
		}
		out.codec, out.steps = plainSequence{decoder: fixed, width: 64, limit: d.limits.Expanded}, true
		if fixed.buffers() != 1 {
			return out, unsupported(x.Explicit)
		}
	case *enc21pb.SparsePositions_Range:
		out.codec = arithmetic{width: 64, start: x.Range.GetStart(), step: 1}
		if out.n != x.Range.GetLength() || out.n == 0 {
			return out, table.Corruptf("encoding: %d positions in a range of %d", out.n, x.Range.GetLength())
		}
	case *enc21pb.SparsePositions_All:
		if out.n != slots {
			return out, table.Corruptf("encoding: %d positions for all of %d slots", out.n, slots)
		}
		if out.n > 0 {
			out.codec = arithmetic{width: 64, step: 1}
		}
	case *enc21pb.SparsePositions_Empty:
		if out.n != 0 {
			return out, table.Corruptf("encoding: %d positions of none", out.n)
		}
	default:
		return out, table.Unsupportedf("encoding: positions in a form that is not known")
	}
	return out, nil
}

func (d *Decoder) earlyCounts(c *enc21pb.SparseCounts, n uint64) (sparseSequence, error) {
	out := sparseSequence{codec: noSequence{}, n: n}
	switch x := c.GetCounts().(type) {
	case *enc21pb.SparseCounts_Explicit:
		fixed, err := compileFixed(x.Explicit, 64, inBlock, d.limits.Expanded, 0)
		if err != nil {
			return out, err
		}
		out.codec = plainSequence{decoder: fixed, width: 64, limit: d.limits.Expanded}
		if fixed.buffers() != 1 {
			return out, unsupported(x.Explicit)
		}
	case *enc21pb.SparseCounts_Constant:
		out.codec = arithmetic{width: 64, start: x.Constant.GetValue()}
	case *enc21pb.SparseCounts_Empty:
	default:
		return out, table.Unsupportedf("encoding: counts in a form that is not known")
	}
	return out, nil
}
