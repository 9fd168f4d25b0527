package lance

import (
	"context"
	"crypto/rand"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/google/uuid"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/rowids"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

// AddIndex commits an index segment that has metadata and no files, which is all
// that the code under test looks at.
func (e *Engine) AddIndex(ctx context.Context, meta table.IndexMeta) (table.UUID, error) {
	_, _ = rand.Read(meta.UUID[:])
	ix := version.IndexMessage(meta)
	ix.IndexDetails = &anypb.Any{TypeUrl: "/lance.table." + meta.Kind + "IndexDetails"}
	err := e.edit(ctx, func(c *manifest.Contents) { c.Indexes.Indices = append(c.Indexes.Indices, ix) })
	return meta.UUID, err
}

// edit commits any change of the latest version's contents.
func (e *Engine) edit(ctx context.Context, change func(c *manifest.Contents)) error {
	base, err := e.Load(ctx, 0)
	if err != nil {
		return err
	}
	v := base.Handle.(*version.Version)
	c := &manifest.Contents{Manifest: proto.CloneOf(v.Contents.Manifest), Indexes: proto.CloneOf(v.Contents.Indexes)}
	change(c)
	a := attempt{engine: e, scheme: v.Scheme, target: base.Version + 1, id: uuid.NewString()}
	txn := &tablepb.Transaction{ReadVersion: base.Version, Uuid: a.id, Operation: &tablepb.Transaction_CreateIndex_{CreateIndex: &tablepb.Transaction_CreateIndex{}}}
	if err := a.seal(ctx, c, txn); err != nil {
		return err
	}
	_, err = a.publish(ctx)
	return err
}

// LastUpdated returns the versions that last updated the rows at addrs.
func (e *Engine) LastUpdated(ctx context.Context, s *table.Snapshot, addrs []table.RowAddr) ([]uint64, error) {
	v, err := e.identified(ctx, s)
	if err != nil {
		return nil, err
	}
	messages := rowids.ByID(v)
	out := make([]uint64, len(addrs))
	for i, a := range addrs {
		list, err := e.ids.LastUpdatedAt(ctx, messages[a.Fragment()])
		if err != nil {
			return nil, err
		}
		out[i], _ = list.At(uint64(a.Offset()))
	}
	return out, nil
}
