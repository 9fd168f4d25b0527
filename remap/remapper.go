package remap

import (
	"sync"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// Options are a Remapper's. The zero value is ready.
type Options struct {
	// Strict makes an address an error that no rewrite of the history explains:
	// of a fragment that nothing rewrote, or beyond a fragment's rows. For an
	// owner who knows that all its addresses are old. The default is false: such
	// an address is unaffected and stands.
	Strict bool
	// Current is the version that the history is of. An answer that is no row of it
	// is an error: in a fragment that is gone (it was rewritten and that was not
	// recorded, or is forgotten, or all its rows were deleted) or that never was, or
	// beyond a fragment's rows. The default is nil: then nothing says that an address
	// which the history does not mention stands, so "unaffected" is an error too, and
	// "moved" is what the history says.
	Current *table.Snapshot
	// Unchecked takes the history's word without Current: what it does not mention is
	// unaffected. For a caller that knows the history to be of every rewrite that its
	// addresses went through. The default is false.
	Unchecked bool
	// DropDeleted makes [Remapper.Array] leave out the entries of deleted rows,
	// so that the result is shorter. The default is false: they become null.
	DropDeleted bool
	// Allocator is where Arrow results are allocated. The default is
	// memory.DefaultAllocator.
	Allocator memory.Allocator
}

// EnsureDefaults fills in what is not set.
func (o *Options) EnsureDefaults() {
	if o.Allocator == nil {
		o.Allocator = memory.DefaultAllocator
	}
}

// Counts says what became of the addresses of one call. In a bitmap each address
// counts once; in a slice or an array as often as it occurs. Nulls do not count.
type Counts struct {
	Moved, Deleted, Unaffected uint64
}

// Add adds d to c.
func (c *Counts) Add(d Counts) {
	c.Moved += d.Moved
	c.Deleted += d.Deleted
	c.Unaffected += d.Unaffected
}

// Remapper applies the change of address that a history records. It is safe for
// concurrent use; each call runs in one goroutine, so split a large input to use more
// cores.
//
// It holds the decoded segments that its answers needed (see [fri.Translator]), so
// it is made for a piece of work and dropped after it. It is cheap to make.
type Remapper struct {
	history    *fri.History
	translator *fri.Translator
	opts       Options
	// fallible says that a fragment of which one answer was right can fail later:
	// labels are read from a file as they are needed, and unknown rewrites take
	// some rows of a fragment and not others.
	fallible bool
	// good has the fragments whose rows are all known to be translatable.
	good sync.Map

	// current is Options.Current, nil if it is.
	current *standing

	depthOnce sync.Once
	depth     int // most rewrites that any address goes through
}

// New returns a Remapper for the history of one version of a table. It decodes
// nothing yet. A history that is attached to a [fri.Cache] shares decoded
// segments with whatever else uses the session.
func New(h *fri.History, opts Options) *Remapper { return ForTranslator(h.Translator(), opts) }

// ForTranslator is [New] with a translator that is in use already, which shares its
// segments.
func ForTranslator(t *fri.Translator, opts Options) *Remapper {
	opts.EnsureDefaults()
	r := &Remapper{history: t.History(), translator: t, opts: opts, current: standingOf(opts.Current)}
	for _, tr := range r.history.All() {
		if tr.Mapping() != fri.OrderedCompaction {
			r.fallible = true
			break
		}
	}
	return r
}

// History returns the history that the Remapper applies.
func (r *Remapper) History() *fri.History { return r.history }

// Addr says what became of the row at one address. It costs a few array reads for
// each rewrite that the row went through, and does not allocate.
func (r *Remapper) Addr(a table.RowAddr) (fri.Translation, error) {
	t, err := r.translator.Translate(a)
	switch {
	case err != nil:
		return t, &UntranslatableError{Fragments: []table.FragmentID{a.Fragment()}, Cause: err}
	case t.State == fri.Unaffected && r.opts.Strict:
		return t, &OutsideError{Addr: a}
	case !r.stands(t.Addr, t.State):
		return fri.Translation{State: fri.Untranslatable}, &UntranslatableError{Fragments: []table.FragmentID{t.Addr.Fragment()}, Cause: r.doubt(a, t.Addr)}
	}
	return t, nil
}

// known says whether every row of the fragments that addrs point into is known to
// be translatable. For that it reads the runs of a fragment the first time, which
// decodes what the fragment's rows lead through; the translator keeps it.
func (r *Remapper) known(addrs []table.RowAddr) bool {
	if r.fallible {
		return false
	}
	for i, a := range addrs {
		id := a.Fragment()
		if i > 0 && addrs[i-1].Fragment() == id || !r.history.Touched(id) {
			continue
		}
		if _, ok := r.good.Load(id); ok {
			continue
		}
		for _, err := range r.translator.Runs(id) {
			if err != nil {
				return false
			}
		}
		r.good.Store(id, struct{}{})
	}
	return true
}
