package manifest

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/rehome-db/rehome/table"
)

// Scheme is how a table names its manifests.
type Scheme int

// The schemes.
const (
	V1 Scheme = 1 // "<version>.manifest"
	V2 Scheme = 2 // "<2^64-1-version, 20 digits>.manifest"
)

func (s Scheme) String() string { return "V" + strconv.Itoa(int(s)) }

const (
	suffix   = ".manifest"
	v2Digits = 20
)

// MaxVersion is the highest version of the linear history; numbers with the top
// bit set are detached versions.
const MaxVersion = table.MaxVersion

// Name returns the file name of a version.
func (s Scheme) Name(version uint64) string {
	if s == V1 {
		return strconv.FormatUint(version, 10) + suffix
	}
	return fmt.Sprintf("%0*d%s", v2Digits, math.MaxUint64-version, suffix)
}

// ParseName returns the version that a file name stands for; ok is false for
// everything that is not a version of the linear history.
func ParseName(name string) (version uint64, s Scheme, ok bool) {
	digits, found := strings.CutSuffix(name, suffix)
	if !found {
		return 0, 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil {
		return 0, 0, false // detached ("d..."), or no manifest at all
	}
	version, s = n, V1
	if len(digits) == v2Digits {
		version, s = math.MaxUint64-n, V2
	}
	// Only the canonical spelling can be opened by version again.
	if version == 0 || version > MaxVersion || s.Name(version) != name {
		return 0, 0, false
	}
	return version, s, true
}
