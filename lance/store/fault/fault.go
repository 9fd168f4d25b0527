// Package fault wraps a [store.Store] so that operations fail where a test wants
// them to: a crash at every step of a commit, a torn write, an answer that gets
// lost on the way back.
//
// Every mutating or reading call is an [Op] with a sequence number. A [Policy]
// looks at it and decides an [Action]. Policies see operations one at a time.
//
//	// The process dies after its third write has taken effect.
//	s := fault.New(inner, fault.Die(3, fault.After, fault.Writes))
package fault

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rehome-db/rehome/lance/store"
)

// ErrInjected is wrapped by every error that a policy caused.
var ErrInjected = errors.New("injected fault")

// Kind is the kind of an operation.
type Kind string

// The kinds. Write and Close are those of a [store.Writer]; Read is ReadAt.
const (
	Open        Kind = "open"
	Read        Kind = "read"
	Stat        Kind = "stat"
	List        Kind = "list"
	Create      Kind = "create"
	Write       Kind = "write"
	Close       Kind = "close"
	Put         Kind = "put"
	PutIfAbsent Kind = "put-if-absent"
	Delete      Kind = "delete"
)

// Op is one call on the store.
type Op struct {
	// Seq counts the calls from 1.
	Seq  int
	Kind Kind
	Name string
}

func (o Op) String() string { return fmt.Sprintf("%d %s %s", o.Seq, o.Kind, o.Name) }

// Writes says whether the operation changes the store.
func Writes(o Op) bool {
	switch o.Kind {
	case Create, Write, Close, Put, PutIfAbsent, Delete:
		return true
	}
	return false
}

// Action is what happens to an operation.
type Action int

// The actions.
const (
	// Pass does the operation.
	Pass Action = iota
	// Before fails without doing it.
	Before
	// After does it and reports failure. Of PutIfAbsent the caller gets
	// store.ErrAmbiguous, as from a network that lost the answer.
	After
	// Lost fails without doing it, and of PutIfAbsent reports
	// store.ErrAmbiguous all the same: the request got lost.
	Lost
	// Hang waits for the end of the operation's context and fails with that, without
	// doing the operation: the store does not answer. It is for operations that are
	// under a context, all but the Abort of a writer. Of PutIfAbsent the caller gets
	// store.ErrAmbiguous.
	Hang
)

// Policy decides about each operation.
type Policy func(Op) Action

// Die lets the n-th operation that match accepts (nil: all) meet the action, and
// fails everything after it: the process is gone.
func Die(n int, a Action, match func(Op) bool) Policy {
	seen := 0
	return func(o Op) Action {
		if seen >= n {
			return Before
		}
		if match == nil || match(o) {
			if seen++; seen == n {
				return a
			}
		}
		return Pass
	}
}

// Once lets the n-th operation that match accepts meet the action, and no other.
func Once(n int, a Action, match func(Op) bool) Policy {
	seen := 0
	return func(o Op) Action {
		if match == nil || match(o) {
			if seen++; seen == n {
				return a
			}
		}
		return Pass
	}
}

// Store is the wrapped store.
type Store struct {
	inner  store.Store
	policy Policy

	mu  sync.Mutex
	seq int
	log []Op
}

// New wraps inner. A nil policy passes everything and only keeps the log.
func New(inner store.Store, policy Policy) *Store {
	if policy == nil {
		policy = func(Op) Action { return Pass }
	}
	return &Store{inner: inner, policy: policy}
}

// Unwrap implements [store.Wrapper].
func (s *Store) Unwrap() store.Store { return s.inner }

// Log returns the operations so far, in order.
func (s *Store) Log() []Op {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Op(nil), s.log...)
}

// run meets the policy around do.
func (s *Store) run(ctx context.Context, kind Kind, name string, do func() error) error {
	s.mu.Lock()
	s.seq++
	op := Op{Seq: s.seq, Kind: kind, Name: name}
	s.log = append(s.log, op)
	action := s.policy(op)
	s.mu.Unlock()

	fail := fmt.Errorf("fault: %v: %w", op, ErrInjected)
	switch action {
	case Before:
		return fail
	case Lost:
	case Hang:
		<-ctx.Done()
		fail = fmt.Errorf("%w: %w", fail, ctx.Err())
	case After:
		if err := do(); err != nil {
			return err
		}
	default:
		return do()
	}
	if kind == PutIfAbsent {
		return fmt.Errorf("%w: %w", fail, store.ErrAmbiguous)
	}
	return fail
}

// String implements [store.Store].
func (s *Store) String() string { return s.inner.String() }

// ID implements [store.Store].
func (s *Store) ID() string { return s.inner.ID() }

type file struct {
	store.File
	s    *Store
	name string
}

func (f *file) ReadAt(ctx context.Context, p []byte, off int64) (n int, err error) {
	err = f.s.run(ctx, Read, f.name, func() error {
		n, err = f.File.ReadAt(ctx, p, off)
		return err
	})
	return n, err
}

// Open implements [store.Store].
func (s *Store) Open(ctx context.Context, name string) (f store.File, err error) {
	err = s.run(ctx, Open, name, func() error {
		f, err = s.inner.Open(ctx, name)
		return err
	})
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, err
	}
	return &file{File: f, s: s, name: name}, nil
}

// Stat implements [store.Store].
func (s *Store) Stat(ctx context.Context, name string) (n uint64, err error) {
	err = s.run(ctx, Stat, name, func() error {
		n, err = s.inner.Stat(ctx, name)
		return err
	})
	return n, err
}

// List implements [store.Store].
func (s *Store) List(ctx context.Context, dir string) (out []store.Info, err error) {
	err = s.run(ctx, List, dir, func() error {
		out, err = s.inner.List(ctx, dir)
		return err
	})
	return out, err
}

// ListAll implements [store.Store]. To a policy it is a List.
func (s *Store) ListAll(ctx context.Context, dir string) (out []store.Info, err error) {
	err = s.run(ctx, List, dir, func() error {
		out, err = s.inner.ListAll(ctx, dir)
		return err
	})
	return out, err
}

type writer struct {
	ctx  context.Context // of Create
	w    store.Writer
	s    *Store
	name string
}

func (w *writer) Write(p []byte) (n int, err error) {
	err = w.s.run(w.ctx, Write, w.name, func() error {
		n, err = w.w.Write(p)
		return err
	})
	return n, err
}

// Close that fails Before or Lost leaves the object unfinished, as a crash does.
func (w *writer) Close() error { return w.s.run(w.ctx, Close, w.name, w.w.Close) }

func (w *writer) Abort() error { return w.s.run(w.ctx, Delete, w.name, w.w.Abort) }

// Create implements [store.Store].
func (s *Store) Create(ctx context.Context, name string, opts store.WriteOptions) (w store.Writer, err error) {
	err = s.run(ctx, Create, name, func() error {
		w, err = s.inner.Create(ctx, name, opts)
		return err
	})
	if err != nil {
		if w != nil {
			err = errors.Join(err, w.Abort())
		}
		return nil, err
	}
	return &writer{ctx: ctx, w: w, s: s, name: name}, nil
}

// Put implements [store.Store].
func (s *Store) Put(ctx context.Context, name string, data []byte, opts store.WriteOptions) error {
	return s.run(ctx, Put, name, func() error { return s.inner.Put(ctx, name, data, opts) })
}

// PutIfAbsent implements [store.Store].
func (s *Store) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	return s.run(ctx, PutIfAbsent, name, func() error { return s.inner.PutIfAbsent(ctx, name, data) })
}

// Delete implements [store.Store].
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.run(ctx, Delete, name, func() error { return s.inner.Delete(ctx, name) })
}

var _ store.Store = (*Store)(nil)
