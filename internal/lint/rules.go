package lint

import "strings"

// Module is the import path of the module.
const Module = "github.com/rehome-db/rehome"

// The libraries that rules name. A path that ends in "/..." stands for the package
// and all below it.
const (
	arrowSchema = "github.com/apache/arrow-go/v18/arrow"
	arrow       = "github.com/apache/arrow-go/v18/arrow/..."
	memefish    = "github.com/cloudspannerecosystem/memefish/..."
	roaring     = "github.com/RoaringBitmap/roaring/v2/..."
	ristretto   = "github.com/dgraph-io/ristretto/v2/..."
	protobuf    = "google.golang.org/protobuf/..."
	protowire   = "google.golang.org/protobuf/encoding/protowire"
	zstd        = "github.com/klauspost/compress/..."
	lz4         = "github.com/pierrec/lz4/v4/..."
	uuid        = "github.com/google/uuid"
	errgroup    = "golang.org/x/sync/..."
	unix        = "golang.org/x/sys/unix"
	testify     = "github.com/stretchr/testify/..."
	rapid       = "pgregory.net/rapid"
	anything    = "..."
)

// Rule says what the packages that it names may import beside the standard
// library. The rule with the longest matching name applies.
type Rule struct {
	// Package is a path below the module, with "/..." for a whole tree.
	Package string
	// May lists packages of the module by the same kind of path, and libraries.
	May []string
	// Tests lists what its tests may import too, beside what all tests may.
	Tests []string
}

// Rules are the import rules, from the lowest layer up.
var Rules = []Rule{
	// The model knows schemas and nothing that holds rows.
	{Package: "table", May: []string{"internal/unwrap", arrowSchema}},
	{Package: "internal/unwrap"},
	// Leaves: bytes and sets, no tables.
	{Package: "internal/roaringbytes"},
	{Package: "internal/gather", May: []string{"table", arrow}},
	// What comes from outside is looked at before it is used.
	{Package: "internal/arrowcheck", May: []string{arrow}},
	{Package: "internal/recovered"},
	{Package: "internal/events"},
	{Package: "internal/arrowipc", May: []string{"internal/recovered", arrow, zstd, lz4}, Tests: []string{"internal/arrowcheck"}},
	{Package: "deletion", May: []string{"internal/roaringbytes", roaring, arrow, zstd}},
	// The fragment reuse index knows addresses, not engines. Its one message is
	// read and written by hand, so the protobuf runtime stays out.
	{Package: "fri", May: []string{"table", "internal/roaringbytes", roaring, ristretto, protowire, errgroup}},
	{Package: "fri/fritest", May: []string{"table", "deletion", "fri", testify, rapid}},
	// How one transaction gets into a table, whatever it is.
	{Package: "commit", May: []string{"table", "deletion"}},
	// What holds addresses, and what changes mean for each other: both know the
	// model and the reuse index, neither knows an engine.
	{Package: "remap", May: []string{"table", "fri", "internal/gather", "internal/roaringbytes", roaring, arrow}, Tests: []string{"fri/fritest"}},
	{Package: "rebase", May: []string{"table", "deletion", "fri", "commit", arrow, errgroup}, Tests: []string{"compaction"}},
	// Compaction drives an engine through table. It must never import lance: that
	// is what makes it usable with another engine.
	{Package: "compaction", May: []string{"table", "deletion", "fri", "commit", "rebase", "internal/events", uuid, errgroup}},
	// Row changes drive an engine through table, too.
	{Package: "dml", May: []string{"table", "deletion", "commit", "rebase", "internal/arrowcheck", "internal/events", "internal/gather", arrow, uuid, errgroup}, Tests: []string{"compaction", "lance", "lance/store/...", "dml/sqlexpr"}},
	// What SQL text means. Of Arrow, not the compute kernels: they weigh more than the
	// rest of the module (docs/libraries.md).
	{Package: "dml/sqlexpr", May: []string{"table", "dml", "internal/gather", memefish, arrowSchema, arrowSchema + "/array", arrowSchema + "/bitutil",
		arrowSchema + "/decimal128", arrowSchema + "/decimal256", arrowSchema + "/memory"}},
	// For authors of engines: the smallest engine, and the suite that tests one.
	{Package: "table/memengine", May: []string{"table", "deletion", arrow}},
	{Package: "table/txn", May: []string{"table"}},
	{Package: "table/enginetest", May: []string{"table", "table/txn", "deletion", arrow, testify}},

	// The Lance engine may use all of the above. Within it, the file format and the
	// stores know nothing of versions and of each other.
	{Package: "lance", May: []string{"table", "deletion", "fri", "remap", "commit", "rebase", "dml", "compaction", "internal/arrowcheck", "internal/recovered", "internal/roaringbytes", "lance/...", arrow, roaring, protobuf, uuid, errgroup}},
	{Package: "lance/readat", May: []string{"table"}},
	{Package: "lance/store/...", May: []string{"table", "internal/unwrap", "lance/readat", "lance/store/...", unix}},
	{Package: "lance/store/storetest", May: []string{"table", "lance/store/...", testify}},
	{Package: "lance/cache", May: []string{errgroup}},
	{Package: "lance/objects", May: []string{"table", "deletion", "lance/cache", "lance/store", "lance/datafile", "lance/internal/pb/...", protobuf}, Tests: []string{"lance/..."}},
	{Package: "lance/manifest", May: []string{"table", "internal/roaringbytes", "lance/store", "lance/schema", "lance/internal/pb/...", roaring, protobuf}, Tests: []string{"lance/..."}},
	{Package: "lance/rowids", May: []string{"table", "deletion", "lance/objects", "lance/readat", "lance/store", "lance/internal/pb/...", protobuf}, Tests: []string{"lance/..."}},
	{Package: "lance/version", May: []string{"table", "deletion", "fri", "lance/cache", "lance/objects", "lance/store", "lance/manifest", "lance/schema", "lance/rowids", "lance/internal/pb/...", protobuf, uuid}, Tests: []string{"lance/..."}},
	{Package: "lance/rows", May: []string{"table", "deletion", "internal/arrowcheck", "internal/recovered", "lance/objects", "lance/readat", "lance/store", "lance/manifest", "lance/schema", "lance/version", "lance/datafile/...", arrow, errgroup}, Tests: []string{"lance/..."}},
	{Package: "lance/schema", May: []string{"table", "lance/datafile/level", "lance/internal/pb/...", arrow, protobuf}, Tests: []string{"lance/..."}},
	{Package: "lance/datafile/...", May: []string{"table", "lance/readat", "lance/datafile/...", "lance/schema", "lance/internal/pb/...", arrow, zstd, lz4, protobuf, errgroup}, Tests: []string{"lance/..."}},
	{Package: "lance/datafile/assemble", May: []string{"table", "internal/gather", "lance/datafile/...", "lance/schema", arrow}, Tests: []string{"lance/..."}},
	{Package: "lance/datafile/filetest", May: []string{"lance/readat", "lance/datafile/...", "lance/schema", arrow, testify}},
	{Package: "lance/datafile/level/leveltest", May: []string{"table", "lance/datafile/level", testify, rapid}},
	{Package: "lance/internal/pb/...", May: []string{"lance/internal/pb/...", protobuf}},
	{Package: "lance/internal/genpb", May: []string{protobuf, "github.com/bufbuild/protocompile/..."}},

	// Shared by commands and tests; engine-neutral.
	{Package: "internal/rowjson", May: []string{"table", "internal/gather", arrow}},
	{Package: "internal/verify", May: []string{"table", "deletion", "fri", "internal/arrowcheck", errgroup}, Tests: []string{"compaction"}},
	{Package: "internal/testtable", May: []string{testify}},
	{Package: "internal/lint"},
	// The top: whatever it takes. Nothing may import these but each other.
	{Package: "cli", May: []string{anything}},
	{Package: "cmd/...", May: []string{anything}},
	{Package: "interop/...", May: []string{anything}},
}

// forTests is what the tests of any package may import besides.
var forTests = []string{
	"table", "table/memengine", "table/enginetest", "deletion",
	"internal/roaringbytes", "internal/rowjson", "internal/testtable", "internal/verify", arrow, roaring, protobuf,
	testify, rapid, "go.uber.org/goleak", "github.com/cockroachdb/datadriven",
	"github.com/rogpeppe/go-internal/testscript",
}

// ruleFor finds the rule of a package, by its path below the module.
func ruleFor(pkg string) (best Rule, ok bool) {
	for _, r := range Rules {
		if matches(r.Package, pkg) && len(r.Package) > len(best.Package) {
			best, ok = r, true
		}
	}
	return best, ok
}

// matches says whether a path is the pattern, or below it if the pattern ends in
// "/...".
func matches(pattern, path string) bool {
	if pattern == anything {
		return true
	}
	root, tree := strings.CutSuffix(pattern, "/...")
	return path == root || tree && strings.HasPrefix(path, root+"/")
}
