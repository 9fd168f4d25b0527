package version

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

// History is the versions of one table, as they are stored. It holds no state of them: it
// looks each time. It is safe for concurrent use.
type History struct{ root *objects.Root }

// NewHistory returns the versions of the table at a root.
func NewHistory(root *objects.Root) *History { return &History{root} }

// Listing is the versions that a table has, by their names alone.
type Listing struct {
	Scheme   manifest.Scheme
	Versions []uint64              // ascending
	files    map[uint64]store.Info // the manifests, as they were listed
}

// Latest is the number of the latest version. There has to be one.
func (l Listing) Latest() uint64 { return l.Versions[len(l.Versions)-1] }

// List lists the versions. The hint file that engines leave beside them is of
// no use here: it may be stale, and a version that is not listed is not there.
func (h *History) List(ctx context.Context) (Listing, error) {
	infos, err := h.root.Store.List(ctx, objects.VersionsDir)
	if err != nil {
		return Listing{}, fmt.Errorf("lance: table %s: %w", h.root.Store, err)
	}
	l := Listing{files: map[uint64]store.Info{}}
	example := map[manifest.Scheme]string{}
	for _, info := range infos {
		if v, scheme, ok := manifest.ParseName(info.Name); ok {
			l.Versions = append(l.Versions, v)
			l.files[v] = info
			l.Scheme = scheme
			example[scheme] = info.Name
		}
	}
	if len(example) > 1 {
		return Listing{}, table.Corruptf("lance: table %s: its versions are named in both schemes (%s and %s), so which is the latest is not certain",
			h.root.Store, example[manifest.V1], example[manifest.V2])
	}
	slices.Sort(l.Versions)
	return l, nil
}

// NotTable is the error of a place that holds no versions, a table.ErrNotTable.
func (h *History) NotTable() error {
	return fmt.Errorf("lance: %s holds no Lance table: there is no manifest in %s: %w", h.root.Store, objects.VersionsDir, table.ErrNotTable)
}

// manifestName is the name of a version's object.
func manifestName(version uint64, scheme manifest.Scheme) string {
	return objects.VersionsDir + "/" + scheme.Name(version)
}

// HintFile is left beside the manifests, for readers of stores that cannot list in order.
const HintFile = "latest_version_hint.json"

// errNoManifest: there is no object of the version's name. It comes with ErrNotFound,
// which other objects of a version may be, too.
var errNoManifest = errors.New("there is no such manifest")

// openManifest opens the manifest of a version.
func (h *History) openManifest(ctx context.Context, version uint64, scheme manifest.Scheme) (store.File, error) {
	f, err := h.root.Store.Open(ctx, manifestName(version, scheme))
	if errors.Is(err, table.ErrNotFound) {
		err = fmt.Errorf("%w: %w", errNoManifest, err)
	}
	if err != nil {
		return nil, fmt.Errorf("lance: table %s version %d: %w", h.root.Store, version, err)
	}
	return f, nil
}

// decodeManifest reads and checks a version's manifest.
func (h *History) decodeManifest(ctx context.Context, f store.File, version uint64, scheme manifest.Scheme) (*manifest.Contents, error) {
	name := manifestName(version, scheme)
	data, err := store.ReadFile(ctx, f, name, manifest.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("lance: table %s version %d: %w", h.root.Store, version, err)
	}
	return h.decoded(data, name, version)
}

// ReadManifest reads and checks the manifest of a version, whatever is known of it;
// ErrNotFound if there is none by that name.
func (h *History) ReadManifest(ctx context.Context, version uint64, scheme manifest.Scheme) (*manifest.Contents, error) {
	f, err := h.openManifest(ctx, version, scheme)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return h.decodeManifest(ctx, f, version, scheme)
}

func (h *History) versionNotFound(ctx context.Context, version uint64) error {
	l, err := h.List(ctx)
	switch {
	case err != nil:
		return err
	case len(l.Versions) == 0:
		return h.NotTable()
	}
	return fmt.Errorf("lance: table %s has no version %d (it has %d versions from %d to %d): %w",
		h.root.Store, version, len(l.Versions), l.Versions[0], l.Latest(), table.ErrNotFound)
}

// Load loads a version, 0 being the latest. One that is known is not read again if its
// manifest is the same; the latest version is looked for each time.
func (h *History) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	if err := h.root.Ready(ctx); err != nil {
		return nil, err
	}
	if version != 0 {
		return h.Find(ctx, version)
	}
	// A clean-up may take away a version between the listing and the read, but
	// never the latest: then there is a newer one.
	for attempt := 0; ; attempt++ {
		l, err := h.List(ctx)
		if err != nil {
			return nil, err
		}
		if len(l.Versions) == 0 {
			return nil, h.NotTable()
		}
		latest := l.Latest()
		if s, ok := cache.Lookup[*table.Snapshot](h.root.Cache, h.listed(cache.Versions, l, latest)); ok {
			return s, nil
		}
		s, err := h.load(ctx, latest, l.Scheme)
		if errors.Is(err, errNoManifest) && attempt < 10 {
			continue
		}
		if err != nil {
			return nil, l.ofLatest(err)
		}
		return s, nil
	}
}

// Find loads a version under whichever name it has.
func (h *History) Find(ctx context.Context, version uint64) (*table.Snapshot, error) {
	if version > manifest.MaxVersion {
		return nil, h.versionNotFound(ctx, version)
	}
	for _, scheme := range []manifest.Scheme{manifest.V2, manifest.V1} {
		s, err := h.load(ctx, version, scheme)
		if !errors.Is(err, errNoManifest) {
			return s, err
		}
	}
	return nil, h.versionNotFound(ctx, version)
}

// load loads a version by its name. What the name has now is found out by opening it.
func (h *History) load(ctx context.Context, version uint64, scheme manifest.Scheme) (*table.Snapshot, error) {
	f, err := h.openManifest(ctx, version, scheme)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return objects.Cached(ctx, h.root, cache.Versions, "", manifestName(version, scheme), f, func() (*table.Snapshot, int64, error) {
		c, err := h.decodeManifest(ctx, f, version, scheme)
		if err != nil {
			return nil, 0, err
		}
		s, err := h.Snapshot(ctx, c, scheme)
		return s, snapshotWeight * f.Size(), err
	})
}

// Decoded, a manifest takes about so many times its size; and so does a transaction.
const (
	snapshotWeight    = 8
	transactionWeight = 4
)

// listed is the entry of a version that was seen in a listing.
func (h *History) listed(kind cache.Kind, l Listing, version uint64) cache.Entry {
	f := l.files[version]
	return h.root.Entry(kind, "", manifestName(version, l.Scheme), f.Size, f.Token)
}

// TransactionsSince returns what the versions after one did, up to another and with it, 0
// being the latest. A version in between that is gone
// makes it fail with table.ErrTerminal: what it did can never be known. Transactions
// that are known are not read again. The result shares what it refers to with other
// callers, and is not to be changed.
func (h *History) TransactionsSince(ctx context.Context, after, upTo uint64) ([]table.Transaction, error) {
	if err := h.root.Ready(ctx); err != nil {
		return nil, err
	}
	l, err := h.List(ctx)
	if err != nil {
		return nil, err
	}
	if len(l.Versions) == 0 {
		return nil, h.NotTable()
	}
	switch latest := l.Latest(); {
	case upTo == 0:
		upTo = latest
	case upTo > latest:
		return nil, fmt.Errorf("lance: table %s has no version %d, the latest is %d: %w", h.root.Store, upTo, latest, table.ErrNotFound)
	}
	var out []table.Transaction
	for v := after + 1; v <= upTo; v++ {
		t, err := h.transactionAt(ctx, l, v)
		if errors.Is(err, errNoManifest) {
			return nil, fmt.Errorf("lance: table %s: version %d is gone, so what happened between version %d and %d cannot be known; start again from the latest: %w",
				h.root.Store, v, after, upTo, table.ErrTerminal)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// transactionAt returns what a listed version's commit did.
func (h *History) transactionAt(ctx context.Context, l Listing, version uint64) (table.Transaction, error) {
	if err := ctx.Err(); err != nil {
		return table.Transaction{}, err
	}
	if _, ok := l.files[version]; !ok {
		return table.Transaction{}, errNoManifest
	}
	at := h.listed(cache.Transactions, l, version)
	if t, ok := cache.Lookup[table.Transaction](h.root.Cache, at); ok {
		return t, nil
	}
	if s, ok := cache.Lookup[*table.Snapshot](h.root.Cache, h.listed(cache.Versions, l, version)); ok {
		v, err := Of(s)
		if err != nil {
			return table.Transaction{}, err
		}
		return cache.Load(ctx, h.root.Cache, at, func() (table.Transaction, int64, error) { return h.weighedTransaction(ctx, v.Contents) })
	}
	f, err := h.openManifest(ctx, version, l.Scheme)
	if err != nil {
		return table.Transaction{}, err
	}
	defer f.Close()
	return objects.Cached(ctx, h.root, cache.Transactions, "", manifestName(version, l.Scheme), f, func() (table.Transaction, int64, error) {
		c, err := h.decodeManifest(ctx, f, version, l.Scheme)
		if err != nil {
			return table.Transaction{}, 0, err
		}
		return h.weighedTransaction(ctx, c)
	})
}

// Transaction returns what a version's commit did.
func (h *History) Transaction(ctx context.Context, c *manifest.Contents) (table.Transaction, error) {
	t, _, err := h.weighedTransaction(ctx, c)
	return t, err
}

// weighedTransaction returns also the transaction's cost in memory.
func (h *History) weighedTransaction(ctx context.Context, c *manifest.Contents) (table.Transaction, int64, error) {
	t, err := h.storedTransaction(ctx, c)
	if err != nil {
		return table.Transaction{}, 0, fmt.Errorf("lance: table %s version %d: %w", h.root.Store, c.Manifest.GetVersion(), err)
	}
	out, err := transactionFrom(t, c.Manifest)
	return out, transactionWeight * int64(proto.Size(t)), err
}

// storedTransaction prefers the inline copy: the file may have been cleaned up.
func (h *History) storedTransaction(ctx context.Context, c *manifest.Contents) (*tablepb.Transaction, error) {
	if c.Transaction != nil {
		return manifest.DecodeTransaction(c.Transaction)
	}
	file := c.Manifest.GetTransactionFile()
	if file == "" {
		return nil, table.Corruptf("the version has no transaction")
	}
	data, err := store.ReadAll(ctx, h.root.Store, objects.TransactionsDir+"/"+file, manifest.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("the version's transaction: %w", err)
	}
	return manifest.DecodeTransaction(data)
}
