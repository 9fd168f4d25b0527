package manifest

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/table"
)

const (
	prefixSize = 4
	footerSize = 16
	magic      = "LANC"

	// The version in the footer is that of the container, whatever the version
	// of the data files.
	footerMajor = 0
	footerMinor = 2
)

// MaxSize is the largest manifest file that is read. The manifest of a million
// fragments takes about a tenth of it.
const MaxSize = 2 << 30

// Contents is a decoded manifest file.
type Contents struct {
	Manifest *tablepb.Manifest
	// Indexes is the index section; never nil.
	Indexes *tablepb.IndexSection
	// Transaction is the inline transaction, encoded; nil if there is none. See
	// [DecodeTransaction].
	Transaction []byte
}

// Decode reads a manifest file and checks it. A broken rule is ErrCorrupt; an unknown
// container version is ErrUnsupported.
func Decode(data []byte) (*Contents, error) {
	if len(data) < footerSize+prefixSize {
		return nil, table.Corruptf("manifest: %d bytes are too few for a manifest file: truncated", len(data))
	}
	footer := data[len(data)-footerSize:]
	if string(footer[12:]) != magic {
		return nil, table.Corruptf("manifest: the file does not end with %q: truncated, or not a manifest", magic)
	}
	major, minor := binary.LittleEndian.Uint16(footer[8:]), binary.LittleEndian.Uint16(footer[10:])
	if major != footerMajor || minor > footerMinor {
		return nil, table.Unsupportedf("manifest: container version %d.%d", major, minor)
	}
	pos := binary.LittleEndian.Uint64(footer)
	body, err := section(data[:len(data)-footerSize], pos, "manifest")
	if err != nil {
		return nil, err
	}
	if end := pos + prefixSize + uint64(len(body)) + footerSize; end != uint64(len(data)) {
		return nil, table.Corruptf("manifest: the manifest ends at byte %d of a file of %d", end, len(data))
	}
	c := &Contents{Manifest: &tablepb.Manifest{}, Indexes: &tablepb.IndexSection{}}
	if err := checkDensity(body, "manifest"); err != nil {
		return nil, err
	}
	if err := proto.Unmarshal(body, c.Manifest); err != nil {
		return nil, table.Corruptf("manifest: decode: %w", err)
	}
	before := data[:pos] // the sections come before the manifest
	if c.Manifest.IndexSection != nil {
		b, err := section(before, c.Manifest.GetIndexSection(), "index section")
		if err != nil {
			return nil, err
		}
		if err := checkDensity(b, "index section"); err != nil {
			return nil, err
		}
		if err := proto.Unmarshal(b, c.Indexes); err != nil {
			return nil, table.Corruptf("manifest: decode the index section: %w", err)
		}
	}
	at := c.Manifest.TransactionSection
	if at == nil {
		at = c.Manifest.TransactionSectionV14
	}
	if at != nil {
		b, err := section(before, *at, "transaction")
		if err != nil {
			return nil, err
		}
		c.Transaction = append([]byte{}, b...) // do not hold the whole file
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return c, nil
}

// section returns the bytes behind the length prefix at pos.
func section(data []byte, pos uint64, what string) ([]byte, error) {
	if pos > uint64(len(data)) || uint64(len(data))-pos < prefixSize {
		return nil, table.Corruptf("manifest: the %s is said to be at byte %d of %d", what, pos, len(data))
	}
	n := uint64(binary.LittleEndian.Uint32(data[pos:]))
	rest := data[pos+prefixSize:]
	if n > uint64(len(rest)) {
		return nil, table.Corruptf("manifest: the %s at byte %d is said to have %d bytes, of which %d are there", what, pos, n, len(rest))
	}
	return rest[:n:n], nil
}

// Encode returns the file's bytes. It sets the sections' positions in the
// manifest; everything else is written as it is.
func (c *Contents) Encode() ([]byte, error) {
	var out []byte
	m := c.Manifest
	// Lance 14 would follow a position left over from the replaced file, and end
	// anywhere. Every reader finds the transaction without it.
	m.IndexSection, m.TransactionSection, m.TransactionSectionV14 = nil, nil, nil
	if len(c.Indexes.GetIndices()) > 0 {
		m.IndexSection = proto.Uint64(uint64(len(out)))
		b, err := encoding.Marshal(c.Indexes)
		if err != nil {
			return nil, fmt.Errorf("manifest: encode the index section: %w", err)
		}
		if out, err = appendSection(out, b, "index section"); err != nil {
			return nil, err
		}
	}
	if c.Transaction != nil {
		m.TransactionSection = proto.Uint64(uint64(len(out)))
		var err error
		if out, err = appendSection(out, c.Transaction, "transaction"); err != nil {
			return nil, err
		}
	}
	pos := uint64(len(out))
	b, err := encoding.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("manifest: encode: %w", err)
	}
	if out, err = appendSection(out, b, "manifest"); err != nil {
		return nil, err
	}
	out = binary.LittleEndian.AppendUint64(out, pos)
	out = binary.LittleEndian.AppendUint16(out, footerMajor)
	out = binary.LittleEndian.AppendUint16(out, footerMinor)
	return append(out, magic...), nil
}

// Maps in a fixed order, so that the same version gives the same bytes.
var encoding = proto.MarshalOptions{Deterministic: true}

func appendSection(out, b []byte, what string) ([]byte, error) {
	if uint64(len(b)) > math.MaxUint32 {
		return nil, table.Unsupportedf("manifest: the %s takes %d bytes, and its length prefix has 32 bits", what, len(b))
	}
	out = binary.LittleEndian.AppendUint32(out, uint32(len(b)))
	return append(out, b...), nil
}

// EncodeTransaction returns the bytes of a transaction, inline or in a file.
func EncodeTransaction(t *tablepb.Transaction) ([]byte, error) {
	b, err := encoding.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("manifest: encode the transaction: %w", err)
	}
	if b == nil {
		b = []byte{}
	}
	return b, nil
}

// DecodeTransaction reads the bytes of a transaction.
func DecodeTransaction(b []byte) (*tablepb.Transaction, error) {
	t := &tablepb.Transaction{}
	if err := proto.Unmarshal(b, t); err != nil {
		return nil, table.Corruptf("manifest: decode the transaction: %w", err)
	}
	return t, nil
}
