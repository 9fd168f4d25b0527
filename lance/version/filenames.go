package version

import (
	"path"
	"regexp"
	"strings"
)

// The names that Lance and rehome give the files of a table, by directory. A commit can
// only leave behind a file with such a name; somebody else put all others there.
//
// Unfinished files are among them: rehome's begin with ".tmp_", stock engines add "#1"
// to the name on local disk, and "-" and a UUID to that of a manifest.
var ownNames = regexp.MustCompile(`^(` +
	// Engines name data files by UUIDs, but a program that writes data files itself and
	// commits them chooses its own names. Values beside a file are in a directory named
	// after the file: a UUID, or its first three bytes in binary and the rest in
	// hexadecimal digits.
	`data/([^/]+\.lance(#\d+)?|(` + uuidPattern + `|[01]{24}[0-9a-f]{26})/[^/]+)` +
	`|_deletions/\d+-\d+-\d+\.(arrow|bin)(#\d+)?` +
	`|_transactions/\d+-[^/]+\.txn(#\d+)?` +
	`|_indices/` + uuidPattern + `/.+` +
	`|_fri/` + uuidPattern + `/[^/]+` +
	`|_versions/(d?\d+|_latest)\.manifest([-#].*)?` +
	`|(data|_deletions|_transactions|_versions)/\.tmp_[^/]*` +
	`)$`)

const uuidPattern = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

// foreignName says whether a file, by its path below the table, is called like nothing
// that Lance or rehome writes at that place.
func foreignName(name string) bool { return !ownNames.MatchString(name) }

// unfinishedName says whether a file has the temporary name under which rehome and Lance
// write what gets its own name when it is whole.
func unfinishedName(name string) bool { return strings.HasPrefix(path.Base(name), ".tmp_") }
