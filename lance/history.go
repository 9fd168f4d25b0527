package lance

import (
	"context"
	"errors"
	"fmt"
	"slices"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

const versionsDir = "_versions"

// history is the versions that a table has, by their names alone.
type history struct {
	scheme   manifest.Scheme
	versions []uint64 // ascending
}

func (h history) latest() uint64 { return h.versions[len(h.versions)-1] }

// history lists the versions. The hint file that engines leave beside them is of
// no use here: it may be stale, and a version that is not listed is not there.
func (e *Engine) history(ctx context.Context) (history, error) {
	infos, err := e.store.List(ctx, versionsDir)
	if err != nil {
		return history{}, fmt.Errorf("lance: table %s: %w", e.store, err)
	}
	var h history
	example := map[manifest.Scheme]string{}
	for _, info := range infos {
		if v, scheme, ok := manifest.ParseName(info.Name); ok {
			h.versions = append(h.versions, v)
			h.scheme = scheme
			example[scheme] = info.Name
		}
	}
	if len(example) > 1 {
		return history{}, table.Corruptf("lance: table %s: its versions are named in both schemes (%s and %s), so which is the latest is not certain",
			e.store, example[manifest.V1], example[manifest.V2])
	}
	slices.Sort(h.versions)
	return h, nil
}

func (e *Engine) notTable() error {
	return fmt.Errorf("lance: %s holds no Lance table: there is no manifest in %s: %w", e.store, versionsDir, table.ErrNotTable)
}

// readManifest reads and checks the manifest of a version; ErrNotFound if there is
// none by that name.
func (e *Engine) readManifest(ctx context.Context, version uint64, scheme manifest.Scheme) (*manifest.Contents, error) {
	name := versionsDir + "/" + scheme.Name(version)
	data, err := store.ReadAll(ctx, e.store, name, manifest.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("lance: table %s version %d: %w", e.store, version, err)
	}
	c, err := manifest.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("lance: table %s version %d: %s: %w", e.store, version, name, err)
	}
	if inner := c.Manifest.GetVersion(); inner != version {
		return nil, table.Corruptf("lance: table %s: %s says that it is version %d, its name says %d", e.store, name, inner, version)
	}
	return c, nil
}

// findManifest reads the manifest of a version under whichever name it has.
func (e *Engine) findManifest(ctx context.Context, version uint64) (*manifest.Contents, manifest.Scheme, error) {
	if version == 0 || version > manifest.MaxVersion {
		return nil, 0, e.versionNotFound(ctx, version)
	}
	for _, scheme := range []manifest.Scheme{manifest.V2, manifest.V1} {
		c, err := e.readManifest(ctx, version, scheme)
		if !errors.Is(err, table.ErrNotFound) {
			return c, scheme, err
		}
	}
	return nil, 0, e.versionNotFound(ctx, version)
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
		e.store, version, len(h.versions), h.versions[0], h.latest(), table.ErrNotFound)
}

// Load implements table.Loader.
func (e *Engine) Load(ctx context.Context, version uint64) (*table.Snapshot, error) {
	if err := e.check(ctx); err != nil {
		return nil, err
	}
	if version != 0 {
		c, scheme, err := e.findManifest(ctx, version)
		if err != nil {
			return nil, err
		}
		return e.snapshot(ctx, c, scheme)
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
		c, err := e.readManifest(ctx, h.latest(), h.scheme)
		if errors.Is(err, table.ErrNotFound) && attempt < 10 {
			continue
		}
		if err != nil {
			return nil, err
		}
		return e.snapshot(ctx, c, h.scheme)
	}
}

// TransactionsSince implements table.Loader. A version in between that is gone
// makes it fail with table.ErrTerminal: what it did can never be known.
func (e *Engine) TransactionsSince(ctx context.Context, after, upTo uint64) ([]table.Transaction, error) {
	if err := e.check(ctx); err != nil {
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
		return nil, fmt.Errorf("lance: table %s has no version %d, the latest is %d: %w", e.store, upTo, latest, table.ErrNotFound)
	}
	var out []table.Transaction
	for v := after + 1; v <= upTo; v++ {
		c, err := e.readManifest(ctx, v, h.scheme)
		if errors.Is(err, table.ErrNotFound) {
			return nil, fmt.Errorf("lance: table %s: version %d is gone, so what happened between version %d and %d cannot be known; start again from the latest: %w",
				e.store, v, after, upTo, table.ErrTerminal)
		}
		if err != nil {
			return nil, err
		}
		t, err := e.transaction(ctx, c)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// transaction returns what a version's commit did.
func (e *Engine) transaction(ctx context.Context, c *manifest.Contents) (table.Transaction, error) {
	t, err := e.storedTransaction(ctx, c)
	if err != nil {
		return table.Transaction{}, fmt.Errorf("lance: table %s version %d: %w", e.store, c.Manifest.GetVersion(), err)
	}
	return transactionFrom(t, c.Manifest)
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
	data, err := store.ReadAll(ctx, e.store, transactionsDir+"/"+file, manifest.MaxSize)
	if err != nil {
		return nil, fmt.Errorf("the version's transaction: %w", err)
	}
	return manifest.DecodeTransaction(data)
}
