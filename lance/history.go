package lance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/rehome-db/rehome/lance/cache"
	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// history is the versions that a table has, by their names alone.
type history struct {
	scheme   manifest.Scheme
	versions []uint64              // ascending
	files    map[uint64]store.Info // the manifests, as they were listed
}

func (h history) latest() uint64 { return h.versions[len(h.versions)-1] }

// history lists the versions. The hint file that engines leave beside them is of
// no use here: it may be stale, and a version that is not listed is not there.
func (e *Engine) history(ctx context.Context) (history, error) {
	infos, err := e.root.Store.List(ctx, objects.VersionsDir)
	if err != nil {
		return history{}, fmt.Errorf("lance: table %s: %w", e.root.Store, err)
	}
	h := history{files: map[uint64]store.Info{}}
	example := map[manifest.Scheme]string{}
	for _, info := range infos {
		if v, scheme, ok := manifest.ParseName(info.Name); ok {
			h.versions = append(h.versions, v)
			h.files[v] = info
			h.scheme = scheme
			example[scheme] = info.Name
		}
	}
	if len(example) > 1 {
		return history{}, table.Corruptf("lance: table %s: its versions are named in both schemes (%s and %s), so which is the latest is not certain",
			e.root.Store, example[manifest.V1], example[manifest.V2])
	}
	slices.Sort(h.versions)
	return h, nil
}

func (e *Engine) notTable() error {
	return fmt.Errorf("lance: %s holds no Lance table: there is no manifest in %s: %w", e.root.Store, objects.VersionsDir, table.ErrNotTable)
}

// manifestName is the name of a version's object.
func manifestName(version uint64, scheme manifest.Scheme) string {
	return objects.VersionsDir + "/" + scheme.Name(version)
}

// errNoManifest: there is no object of the version's name. It comes with ErrNotFound,
// which other objects of a version may be, too.
var errNoManifest = errors.New("there is no such manifest")

// openManifest opens the manifest of a version.
func (e *Engine) openManifest(ctx context.Context, version uint64, scheme manifest.Scheme) (store.File, error) {
	f, err := e.root.Store.Open(ctx, manifestName(version, scheme))
	if errors.Is(err, table.ErrNotFound) {
		err = fmt.Errorf("%w: %w", errNoManifest, err)
	}
	if err != nil {
		return nil, fmt.Errorf("lance: table %s version %d: %w", e.root.Store, version, err)
	}
	return f, nil
}

// decodeManifest reads and checks a version's manifest.
func (e *Engine) decodeManifest(ctx context.Context, f store.File, version uint64, scheme manifest.Scheme) (*manifest.Contents, error) {
	name := manifestName(version, scheme)
	data, err := store.ReadFile(ctx, f, name, manifest.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("lance: table %s version %d: %w", e.root.Store, version, err)
	}
	return e.decoded(data, name, version)
}

// readManifest reads and checks the manifest of a version, whatever is known of it;
// ErrNotFound if there is none by that name.
func (e *Engine) readManifest(ctx context.Context, version uint64, scheme manifest.Scheme) (*manifest.Contents, error) {
	f, err := e.openManifest(ctx, version, scheme)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return e.decodeManifest(ctx, f, version, scheme)
}

func (e *Engine) versionNotFound(ctx context.Context, version uint64) error {
	h, err := e.history(ctx)
	switch {
	case err != nil:
		return err
	case len(h.versions) == 0:
		return e.notTable()
	}
	return fmt.Errorf("lance: table %s has no version %d (it has %d versions from %d to %d): %w",
		e.root.Store, version, len(h.versions), h.versions[0], h.latest(), table.ErrNotFound)
}

// Load implements table.Loader. A version that is known is not read again if its
// manifest is the same; the latest version is looked for each time.
func (e *Engine) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	if err := e.root.Ready(ctx); err != nil {
		return nil, err
	}
	if version != 0 {
		return e.find(ctx, version)
	}
	// A clean-up may take away a version between the listing and the read, but
	// never the latest: then there is a newer one.
	for attempt := 0; ; attempt++ {
		h, err := e.history(ctx)
		if err != nil {
			return nil, err
		}
		if len(h.versions) == 0 {
			return nil, e.notTable()
		}
		latest := h.latest()
		if s, ok := cache.Lookup[*table.Snapshot](e.root.Cache, e.listed(cache.Versions, h, latest)); ok {
			return s, nil
		}
		s, err := e.load(ctx, latest, h.scheme)
		if errors.Is(err, errNoManifest) && attempt < 10 {
			continue
		}
		if err != nil {
			return nil, h.ofLatest(err)
		}
		return s, nil
	}
}

// find loads a version under whichever name it has.
func (e *Engine) find(ctx context.Context, version uint64) (*table.Snapshot, error) {
	if version > manifest.MaxVersion {
		return nil, e.versionNotFound(ctx, version)
	}
	for _, scheme := range []manifest.Scheme{manifest.V2, manifest.V1} {
		s, err := e.load(ctx, version, scheme)
		if !errors.Is(err, errNoManifest) {
			return s, err
		}
	}
	return nil, e.versionNotFound(ctx, version)
}

// load loads a version by its name. What the name has now is found out by opening it.
func (e *Engine) load(ctx context.Context, version uint64, scheme manifest.Scheme) (*table.Snapshot, error) {
	f, err := e.openManifest(ctx, version, scheme)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return objects.Cached(ctx, e.root, cache.Versions, "", manifestName(version, scheme), f, func() (*table.Snapshot, int64, error) {
		c, err := e.decodeManifest(ctx, f, version, scheme)
		if err != nil {
			return nil, 0, err
		}
		s, err := e.snapshot(ctx, c, scheme)
		return s, snapshotWeight * f.Size(), err
	})
}

// Decoded, a manifest takes about so many times its size; and so does a transaction.
const (
	snapshotWeight    = 8
	transactionWeight = 4
)

// listed is the entry of a version that was seen in a listing.
func (e *Engine) listed(kind cache.Kind, h history, version uint64) cache.Entry {
	f := h.files[version]
	return e.root.Entry(kind, "", manifestName(version, h.scheme), f.Size, f.Token)
}

// TransactionsSince implements table.Loader. A version in between that is gone
// makes it fail with table.ErrTerminal: what it did can never be known. Transactions
// that are known are not read again. The result shares what it refers to with other
// callers, and is not to be changed.
func (e *Engine) TransactionsSince(ctx context.Context, after, upTo uint64) ([]table.Transaction, error) {
	if err := e.root.Ready(ctx); err != nil {
		return nil, err
	}
	h, err := e.history(ctx)
	if err != nil {
		return nil, err
	}
	if len(h.versions) == 0 {
		return nil, e.notTable()
	}
	switch latest := h.latest(); {
	case upTo == 0:
		upTo = latest
	case upTo > latest:
		return nil, fmt.Errorf("lance: table %s has no version %d, the latest is %d: %w", e.root.Store, upTo, latest, table.ErrNotFound)
	}
	var out []table.Transaction
	for v := after + 1; v <= upTo; v++ {
		t, err := e.transactionAt(ctx, h, v)
		if errors.Is(err, errNoManifest) {
			return nil, fmt.Errorf("lance: table %s: version %d is gone, so what happened between version %d and %d cannot be known; start again from the latest: %w",
				e.root.Store, v, after, upTo, table.ErrTerminal)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// transactionAt returns what a listed version's commit did.
func (e *Engine) transactionAt(ctx context.Context, h history, version uint64) (table.Transaction, error) {
	if err := ctx.Err(); err != nil {
		return table.Transaction{}, err
	}
	if _, ok := h.files[version]; !ok {
		return table.Transaction{}, errNoManifest
	}
	at := e.listed(cache.Transactions, h, version)
	if t, ok := cache.Lookup[table.Transaction](e.root.Cache, at); ok {
		return t, nil
	}
	if s, ok := cache.Lookup[*table.Snapshot](e.root.Cache, e.listed(cache.Versions, h, version)); ok {
		v, err := versionOf(s)
		if err != nil {
			return table.Transaction{}, err
		}
		return cache.Load(ctx, e.root.Cache, at, func() (table.Transaction, int64, error) { return e.weighedTransaction(ctx, v.contents) })
	}
	f, err := e.openManifest(ctx, version, h.scheme)
	if err != nil {
		return table.Transaction{}, err
	}
	defer f.Close()
	return objects.Cached(ctx, e.root, cache.Transactions, "", manifestName(version, h.scheme), f, func() (table.Transaction, int64, error) {
		c, err := e.decodeManifest(ctx, f, version, h.scheme)
		if err != nil {
			return table.Transaction{}, 0, err
		}
		return e.weighedTransaction(ctx, c)
	})
}

// transaction returns what a version's commit did.
func (e *Engine) transaction(ctx context.Context, c *manifest.Contents) (table.Transaction, error) {
	t, _, err := e.weighedTransaction(ctx, c)
	return t, err
}

// weighedTransaction returns also the transaction's cost in memory.
func (e *Engine) weighedTransaction(ctx context.Context, c *manifest.Contents) (table.Transaction, int64, error) {
	t, err := e.storedTransaction(ctx, c)
	if err != nil {
		return table.Transaction{}, 0, fmt.Errorf("lance: table %s version %d: %w", e.root.Store, c.Manifest.GetVersion(), err)
	}
	out, err := transactionFrom(t, c.Manifest)
	return out, transactionWeight * int64(proto.Size(t)), err
}

// storedTransaction prefers the inline copy: the file may have been cleaned up.
func (e *Engine) storedTransaction(ctx context.Context, c *manifest.Contents) (*tablepb.Transaction, error) {
	if c.Transaction != nil {
		return manifest.DecodeTransaction(c.Transaction)
	}
	file := c.Manifest.GetTransactionFile()
	if file == "" {
		return nil, table.Corruptf("the version has no transaction")
	}
	data, err := store.ReadAll(ctx, e.root.Store, objects.TransactionsDir+"/"+file, manifest.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("the version's transaction: %w", err)
	}
	return manifest.DecodeTransaction(data)
}
