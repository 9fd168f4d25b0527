package lance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rehome-db/rehome/lance/cache"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/rowids"
	"github.com/rehome-db/rehome/lance/rows"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

// The name under which this engine signs the versions that it writes. Stock
// engines treat the versions of a library that is not called "lance" as correct
// in every respect that some old version of theirs was not.
const (
	writerLibrary = "rehome"
	writerVersion = "0.1.0"
)

// Options configures an [Engine]. The zero value is good.
type Options struct {
	// Schemes says which store a location is in. The default is store.LocalSchemes:
	// paths and file:// URIs.
	Schemes store.Schemes
	// OpenBase opens the root of another table, by the absolute path or URI that
	// a cloned table records for files that it shares. The default asks
	// Schemes, if the table's own store is a store.Place.
	OpenBase func(root string) (store.Store, error)
	// OpenFiles bounds how many data files stay open between reads. The default
	// is 256.
	OpenFiles int
	// Session keeps what is decoded of the table, together with what other engines
	// decode. The default is to keep some of it for this engine alone.
	Session *Session
	// CacheBytes bounds what is kept without a Session, and the metadata that each
	// rewrite keeps of its sources. The default is 32 MiB.
	CacheBytes int64
	// Now is the committer's clock. The default is time.Now.
	Now func() time.Time
}

// EnsureDefaults sets what is not set.
func (o *Options) EnsureDefaults() {
	if o.Schemes == nil {
		o.Schemes = store.LocalSchemes()
	}
	if o.OpenFiles == 0 {
		o.OpenFiles = 256
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = 32 << 20
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	if o.OpenFiles < 0 {
		return fmt.Errorf("lance: OpenFiles is %d", o.OpenFiles)
	}
	if o.CacheBytes < 0 {
		return fmt.Errorf("lance: CacheBytes is %d", o.CacheBytes)
	}
	return nil
}

// Engine is one Lance table. It implements table.Engine and is safe for
// concurrent use. It holds no state of the table: every Load looks at what is
// stored.
type Engine struct {
	opts    Options
	root    *objects.Root
	history *version.History
	ids     *rowids.Keeper
	rows    *rows.Table
}

// Open opens the table at a location: a path, a file:// URI, or what else [Options.Schemes]
// knows. A place
// that holds no table is table.ErrNotTable. Nothing is read but the names of the
// versions, so a table whose versions cannot be read can be opened.
func Open(ctx context.Context, path string, opts Options) (*Engine, error) {
	opts.EnsureDefaults()
	s, err := opts.Schemes.Open(path)
	if err != nil {
		return nil, err
	}
	if p, ok := store.As[store.Place](s); ok {
		if err := p.CheckRoot(ctx); err != nil {
			return nil, err
		}
	}
	return OpenStore(ctx, s, opts)
}

// OpenStore opens the table in a store.
func OpenStore(ctx context.Context, s store.Store, opts Options) (*Engine, error) {
	e, err := newEngine(s, opts)
	if err != nil {
		return nil, err
	}
	h, err := e.history.List(ctx)
	if err == nil && len(h.Versions) == 0 {
		err = e.history.NotTable()
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func newEngine(s store.Store, opts Options) (*Engine, error) {
	opts.EnsureDefaults()
	if err := opts.Validate(); err != nil {
		return nil, err
	}
	if opts.OpenBase == nil {
		opts.OpenBase = opts.Schemes.Open
		if _, ok := store.As[store.Place](s); !ok {
			opts.OpenBase = func(root string) (store.Store, error) {
				return nil, table.Unsupportedf("lance: table %s shares files with %s, and nothing says how to open that", s, root)
			}
		}
	}
	kept := cache.New(opts.CacheBytes)
	if opts.Session != nil {
		kept = opts.Session.cache
	}
	e := &Engine{opts: opts, root: objects.NewRoot(s, kept, opts.OpenFiles, opts.OpenBase)}
	e.history = version.NewHistory(e.root)
	e.rows = rows.NewTable(e.root, e.history, opts.CacheBytes)
	e.ids = rowids.NewKeeper(e.root, func(ctx context.Context, number uint64) (rowids.TableVersion, error) {
		s, err := e.history.Find(ctx, number)
		if err != nil {
			return nil, err
		}
		return version.Of(s)
	})
	return e, nil
}

// Close closes the files that are open. Reads that are under way fail. The session is
// left as it is.
func (e *Engine) Close() error {
	e.root.Close()
	return nil
}

// ReusePolicy implements table.ReuseAdviser: older stock readers hold every moved
// row of a fragment reuse index in memory, so one is published only where some
// index answers through it.
func (e *Engine) ReusePolicy() table.ReusePolicy { return table.ReuseWhenRead }

var (
	_ table.Engine       = (*Engine)(nil)
	_ table.ReuseAdviser = (*Engine)(nil)
)
