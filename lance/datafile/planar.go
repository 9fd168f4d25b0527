package datafile

import (
	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/lance/datafile/encoding"
	enc21pb "github.com/rehome-db/rehome/lance/internal/pb/enc21"
	enc23pb "github.com/rehome-db/rehome/lance/internal/pb/enc23"
	file2pb "github.com/rehome-db/rehome/lance/internal/pb/file2"
	"github.com/rehome-db/rehome/table"
)

// layout describes a page in the words of the file's version: planar, or by what a
// planar page with levels is told in too.
func (w *Writer) layout(l *enc21pb.PageLayout, planar *enc23pb.PlanarLayout, buffers int) (*file2pb.Encoding, error) {
	url, description := pageTypeURL, proto.Message(l)
	if w.version.Planar() {
		if planar == nil {
			var ok bool
			if planar, ok = encoding.Planar(l, buffers); !ok {
				return nil, table.Unsupportedf("a page of %s cannot be described in format %s of Lance 14", encoding.LayoutName(l), w.version)
			}
		}
		url, description = planarTypeURL, planar
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(description)
	if err != nil {
		return nil, err
	}
	return direct(url, b), nil
}
