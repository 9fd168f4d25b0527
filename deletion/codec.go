package deletion

import (
	"bytes"
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/rehome-db/rehome/internal/roaringbytes"
)

// Encoding is the form of a stored vector. The numbers are those that Lance
// manifests use for it.
type Encoding int

// The two forms.
const (
	Arrow  Encoding = 0 // an Arrow IPC file with one uint32 column
	Bitmap Encoding = 1 // a portable 32-bit Roaring bitmap
)

// Ext returns the file name extension of the form, without the dot.
func (e Encoding) Ext() string {
	switch e {
	case Arrow:
		return "arrow"
	case Bitmap:
		return "bin"
	default:
		return ""
	}
}

// String names the form.
func (e Encoding) String() string {
	switch e {
	case Arrow:
		return "arrow"
	case Bitmap:
		return "bitmap"
	default:
		return fmt.Sprintf("encoding %d", int(e))
	}
}

const (
	// smallestArrow is less than the size of any Arrow file with a row: the container
	// alone takes more.
	smallestArrow = 512
	// fewRows is the number of rows for each 65536 up to which a list of them may be
	// smaller than a bitmap, which has a container for each 65536.
	fewRows = 16
	// largestPlain is the size above which a bitmap has run containers.
	largestPlain = 1 << 20
)

// Encode returns v in the form that takes fewer bytes. Every reader takes both.
func Encode(v *Vector) (Encoding, []byte, error) {
	bin := EncodeBitmap(v)
	// A bitmap loses only where rows are so few and far between that most have
	// a container to themselves.
	if len(bin) <= smallestArrow || v.Cardinality() > fewRows*v.containers() {
		return Bitmap, bin, nil
	}
	arrow, err := EncodeArrow(v)
	if err != nil {
		return 0, nil, err
	}
	if len(arrow) < len(bin) {
		return Arrow, arrow, nil
	}
	return Bitmap, bin, nil
}

// Decode reads a stored vector of a fragment with the given number of physical
// rows (at most 2^32), which bounds the memory it takes. An error wraps
// [ErrCorrupt] or [ErrUnsupported]. Compare the result with the recorded number of
// deleted rows by [Vector.Validate].
func Decode(e Encoding, data []byte, physicalRows uint64) (*Vector, error) {
	switch e {
	case Arrow:
		return DecodeArrow(data, physicalRows)
	case Bitmap:
		return DecodeBitmap(data, physicalRows)
	default:
		return nil, unsupportedf("deletion: unknown %v", e)
	}
}

// EncodeBitmap returns v as a portable Roaring bitmap. Like that of stock engines it
// has no run containers, unless it would be large: then it has them where they are
// smaller, so that its size follows the runs of rows and not the rows.
func EncodeBitmap(v *Vector) []byte {
	if v.plainSize() > largestPlain {
		return EncodeRuns(v)
	}
	return roaringbytes.Append(nil, v.bitmap().Ranges(), roaringbytes.WithoutRuns)
}

// EncodeRuns returns v as a portable Roaring bitmap with run containers wherever they
// are smaller: for whatever is not a deletion file.
func EncodeRuns(v *Vector) []byte {
	return roaringbytes.Append(nil, v.bitmap().Ranges(), roaringbytes.WithRuns)
}

// DecodeBitmap reads a portable Roaring bitmap, run containers or not, that takes
// up all of data.
func DecodeBitmap(data []byte, physicalRows uint64) (v *Vector, err error) {
	shape, err := roaringbytes.Check(data)
	if err != nil {
		return nil, corruptf("deletion: bitmap: %w", err)
	}
	if shape.Size != len(data) {
		return nil, corruptf("deletion: bitmap: %d bytes follow its end at byte %d", len(data)-shape.Size, shape.Size)
	}
	if shape.Cardinality > 0 && uint64(shape.Max) >= physicalRows {
		return nil, corruptf("deletion: bitmap: offset %d is deleted in a fragment of %d rows", shape.Max, physicalRows)
	}
	// The check leaves the library nothing to fail on. If it panics even so, this
	// file is refused and the process goes on.
	defer func() {
		if p := recover(); p != nil {
			v, err = nil, corruptf("deletion: bitmap: %v", p)
		}
	}()
	bm := roaring.New()
	// ReadFrom copies, where the library's other readers keep pointing into data.
	if _, err := bm.ReadFrom(bytes.NewReader(data)); err != nil {
		return nil, corruptf("deletion: bitmap: %w", err)
	}
	return compact(bm), nil
}
