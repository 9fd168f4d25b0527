package objects

import (
	"fmt"
	"path"
	"strings"

	"github.com/rehome-db/rehome/deletion"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/table"
)

// Where a table keeps its objects, relative to its root.
const (
	DataDir         = "data"
	DeletionsDir    = "_deletions"
	TransactionsDir = "_transactions"
	IndicesDir      = "_indices"
	PartitionsDir   = "_fri"
	VersionsDir     = "_versions"
)

// objectDirs is where objects of each kind lie.
var objectDirs = map[table.ObjectKind]string{
	table.ObjectData:        DataDir,
	table.ObjectDeletion:    DeletionsDir,
	table.ObjectReuseIndex:  IndicesDir,
	table.ObjectTransaction: TransactionsDir,
	table.ObjectIndex:       IndicesDir,
	table.ObjectPartition:   PartitionsDir,
}

// checkObject refuses a path that is not where objects of the kind lie. The names
// come from results of tasks that may have run elsewhere, and what is asked may be
// to delete.
func (r *Root) checkObject(o table.Object) error {
	dir, known := objectDirs[o.Kind]
	if !known {
		return fmt.Errorf("lance: table %s: %q is no kind of object", r.Store, o.Kind)
	}
	if !strings.HasPrefix(o.Path, dir+"/") {
		return fmt.Errorf("lance: table %s: %s is no %s object: those lie in %s", r.Store, o.Path, o.Kind, dir)
	}
	return nil
}

// DeletionName is how a deletion file is called: nothing but the fragment and the
// reference's own numbers, so that the manifest need not hold a name.
func DeletionName(fragment uint64, d *tablepb.DeletionFile) string {
	return fmt.Sprintf("%d-%d-%d.%s", fragment, d.GetReadVersion(), d.GetId(), deletion.Encoding(d.GetFileType()).Ext())
}

// labelFileName is the name of a file of labels, in the directory of its map id.
const labelFileName = "stable_partition.lance"

// LabelPath is where the labels of a stable partition lie.
func LabelPath(mapID string) string { return path.Join(PartitionsDir, mapID, labelFileName) }
