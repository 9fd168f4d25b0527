package lance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

const (
	statThreads = 8
)

// Commit implements table.Committer.
//
// The commit is one put-if-absent of the next version's manifest. Everything
// before it can be repeated or thrown away, everything after it is for the
// convenience of readers.
func (e *Engine) Commit(ctx context.Context, p table.Proposal) (*table.Snapshot, error) {
	if err := e.root.Ready(ctx); err != nil {
		return nil, err
	}
	base, err := version.Of(p.Base)
	if err != nil {
		return nil, err
	}
	if p.Transaction.ID == "" {
		p.Transaction.ID = uuid.NewString()
	}
	next, err := e.commit(ctx, base, p)
	if err != nil {
		return nil, fmt.Errorf("lance: commit of transaction %s (%s) over version %d of table %s: %w",
			p.Transaction.ID, kindOf(p.Transaction.Operation), p.Base.Version, e.root.Store, err)
	}
	return next, nil
}

func kindOf(op table.Operation) string {
	if op == nil {
		return "no operation"
	}
	return op.Kind()
}

func (e *Engine) commit(ctx context.Context, base *version.Version, p table.Proposal) (*table.Snapshot, error) {
	m := base.Contents.Manifest
	if err := manifest.CheckWriter(m); err != nil {
		return nil, err
	}
	if err := p.Base.CheckSuccessor(); err != nil {
		return nil, err
	}
	if p.Change.Reuse != nil && m.GetReaderFeatureFlags()&manifest.FlagStableRowIDs != 0 {
		if err := e.history.OnlyTrimmed(ctx, p.Base, p.Change.Reuse); err != nil {
			return nil, err
		}
	}
	if strings.ContainsAny(p.Transaction.ID, "/\\") {
		return nil, fmt.Errorf("the id is part of a file's name and cannot have slashes")
	}
	if s, err := e.newer(ctx, base, p.Transaction.ID); s != nil || err != nil {
		return s, err
	}
	rows, err := e.ids.Assign(ctx, base, p)
	if err != nil {
		return nil, err
	}
	next, err := version.Apply(base, p.Change, rows)
	if err != nil {
		return nil, err
	}

	a := attempt{engine: e, scheme: base.Scheme, target: m.GetVersion() + 1, id: p.Transaction.ID}
	if err := a.prepare(ctx, base, p, next); err != nil {
		return nil, errors.Join(err, a.discard(ctx))
	}
	return a.publish(ctx)
}

// newer finds out whether a version after base is there already: ErrVersionTaken,
// unless it is this very transaction's, from an attempt whose answer got lost.
//
// This is more than a short cut. If the version after base was cleaned up since,
// its name is free again, and a commit under it would lie behind the latest where
// nobody looks.
func (e *Engine) newer(ctx context.Context, base *version.Version, transaction string) (*table.Snapshot, error) {
	h, err := e.history.List(ctx)
	if err != nil {
		return nil, err
	}
	target := base.Contents.Manifest.GetVersion() + 1
	if len(h.Versions) == 0 {
		return nil, e.history.NotTable()
	}
	if h.Scheme != base.Scheme {
		// Renamed since: a version by the old scheme would stand beside the others.
		return nil, table.ErrVersionTaken
	}
	if h.Latest() < target {
		return nil, nil
	}
	return e.whose(ctx, target, base.Scheme, transaction)
}

// whose reads a version whose name is taken. It returns the snapshot if the
// transaction made it and ErrVersionTaken if another one did; any other error
// leaves that open.
func (e *Engine) whose(ctx context.Context, target uint64, scheme manifest.Scheme, transaction string) (*table.Snapshot, error) {
	c, err := e.history.ReadManifest(ctx, target, scheme)
	switch {
	case errors.Is(err, table.ErrNotFound), errors.Is(err, table.ErrCorrupt), errors.Is(err, table.ErrUnsupported):
		// Cleaned up since, or nothing that this engine writes.
	case err != nil:
		return nil, err
	case c.Transaction != nil:
		t, err := manifest.DecodeTransaction(c.Transaction)
		if err == nil && t.GetUuid() == transaction {
			return e.history.Snapshot(ctx, c, scheme)
		}
	}
	return nil, fmt.Errorf("version %d was published by another writer: %w", target, table.ErrVersionTaken)
}

// attempt is one try to publish one version.
type attempt struct {
	engine *Engine
	scheme manifest.Scheme
	target uint64         // the version to be
	id     string         // of the transaction
	wrote  []table.Object // by this attempt itself
	bytes  []byte         // of the manifest
	next   *table.Snapshot
}

func (a *attempt) name() string { return objects.VersionsDir + "/" + a.scheme.Name(a.target) }

// prepare writes everything but the manifest, and makes that.
func (a *attempt) prepare(ctx context.Context, base *version.Version, p table.Proposal, next *version.Applied) error {
	e := a.engine
	var reuse *tablepb.IndexMetadata
	if p.Change.Reuse != nil {
		var wrote []table.Object
		var err error
		reuse, wrote, err = e.history.NewReuseEntry(ctx, base, next, p.Change.Reuse, e.opts.Now())
		a.wrote = append(a.wrote, wrote...)
		if err != nil {
			return err
		}
		next.SetReuse(reuse)
	}
	var oldReuse *tablepb.IndexMetadata
	if p.Change.Reuse != nil || p.Change.DropReuse {
		oldReuse = version.ReuseEntry(base.Contents.Indexes)
	}
	txn, err := version.TransactionMessage(p.Transaction, base, reuse, oldReuse)
	if err != nil {
		return err
	}
	next.Describe(txn)
	// Last, because a clean-up that removes what no version refers to may run at
	// any time.
	if err := e.mustExist(ctx, next.Refers); err != nil {
		return err
	}
	return a.seal(ctx, next.Contents, txn)
}

// seal adds to contents what is not the change's business, writes the
// transaction's file, and makes the manifest's bytes.
func (a *attempt) seal(ctx context.Context, c *manifest.Contents, txn *tablepb.Transaction) (err error) {
	m := c.Manifest
	if c.Transaction, err = manifest.EncodeTransaction(txn); err != nil {
		return err
	}
	m.TransactionFile = ""
	if m.GetWriterFeatureFlags()&manifest.FlagNoTransactionFile == 0 {
		// The file is for older readers. The manifest holds the same bytes, so
		// the file need not survive a power failure.
		m.TransactionFile = fmt.Sprintf("%d-%s.txn", txn.GetReadVersion(), txn.GetUuid())
		o := table.Object{Kind: table.ObjectTransaction, Path: objects.TransactionsDir + "/" + m.TransactionFile, Bytes: uint64(len(c.Transaction))}
		a.wrote = append(a.wrote, o)
		if err := a.engine.root.Store.Put(ctx, o.Path, c.Transaction, store.WriteOptions{NoSync: true}); err != nil {
			return err
		}
	}
	m.Version = a.target
	m.Timestamp = timestamppb.New(a.engine.opts.Now())
	m.Tag = ""
	m.WriterVersion = &tablepb.Manifest_WriterVersion{Library: writerLibrary, Version: writerVersion}
	manifest.SetFlags(m)

	if a.bytes, err = c.Encode(); err != nil {
		return err
	}
	// Read what will be published as everybody will.
	if c, err = manifest.Decode(a.bytes); err != nil {
		return fmt.Errorf("the new version would not be readable: %w", err)
	}
	a.next, err = a.engine.history.Snapshot(ctx, c, a.scheme)
	return err
}

// publish puts the manifest in place.
func (a *attempt) publish(ctx context.Context) (*table.Snapshot, error) {
	e := a.engine
	err := e.root.Store.PutIfAbsent(ctx, a.name(), a.bytes)
	switch {
	case err == nil:
		e.writeHint(ctx, a.target)
		return a.next, nil
	case errors.Is(err, store.ErrExists), errors.Is(err, store.ErrAmbiguous):
		return a.resolve(ctx, err)
	default:
		return nil, errors.Join(err, a.discard(ctx))
	}
}

// resolve finds out what became of a put that did not plainly succeed.
func (a *attempt) resolve(caller context.Context, put error) (*table.Snapshot, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), objects.CleanupTimeout)
	defer cancel()
	e := a.engine
	var s *table.Snapshot
	var err error
	if errors.Is(put, store.ErrAmbiguous) {
		// That the name is not there yet does not mean that it will not be.
		_, err = e.root.Store.Stat(ctx, a.name())
	}
	if err == nil {
		s, err = e.whose(ctx, a.target, a.scheme, a.id)
	}
	switch {
	case err == nil:
		e.writeHint(caller, a.target)
		return s, nil
	case errors.Is(err, table.ErrVersionTaken):
		// The name is somebody else's for good, so ours will never appear.
		return nil, errors.Join(err, a.discard(ctx))
	default:
		return nil, fmt.Errorf("version %d: %w: %w", a.target, errors.Join(put, err), table.ErrAmbiguousCommit)
	}
}

// discard deletes what the attempt itself wrote.
func (a *attempt) discard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), objects.CleanupTimeout)
	defer cancel()
	var errs []error
	for _, o := range a.wrote {
		if err := a.engine.root.Store.Delete(ctx, o.Path); err != nil {
			errs = append(errs, fmt.Errorf("%s is left behind: %w", o.Path, err))
		}
	}
	return errors.Join(errs...)
}

// writeHint leaves the version's number for readers of stores that cannot list in
// order. It is a hint: too low is harmless, and so is not at all. So whoever gives up does
// not wait for it.
func (e *Engine) writeHint(ctx context.Context, number uint64) {
	ctx, cancel := context.WithTimeout(ctx, objects.CleanupTimeout)
	defer cancel()
	_ = e.root.Store.Put(ctx, objects.VersionsDir+"/"+version.HintFile, fmt.Appendf(nil, `{"version":%d}`, number), store.WriteOptions{NoSync: true})
}

// mustExist checks that objects are there and have the size that was recorded.
func (e *Engine) mustExist(ctx context.Context, objects []table.Object) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(statThreads)
	for _, o := range objects {
		g.Go(func() error {
			n, err := e.root.Store.Stat(ctx, o.Path)
			if errors.Is(err, table.ErrNotFound) {
				return fmt.Errorf("%s is to be referred to and not there (a clean-up of unreferenced files may have taken it): %w", o.Path, err)
			}
			if err != nil {
				return err
			}
			if o.Bytes != 0 && n != o.Bytes {
				return table.Corruptf("%s has %d bytes and should have %d", o.Path, n, o.Bytes)
			}
			return nil
		})
	}
	return g.Wait()
}

// ReserveFragments implements table.Committer.
func (e *Engine) ReserveFragments(ctx context.Context, count uint32) (*table.Snapshot, error) {
	t := table.Transaction{ID: uuid.NewString(), Operation: table.ReserveFragments{Count: count}}
	for wait := time.Millisecond; ; wait = min(2*wait, time.Second) {
		base, err := e.Load(ctx, 0)
		if err != nil {
			return nil, err
		}
		t.ReadVersion = base.Version
		s, err := e.Commit(ctx, table.Proposal{Base: base, Transaction: t, Change: table.Change{Reserve: count}})
		if !errors.Is(err, table.ErrVersionTaken) {
			return s, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}
