package version

import (
	"errors"
	"fmt"

	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/table"
)

// DamagedLatestError says that the manifest of the latest version is empty or damaged,
// and what to do: no engine opens the table then, and so none restores an older version.
// It is a [table.ErrCorrupt].
type DamagedLatestError struct {
	// Version is the latest, and Manifest its object, relative to the table.
	Version  uint64
	Manifest string
	// Before is the version before it that is there, 0 if there is none.
	Before uint64
	// Err says what is wrong with it, with table and version.
	Err error
}

func (e *DamagedLatestError) Error() string {
	if e.Before == 0 {
		return e.Err.Error() + "; the table has no other version"
	}
	return fmt.Sprintf("%v; stock engines cannot restore an older version beside it: move %s out of %s, and version %d is the latest (check it first: verify --version %d --deep); what version %d committed is lost",
		e.Err, e.Manifest, objects.VersionsDir, e.Before, e.Before, e.Version)
}

// Unwrap returns what is wrong with the manifest.
func (e *DamagedLatestError) Unwrap() error { return e.Err }

// undecodable marks the error of a manifest that breaks the rules of the format.
type undecodable struct{ error }

func (e undecodable) Unwrap() error { return e.error }

// ofLatest gives an error of reading the latest version its advice, if its manifest is
// damaged.
func (l Listing) ofLatest(err error) error {
	var bad undecodable
	if !errors.As(err, &bad) || !errors.Is(err, table.ErrCorrupt) {
		return err
	}
	out := &DamagedLatestError{Version: l.Latest(), Manifest: manifestName(l.Latest(), l.Scheme), Err: err}
	if n := len(l.Versions); n > 1 {
		out.Before = l.Versions[n-2]
	}
	return out
}

// decoded reads what is in a manifest's bytes, and checks that it is the version that
// its name says.
func (h *History) decoded(data []byte, name string, version uint64) (*manifest.Contents, error) {
	c, err := manifest.Decode(data)
	if err != nil {
		return nil, undecodable{fmt.Errorf("lance: table %s version %d: %s: %w", h.root.Store, version, name, err)}
	}
	if inner := c.Manifest.GetVersion(); inner != version {
		return nil, undecodable{table.Corruptf("lance: table %s: %s says that it is version %d, its name says %d", h.root.Store, name, inner, version)}
	}
	return c, nil
}
