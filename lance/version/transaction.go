package version

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/table"
)

// transactionFrom puts a stored transaction into the terms of package table. An
// operation that those terms do not have becomes table.Unknown, by its name in the
// format.
func transactionFrom(t *tablepb.Transaction, m *tablepb.Manifest) (table.Transaction, error) {
	out := table.Transaction{
		ID:          t.GetUuid(),
		ReadVersion: t.GetReadVersion(),
		Version:     m.GetVersion(),
		Properties:  t.GetTransactionProperties(),
	}
	c := operationReader{bases: basesOf(m)}
	out.Operation = c.operation(t)
	if c.err != nil {
		return out, fmt.Errorf("lance: the transaction of version %d (%s): %w", out.Version, operationName(t), c.err)
	}
	return out, nil
}

// operationReader converts and remembers the first thing that was wrong.
type operationReader struct {
	bases Bases
	err   error
}

func (c *operationReader) operation(t *tablepb.Transaction) table.Operation {
	switch op := t.GetOperation().(type) {
	case *tablepb.Transaction_Append_:
		return table.Append{Fragments: c.fragments(op.Append.GetFragments())}
	case *tablepb.Transaction_Delete_:
		return table.Delete{Updated: c.fragments(op.Delete.GetUpdatedFragments()), Removed: c.ids(op.Delete.GetDeletedFragmentIds())}
	case *tablepb.Transaction_Update_:
		u := op.Update
		up := table.Update{
			Removed: c.ids(u.GetRemovedFragmentIds()),
			Updated: c.fragments(u.GetUpdatedFragments()),
			New:     c.fragments(u.GetNewFragments()),
			// Older writers, and those who commit what update_columns returned, give
			// no mode: only rows that stay where they are have fields modified.
			InPlace: u.GetUpdateMode() == tablepb.Transaction_REWRITE_COLUMNS || len(u.GetFieldsModified()) > 0,
		}
		for _, id := range u.GetFieldsModified() {
			up.ModifiedFields = append(up.ModifiedFields, int32(id))
		}
		if u.GetInsertedRows() != nil {
			// An assertion that names no fields is one all the same.
			if up.UniqueKeys = slices.Clone(u.GetInsertedRows().GetFieldIds()); len(up.UniqueKeys) == 0 {
				up.UniqueKeys = []int32{-1}
			}
		}
		return up
	case *tablepb.Transaction_Rewrite_:
		return table.Rewrite{Groups: c.groups(op.Rewrite)}
	case *tablepb.Transaction_CreateIndex_:
		return table.CreateIndex{New: c.indexes(op.CreateIndex.GetNewIndices()), Removed: c.indexes(op.CreateIndex.GetRemovedIndices())}
	case *tablepb.Transaction_ReserveFragments_:
		return table.ReserveFragments{Count: op.ReserveFragments.GetNumFragments()}
	case *tablepb.Transaction_Merge_:
		return table.Merge{Fragments: c.fragments(op.Merge.GetFragments())}
	case *tablepb.Transaction_Project_:
		return table.Project{}
	case *tablepb.Transaction_Restore_:
		return table.Restore{Target: op.Restore.GetVersion()}
	case *tablepb.Transaction_Overwrite_:
		return table.Overwrite{
			Fragments: c.fragments(op.Overwrite.GetFragments()),
			Config:    slices.Sorted(maps.Keys(op.Overwrite.GetConfigUpsertValues())),
		}
	case *tablepb.Transaction_UpdateConfig_:
		return updateConfig(op.UpdateConfig)
	case *tablepb.Transaction_DataReplacement_:
		return c.dataReplacement(op.DataReplacement)
	case *tablepb.Transaction_DataOverlay_:
		return table.DataOverlay{}
	case *tablepb.Transaction_UpdateMemWalState_:
		return table.UpdateMemWALState{}
	case *tablepb.Transaction_UpdateBases_:
		var out table.UpdateBases
		for _, b := range op.UpdateBases.GetNewBases() {
			out.Bases = append(out.Bases, table.Base{ID: b.GetId(), Name: b.GetName(), Path: b.GetPath()})
		}
		return out
	case *tablepb.Transaction_Clone_:
		return table.Clone{}
	}
	return table.Unknown{Name: operationName(t)}
}

func (c *operationReader) dataReplacement(r *tablepb.Transaction_DataReplacement) table.DataReplacement {
	var out table.DataReplacement
	for _, g := range r.GetReplacements() {
		out.Replaced = append(out.Replaced, table.FragmentFields{
			Fragment: c.id(g.GetFragmentId()), Fields: slices.Clone(g.GetNewFile().GetFields()),
		})
	}
	return out
}

// updateConfig reads both forms: that of writers of today and, for what it could
// say, that of older ones.
func updateConfig(u *tablepb.Transaction_UpdateConfig) table.UpdateConfig {
	out := table.UpdateConfig{
		Config:         settings(u.GetConfigUpdates()),
		TableMetadata:  settings(u.GetTableMetadataUpdates()),
		SchemaMetadata: settings(u.GetSchemaMetadataUpdates()),
	}
	out.Config.Set = append(out.Config.Set, slices.Sorted(maps.Keys(u.GetUpsertValues()))...)
	out.Config.Unset = append(out.Config.Unset, u.GetDeleteKeys()...)
	out.SchemaMetadata.Set = append(out.SchemaMetadata.Set, slices.Sorted(maps.Keys(u.GetSchemaMetadata()))...)
	for id, m := range u.GetFieldMetadataUpdates() {
		if out.FieldMetadata == nil {
			out.FieldMetadata = map[int32]table.SettingsUpdate{}
		}
		out.FieldMetadata[id] = settings(m)
	}
	return out
}

func settings(u *tablepb.Transaction_UpdateMap) table.SettingsUpdate {
	out := table.SettingsUpdate{Replace: u.GetReplace()}
	for _, e := range u.GetUpdateEntries() {
		if e.Value == nil {
			out.Unset = append(out.Unset, e.GetKey())
		} else {
			out.Set = append(out.Set, e.GetKey())
		}
	}
	return out
}

func (c *operationReader) groups(r *tablepb.Transaction_Rewrite) []table.RewriteGroup {
	var out []table.RewriteGroup
	for _, g := range r.GetGroups() {
		out = append(out, table.RewriteGroup{Old: c.fragments(g.GetOldFragments()), New: c.fragments(g.GetNewFragments())})
	}
	if len(out) == 0 && len(r.GetOldFragments()) > 0 { // the form of old writers
		out = append(out, table.RewriteGroup{Old: c.fragments(r.GetOldFragments()), New: c.fragments(r.GetNewFragments())})
	}
	return out
}

func (c *operationReader) fragments(list []*tablepb.DataFragment) []table.Fragment {
	out := make([]table.Fragment, 0, len(list))
	for _, f := range list {
		c.id(f.GetId())
		out = append(out, c.bases.fragment(f))
	}
	return out
}

func (c *operationReader) ids(list []uint64) []table.FragmentID {
	out := make([]table.FragmentID, 0, len(list))
	for _, id := range list {
		out = append(out, c.id(id))
	}
	return out
}

func (c *operationReader) id(id uint64) table.FragmentID {
	if id > uint64(table.MaxFragmentID) && c.err == nil {
		c.err = table.Corruptf("%d is no fragment id", id)
	}
	return table.FragmentID(id)
}

func (c *operationReader) indexes(list []*tablepb.IndexMetadata) []table.IndexMeta {
	out := make([]table.IndexMeta, 0, len(list))
	for _, ix := range list {
		m, err := indexMeta(ix)
		if err != nil && c.err == nil {
			c.err = err
		}
		out = append(out, m)
	}
	return out
}

// operationName is the name that the format gives the operation, or its number if
// it is newer than the messages here.
func operationName(t *tablepb.Transaction) string {
	m := t.ProtoReflect()
	oneof := m.Descriptor().Oneofs().ByName("operation")
	if f := m.WhichOneof(oneof); f != nil {
		return string(f.Name())
	}
	// Envelope fields have numbers below the operations'.
	for unknown := m.GetUnknown(); len(unknown) > 0; {
		num, _, n := protowire.ConsumeField(unknown)
		if n < 0 {
			break
		}
		if num >= 100 {
			return fmt.Sprintf("operation %d", num)
		}
		unknown = unknown[n:]
	}
	return "no operation"
}

// TransactionMessage is the transaction that goes with a commit over base.
// Fragments that base has are written as they are there, with everything that the
// format knows of them: stock engines compare them with their own.
// reuse is the fragment reuse index that the commit puts in the place of oldReuse;
// both are nil if it leaves that alone.
func TransactionMessage(t table.Transaction, base *Version, reuse, oldReuse *tablepb.IndexMetadata) (*tablepb.Transaction, error) {
	w := newOperationWriter(base)
	out := &tablepb.Transaction{
		ReadVersion:           t.ReadVersion,
		Uuid:                  t.ID,
		TransactionProperties: t.Properties,
	}
	switch op := t.Operation.(type) {
	case table.Append:
		out.Operation = &tablepb.Transaction_Append_{Append: &tablepb.Transaction_Append{Fragments: w.fragments(op.Fragments)}}
	case table.Delete:
		out.Operation = &tablepb.Transaction_Delete_{Delete: &tablepb.Transaction_Delete{
			UpdatedFragments: w.fragments(op.Updated), DeletedFragmentIds: wideIDs(op.Removed),
		}}
	case table.Update:
		// That inserted keys are asserted to be new (op.UniqueKeys) is not written:
		// what the format has for it is a filter of hashes of the keys, and leaving it
		// out is the strict choice. Who asserts keys of their own, the stock engine
		// included, cannot compare them with an update that lists none, and treats it
		// as a conflict; who asserts none does not ask. And the assertion itself was
		// checked before this commit, against every version up to base.
		u := &tablepb.Transaction_Update{
			RemovedFragmentIds: wideIDs(op.Removed), UpdatedFragments: w.fragments(op.Updated), NewFragments: w.fragments(op.New),
		}
		if op.InPlace {
			u.UpdateMode = tablepb.Transaction_REWRITE_COLUMNS
		}
		for _, id := range op.ModifiedFields {
			u.FieldsModified = append(u.FieldsModified, uint32(id))
		}
		out.Operation = &tablepb.Transaction_Update_{Update: u}
	case table.Rewrite:
		r := &tablepb.Transaction_Rewrite{}
		for _, g := range op.Groups {
			r.Groups = append(r.Groups, &tablepb.Transaction_Rewrite_RewriteGroup{
				OldFragments: w.fragments(g.Old), NewFragments: w.fragments(g.New),
			})
		}
		out.Operation = &tablepb.Transaction_Rewrite_{Rewrite: r}
	case table.CreateIndex:
		ci := &tablepb.Transaction_CreateIndex{NewIndices: w.indexes(op.New), RemovedIndices: w.indexes(op.Removed)}
		// How the format says that the history was trimmed: the new entry, if
		// anything is left of it, for the old one.
		if reuse != nil {
			ci.NewIndices = append(ci.NewIndices, reuse)
		}
		if oldReuse != nil {
			ci.RemovedIndices = append(ci.RemovedIndices, oldReuse)
		}
		out.Operation = &tablepb.Transaction_CreateIndex_{CreateIndex: ci}
	case table.ReserveFragments:
		out.Operation = &tablepb.Transaction_ReserveFragments_{ReserveFragments: &tablepb.Transaction_ReserveFragments{NumFragments: op.Count}}
	case nil:
		return nil, fmt.Errorf("the transaction has no operation")
	default:
		return nil, table.Unsupportedf("a transaction of the kind %q cannot be written", op.Kind())
	}
	return out, w.err
}

type operationWriter struct {
	base    *Version
	current map[table.FragmentID]*tablepb.DataFragment
	err     error
}

func newOperationWriter(base *Version) *operationWriter {
	w := &operationWriter{base: base, current: map[table.FragmentID]*tablepb.DataFragment{}}
	for _, f := range base.Contents.Manifest.GetFragments() {
		w.current[table.FragmentID(f.GetId())] = f
	}
	return w
}

func (w *operationWriter) fragments(list []table.Fragment) []*tablepb.DataFragment {
	out := make([]*tablepb.DataFragment, 0, len(list))
	for _, f := range list {
		m, err := w.fragment(f)
		if err != nil && w.err == nil {
			w.err = err
		}
		out = append(out, m)
	}
	return out
}

func (w *operationWriter) fragment(f table.Fragment) (*tablepb.DataFragment, error) {
	m, err := w.base.Bases.message(f)
	if err != nil {
		return nil, err
	}
	now, ok := w.current[f.ID]
	if !ok {
		return m, nil
	}
	switch as := w.base.Bases.fragment(now); {
	case as.Same(f):
		return now, nil
	case as.SameData(f):
		return withDeletion(now, m.GetDeletionFile()), nil
	}
	return m, nil
}

func (w *operationWriter) indexes(list []table.IndexMeta) []*tablepb.IndexMetadata {
	out := make([]*tablepb.IndexMetadata, 0, len(list))
	for _, m := range list {
		out = append(out, IndexMessage(m))
	}
	return out
}

func wideIDs(ids []table.FragmentID) []uint64 {
	out := make([]uint64, 0, len(ids))
	for _, id := range slices.Sorted(slices.Values(ids)) {
		out = append(out, uint64(id))
	}
	return out
}
