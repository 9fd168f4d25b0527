package fri

import (
	"math"
	"path"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/table"
)

// MaxInline is the size of the largest content that is stored inline, in the
// table's metadata; a larger one goes into an object of its own.
const MaxInline = 204800

// Field numbers: FragmentReuseIndexDetails { 1 inline, 2 external },
// ExternalFile { 1 path, 2 offset, 3 size }.
const (
	detailsInline   = 1
	detailsExternal = 2

	externalPath   = 1
	externalOffset = 2
	externalSize   = 3
)

// Details is the index's entry: the content itself, or where it lies.
type Details struct {
	// Inline is the content if External is nil.
	Inline []byte
	// External says where the content lies; nil if it is inline.
	External *External
}

// External is a piece of an object that holds a content.
type External struct {
	Path   string // relative to the index's directory
	Offset uint64
	Size   uint64
}

// EncodeDetails returns the details message for a content. If external is not nil
// the content is too large to be inline: the caller stores exactly the content's
// bytes under that name, which is the one given, before it commits the message.
func EncodeDetails(content []byte, name string) (details []byte, external *External) {
	if len(content) <= MaxInline {
		return appendBytes(nil, detailsInline, content), nil
	}
	external = &External{Path: name, Size: uint64(len(content))}
	msg := appendBytes(nil, externalPath, []byte(external.Path))
	msg = appendScalar(msg, externalOffset, external.Offset)
	msg = appendScalar(msg, externalSize, external.Size)
	return appendBytes(nil, detailsExternal, msg), external
}

// DecodeDetails reads a details message. It does not look into the content.
func DecodeDetails(details []byte) (Details, error) {
	var out Details
	found := false
	for f, err := range fields(details) {
		switch {
		case err != nil:
			return Details{}, table.Corruptf("fri: details: %w", err)
		case f.num != detailsInline && f.num != detailsExternal:
			return Details{}, table.Unsupportedf("fri: details: unknown field %d", f.num)
		case f.typ != protowire.BytesType:
			return Details{}, table.Corruptf("fri: details: field %d has wire type %d", f.num, f.typ)
		case found:
			return Details{}, table.Corruptf("fri: details: more than one content")
		}
		found = true
		if f.num == detailsInline {
			out.Inline = f.bytes
			continue
		}
		if out.External, err = decodeExternal(f.bytes); err != nil {
			return Details{}, err
		}
	}
	if !found {
		return Details{}, table.Corruptf("fri: details: no content")
	}
	return out, nil
}

func decodeExternal(msg []byte) (*External, error) {
	var e External
	var seen uint64
	for f, err := range fields(msg) {
		if err == nil {
			switch {
			case f.num == externalPath && f.typ == protowire.BytesType:
				e.Path = string(f.bytes)
			case f.num == externalPath:
				return nil, table.Corruptf("fri: external file: field %d has wire type %d", f.num, f.typ)
			case f.num == externalOffset:
				err = f.scalar(&seen, &e.Offset)
			case f.num == externalSize:
				err = f.scalar(&seen, &e.Size)
			default:
				return nil, table.Unsupportedf("fri: external file: unknown field %d", f.num)
			}
		}
		if err != nil {
			return nil, table.Corruptf("fri: external file: %w", err)
		}
	}
	// The name is joined to a directory; it must not lead out of it.
	if e.Path == "" || e.Path == "." || path.IsAbs(e.Path) || strings.ContainsAny(e.Path, "\\\x00") || path.Clean(e.Path) != e.Path || strings.HasPrefix(e.Path, "..") {
		return nil, table.Corruptf("fri: external file: path %.100q", e.Path)
	}
	if e.Offset > math.MaxInt64 || e.Size > math.MaxInt64-e.Offset {
		return nil, table.Corruptf("fri: external file: %d bytes at %d", e.Size, e.Offset)
	}
	return &e, nil
}

// Slice returns the content from the object's bytes.
func (e *External) Slice(object []byte) ([]byte, error) {
	if n := uint64(len(object)); e.Offset > n || e.Size > n-e.Offset {
		return nil, table.Corruptf("fri: external file %s: %d bytes at %d, the file has %d", e.Path, e.Size, e.Offset, n)
	}
	return object[e.Offset : e.Offset+e.Size], nil
}
