package manifest

import (
	"fmt"
	"strings"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/table"
)

// The feature flags that this engine understands, as bits of the two flag words
// of a manifest.
const (
	FlagDeletionFiles     uint64 = 1 << 0 // some fragment has a deletion file
	FlagStableRowIDs      uint64 = 1 << 1 // every fragment carries row ids
	FlagV2Format          uint64 = 1 << 2 // deprecated, of old manifests without a data format
	FlagTableConfig       uint64 = 1 << 3 // the table has a config
	FlagBasePaths         uint64 = 1 << 4 // files may lie under other roots
	FlagNoTransactionFile uint64 = 1 << 5 // transactions are inline only
	// FlagTaggedReuse: the fragment reuse index has, or once had, index version 1.
	// A reader that takes it for version 0 finds the transitions missing. Stock
	// engines give bit 9 to the same index on a table with stable row ids.
	FlagTaggedReuse uint64 = 1 << 10

	knownFlags = FlagDeletionFiles | FlagStableRowIDs | FlagV2Format | FlagTableConfig | FlagBasePaths | FlagNoTransactionFile | FlagTaggedReuse
)

// flagNames are for messages: flags that are refused, but not anonymous.
var flagNames = map[uint64]string{
	1 << 6: "data overlay files",
	1 << 7: "covering indexes",
	1 << 8: "data files of several formats",
	1 << 9: "fragment reuse index with stable row ids",
}

func describeFlags(flags uint64) string {
	var out []string
	for bit := uint64(1); bit != 0; bit <<= 1 {
		if flags&bit == 0 {
			continue
		}
		if name, ok := flagNames[bit]; ok {
			out = append(out, fmt.Sprintf("%d (%s)", bit, name))
		} else {
			out = append(out, fmt.Sprint(bit))
		}
	}
	return strings.Join(out, ", ")
}

// CheckReader refuses a version with a reader flag that this engine does not understand.
func CheckReader(m *tablepb.Manifest) error {
	if unknown := m.GetReaderFeatureFlags() &^ knownFlags; unknown != 0 {
		return table.Unsupportedf("manifest: version %d asks of readers the unknown feature flags %s", m.GetVersion(), describeFlags(unknown))
	}
	return nil
}

// CheckWriter refuses to commit over a version with a writer flag that this engine does
// not understand.
func CheckWriter(m *tablepb.Manifest) error {
	if unknown := m.GetWriterFeatureFlags() &^ knownFlags; unknown != 0 {
		return table.Unsupportedf("manifest: version %d asks of writers the unknown feature flags %s; it can be read but not changed", m.GetVersion(), describeFlags(unknown))
	}
	return nil
}

// SetFlags computes both flag words from what the manifest holds. Flags are a
// statement about one version: the deletion bit goes when the last deletion file
// does. The modes that nothing in the manifest shows are inherited from what the
// words say already.
func SetFlags(m *tablepb.Manifest) {
	reader := m.GetReaderFeatureFlags() & (FlagStableRowIDs | FlagV2Format)
	writer := m.GetWriterFeatureFlags() & (FlagStableRowIDs | FlagV2Format | FlagNoTransactionFile)
	// Once set it stays, in both words.
	tagged := (m.GetReaderFeatureFlags() | m.GetWriterFeatureFlags()) & FlagTaggedReuse
	reader, writer = reader|tagged, writer|tagged
	for _, f := range m.GetFragments() {
		if f.GetDeletionFile() != nil {
			reader |= FlagDeletionFiles
			writer |= FlagDeletionFiles
		}
		if f.GetRowIdSequence() != nil {
			reader |= FlagStableRowIDs
			writer |= FlagStableRowIDs
		}
	}
	if len(m.GetConfig()) > 0 {
		writer |= FlagTableConfig
	}
	if len(m.GetBasePaths()) > 0 {
		reader |= FlagBasePaths
		writer |= FlagBasePaths
	}
	m.ReaderFeatureFlags, m.WriterFeatureFlags = reader, writer
}
