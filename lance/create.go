package lance

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/google/uuid"

	"github.com/rehome-db/rehome/lance/datafile"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/rows"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// CreateOptions says how a new table is.
type CreateOptions struct {
	// DataFormat is the version of its data files, "2.0", "2.1" or "2.2". The default is
	// "2.1", which every stock engine since Lance 1.0 reads.
	DataFormat string
	// Naming is how its versions are named. The default is manifest.V2.
	Naming manifest.Scheme
	// StableRowIDs gives rows ids that they keep when they move, and makes indexes
	// hold those. It is for the whole life of the table. The default is false.
	StableRowIDs bool
}

// EnsureDefaults sets what is not set.
func (o *CreateOptions) EnsureDefaults() {
	if o.DataFormat == "" {
		o.DataFormat = "2.1"
	}
	if o.Naming == 0 {
		o.Naming = manifest.V2
	}
}

// Validate says what is wrong with the options.
func (o *CreateOptions) Validate() error {
	format, err := rows.WritableFormat(o.DataFormat)
	if err != nil {
		return err
	}
	if format == datafile.V2_3 {
		return table.Unsupportedf("lance: no table of format 2.3 is made: it is one thing up to Lance 13 and another from Lance 14 on")
	}
	if o.Naming != manifest.V1 && o.Naming != manifest.V2 {
		return fmt.Errorf("lance: %v is no way to name versions", o.Naming)
	}
	return nil
}

// Create makes an empty table at a location, as version 1, and opens it. That a
// table is there already is store.ErrExists.
func Create(ctx context.Context, path string, columns *arrow.Schema, create CreateOptions, opts Options) (*Engine, error) {
	opts.EnsureDefaults()
	s, err := opts.Schemes.Open(path)
	if err != nil {
		return nil, err
	}
	return CreateStore(ctx, s, columns, create, opts)
}

// CreateStore makes an empty table in a store and opens it; see [Create].
func CreateStore(ctx context.Context, s store.Store, columns *arrow.Schema, create CreateOptions, opts Options) (*Engine, error) {
	create.EnsureDefaults()
	if err := create.Validate(); err != nil {
		return nil, err
	}
	e, err := newEngine(s, opts)
	if err != nil {
		return nil, err
	}
	if err := e.create(ctx, columns, create); err != nil {
		return nil, errors.Join(fmt.Errorf("lance: create table %s: %w", s, err), e.Close())
	}
	return e, nil
}

func (e *Engine) create(ctx context.Context, columns *arrow.Schema, create CreateOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sch, err := schema.FromArrow(columns, 0)
	if err != nil {
		return err
	}
	format, err := rows.WritableFormat(create.DataFormat)
	if err != nil {
		return err
	}
	// A table that no row can be written to is of no use.
	if _, err := datafile.NewWriter(io.Discard, format, sch, datafile.WriterOptions{}); err != nil {
		return err
	}
	h, err := e.history.List(ctx)
	if err != nil {
		return err
	}
	if len(h.Versions) > 0 {
		return fmt.Errorf("it is there already, with %d versions: %w", len(h.Versions), store.ErrExists)
	}

	// The format's way to begin a table is to overwrite nothing.
	txn := &tablepb.Transaction{
		Uuid: uuid.NewString(),
		Operation: &tablepb.Transaction_Overwrite_{Overwrite: &tablepb.Transaction_Overwrite{
			Schema: sch.Proto(), SchemaMetadata: sch.ProtoMetadata(),
		}},
	}
	first := &manifest.Contents{
		Manifest: &tablepb.Manifest{
			Fields: sch.Proto(), SchemaMetadata: sch.ProtoMetadata(),
			DataFormat: &tablepb.Manifest_DataStorageFormat{FileFormat: "lance", Version: create.DataFormat},
		},
		Indexes: &tablepb.IndexSection{},
	}
	if create.StableRowIDs {
		first.Manifest.ReaderFeatureFlags = manifest.FlagStableRowIDs
		first.Manifest.WriterFeatureFlags = manifest.FlagStableRowIDs
	}
	a := attempt{engine: e, scheme: create.Naming, target: 1, id: txn.GetUuid()}
	if err := a.seal(ctx, first, txn); err != nil {
		return errors.Join(err, a.discard(ctx))
	}
	_, err = a.publish(ctx)
	if errors.Is(err, table.ErrVersionTaken) {
		return fmt.Errorf("somebody else just did: %w", store.ErrExists)
	}
	return err
}
