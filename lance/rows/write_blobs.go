package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/readat"
	"github.com/rehome-db/rehome/table"
)

// New blobs go where the stock engines put them: small ones into the data file, large
// ones into files of their own, and others share files. A field can say from which
// sizes on.
const (
	inlineBlobKey    = "lance-encoding:blob-inline-size-threshold"
	dedicatedBlobKey = "lance-encoding:blob-dedicated-size-threshold"
	inlineBlob       = 64 << 10
	dedicatedBlob    = 4 << 20
)

// blobWriter writes the blobs of the columns of one new data file.
type blobWriter struct {
	beside  *sidecars
	columns map[int]*blobPlacer
}

func newBlobWriter(beside *sidecars) *blobWriter {
	return &blobWriter{beside: beside, columns: map[int]*blobPlacer{}}
}

// describe writes the blobs of a block and returns the block of their descriptions.
func (w *blobWriter) describe(ctx context.Context, column int, to *datafile.ColumnWriter, b *level.Block) (*level.Block, error) {
	leaf := to.Leaf()
	p := w.columns[column]
	if p == nil {
		p = newBlobPlacer(leaf, to, w.beside)
		w.columns[column] = p
	}
	inline, dedicated := blobThreshold(leaf, inlineBlobKey, inlineBlob), blobThreshold(leaf, dedicatedBlobKey, dedicatedBlob)
	out := *b
	out.Type = leaf.Type
	out.Values = level.Values{N: b.Values.N, Offsets: []uint32{0}}
	for i := range b.Values.N {
		// What is null has no bytes.
		if row := b.Values.Data[b.Values.Offsets[i]:b.Values.Offsets[i+1]]; len(row) > 0 {
			v := parseBlob(row)
			if v.elsewhere && !strings.Contains(v.uri, "://") {
				return nil, table.Unsupportedf("column %q: a blob at %q, which is no URI", leaf.Path, v.uri)
			}
			d := datafile.BlobDescription{Kind: datafile.BlobExternal, Position: v.position, Size: v.size, URI: v.uri}
			if !v.elsewhere {
				kind := datafile.BlobInline
				switch n := uint64(len(v.data)); {
				case n > dedicated:
					kind = datafile.BlobDedicated
				case n > inline:
					kind = datafile.BlobPacked
				}
				var err error
				if d, err = p.place(ctx, kind, readat.Bytes(v.data), 0, uint64(len(v.data))); err != nil {
					return nil, err
				}
			}
			out.Values.Data = d.Append(out.Values.Data)
		}
		out.Values.Offsets = append(out.Values.Offsets, uint32(len(out.Values.Data)))
	}
	return &out, nil
}

// blob is one value in the form of schema.BlobValues, taken apart.
type blob struct {
	elsewhere      bool
	data           []byte
	uri            string
	position, size uint64
}

// parseBlob takes a value apart that package shred has put together.
func parseBlob(row []byte) blob {
	b := blob{elsewhere: row[0] != 0}
	n := binary.LittleEndian.Uint64(row[1:])
	b.data, row = row[9:9+n], row[9+n:]
	u := binary.LittleEndian.Uint32(row)
	b.uri, row = string(row[4:4+u]), row[4+u:]
	b.position, b.size = binary.LittleEndian.Uint64(row), binary.LittleEndian.Uint64(row[8:])
	return b
}

// close completes the files beside the data file.
func (w *blobWriter) close() error {
	var err error
	for _, p := range w.columns {
		err = errors.Join(err, p.close())
	}
	return err
}

// abort gives up what is open.
func (w *blobWriter) abort() error {
	var err error
	for _, p := range w.columns {
		err = errors.Join(err, p.abort())
	}
	return err
}

// objects are the files beside the data file, those given up among them.
func (w *blobWriter) objects() []table.Object { return w.beside.objects }
