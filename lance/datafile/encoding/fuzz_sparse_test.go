package encoding_test

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/encoding"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
	"github.com/rehome-db/rehome/lance/readat"
)

// FuzzSparsePage decodes arbitrary pages of format 2.3, described by a layout as Lance
// up to 13 or (planar) from 14 on writes it, with any number of buffers: cuts is where
// they end in data, 16 bits each. The seeds are pages of the stock engine.
func FuzzSparsePage(f *testing.F) {
	paths, err := filepath.Glob("../../../testdata/golden/*_2_3_p1*/t.lance/data/*.lance")
	require.NoError(f, err)
	require.NotEmpty(f, paths)
	for _, path := range paths {
		raw, err := os.ReadFile(path)
		require.NoError(f, err)
		file, err := datafile.Open(context.Background(), readat.Bytes(raw), int64(len(raw)), path)
		require.NoError(f, err)
		for i, leaf := range file.Schema().Leaves() {
			kind, ok := fuzzKind(leaf.Type)
			shape, ok2 := fuzzShape(leaf.Layers)
			c, err := file.Column(i)
			require.NoError(f, err)
			for _, p := range c.Pages() {
				if !ok || !ok2 || p.Bytes() > 1<<12 || p.Planar == nil && p.Layout.GetSparse() == nil {
					continue
				}
				description := proto.Message(p.Layout)
				if p.Planar != nil {
					description = p.Planar
				}
				layout, err := proto.Marshal(description)
				require.NoError(f, err)
				var data, cuts []byte
				for _, b := range p.Buffers {
					data = append(data, raw[b.Offset:b.Offset+b.Size]...)
					cuts = binary.LittleEndian.AppendUint16(cuts, uint16(len(data)))
				}
				f.Add(layout, p.Planar != nil, kind, shape, uint16(p.Rows), cuts, data)
			}
		}
	}
	f.Fuzz(func(t *testing.T, layout []byte, planar bool, kind, shape byte, rows uint16, cuts, data []byte) {
		p := encoding.Page{Rows: uint64(rows), File: readat.Bytes(data), Size: uint64(len(data))}
		if !describe(&p, layout, planar) {
			return
		}
		from := 0
		for ; len(cuts) >= 2; cuts = cuts[2:] {
			to := max(min(int(binary.LittleEndian.Uint16(cuts)), len(data)), from)
			p.Buffers = append(p.Buffers, encoding.Buffer{Offset: uint64(from), Size: uint64(to - from)})
			from = to
		}
		checkPage(t, p, kind, shape)
	})
}

func describe(p *encoding.Page, layout []byte, planar bool) bool {
	if !planar {
		p.Layout = new(enc21pb.PageLayout)
		return proto.Unmarshal(layout, p.Layout) == nil
	}
	p.Planar = new(enc23pb.PlanarLayout)
	if proto.Unmarshal(layout, p.Planar) != nil {
		return false
	}
	dense, err := encoding.Dense(p.Planar)
	if dense != nil {
		p.Layout, p.Planar = dense, nil
	}
	return err == nil
}
