package encoding20

import (
	"context"
	"encoding/binary"

	"github.com/rehome-db/rehome/lance/datafile/level"
	enc20pb "github.com/rehome-db/rehome/lance/internal/pb/enc20"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// blobs is values that lie elsewhere in the file: pairs of a position and a size. The
// size of both nulls and empty values is 0, the position of an empty one too.
type blobs struct{ where *flat }

func (c *compiler) blobs(e *enc20pb.ArrayEncoding, t level.Type, n uint64) (values, error) {
	if t.Kind != level.Variable || t.Parts != "" {
		return nil, table.Corruptf("encoding: a blob page in a column of other values")
	}
	if _, none := dense(e).GetNullable().GetNullability().(*enc20pb.Nullable_AllNulls); none {
		return nothing{t}, nil
	}
	pair := level.Type{Kind: level.Fixed, Bits: 128, Parts: level.NewParts([]level.Part{{Bits: 64}, {Bits: 64}})}
	rows, err := c.packed(e, pair, n)
	if err != nil {
		return nil, err
	}
	return &blobs{rows.(*fixed).flat}, nil
}

func (v *blobs) read(ctx context.Context, r *Reader, lo, hi uint64) ([]byte, error) {
	r.ends = resize(r.ends, int(16*(hi-lo)))
	return r.ends, v.where.read(ctx, r.source.File, r.ends, 16*lo)
}

func (v *blobs) size(ctx context.Context, r *Reader, lo, hi uint64) (uint64, error) {
	if hi-lo > 1<<20 {
		return 16 * (hi - lo), nil // more than a block is to have anyway
	}
	where, err := v.read(ctx, r, lo, hi)
	total := uint64(0)
	for ; len(where) > 0 && err == nil; where = where[16:] {
		total += min(binary.LittleEndian.Uint64(where[8:]), 1<<33)
	}
	return total, err
}

func (v *blobs) appendTo(ctx context.Context, r *Reader, s *sink, lo, hi uint64) error {
	where, err := v.read(ctx, r, lo, hi)
	if err != nil {
		return err
	}
	first := s.v.N
	s.add(int(hi - lo))
	for i := range int(hi - lo) {
		at, size := binary.LittleEndian.Uint64(where[16*i:]), binary.LittleEndian.Uint64(where[16*i+8:])
		switch {
		case size == 0 && at != 0:
			s.null(first + i)
		case size > 0 && (at > r.source.Size || size > r.source.Size-at):
			return table.Corruptf("encoding: a blob of %d bytes at %d in a file of %d", size, at, r.source.Size)
		case size > 0:
			if err := s.tooLong(size); err != nil {
				return err
			}
			if err := readat.Full(ctx, r.source.File, s.extend(int(size)), at); err != nil {
				return err
			}
		}
		s.v.Offsets = append(s.v.Offsets, uint32(len(s.v.Data)))
	}
	return nil
}
