package store

import (
	"context"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rehome-db/rehome/lance/readat"
)

// Mem is a [Store] in memory, for tests and for tables that need not last.
type Mem struct {
	id      uint64
	mu      sync.RWMutex
	objects map[string]memObject
}

type memObject struct {
	data     []byte // never changed once stored
	modified time.Time
	number   uint64 // no other object's, in any store
}

func (o memObject) info(name string) Info {
	return Info{Name: name, Size: uint64(len(o.data)), Modified: o.modified, Token: o.token()}
}

func (o memObject) token() string { return strconv.FormatUint(o.number, 36) }

// numbers counts stores and objects in memory, so that each has a number of its own.
var numbers atomic.Uint64

// NewMem returns an empty store.
func NewMem() *Mem { return newMem(map[string]memObject{}) }

func newMem(objects map[string]memObject) *Mem { return &Mem{id: numbers.Add(1), objects: objects} }

// ID implements [Store]: no two stores in memory have the same.
func (m *Mem) ID() string { return "memory:" + strconv.FormatUint(m.id, 36) }

// String implements [Store].
func (m *Mem) String() string { return "memory" }

func (m *Mem) get(ctx context.Context, name string) (memObject, error) {
	if err := CheckName(name); err != nil {
		return memObject{}, err
	}
	if err := ctx.Err(); err != nil {
		return memObject{}, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	o, ok := m.objects[name]
	if !ok {
		return memObject{}, notFound(name)
	}
	return o, nil
}

type memFile struct {
	readat.ReaderAt
	size  int64
	token string
}

func (f *memFile) Size() int64 { return f.size }

func (f *memFile) Token() string { return f.token }

func (f *memFile) Close() error { return nil }

// Open implements [Store].
func (m *Mem) Open(ctx context.Context, name string) (File, error) {
	o, err := m.get(ctx, name)
	if err != nil {
		return nil, err
	}
	return &memFile{ReaderAt: readat.Bytes(o.data), size: int64(len(o.data)), token: o.token()}, nil
}

// Stat implements [Store].
func (m *Mem) Stat(ctx context.Context, name string) (uint64, error) {
	o, err := m.get(ctx, name)
	return uint64(len(o.data)), err
}

// List implements [Store].
func (m *Mem) List(ctx context.Context, dir string) ([]Info, error) {
	return m.list(ctx, dir, func(name string) (string, bool) { return path.Base(name), path.Dir(name) == dir })
}

// ListAll implements [Store].
func (m *Mem) ListAll(ctx context.Context, dir string) ([]Info, error) {
	return m.list(ctx, dir, func(name string) (string, bool) { return strings.CutPrefix(name, dir+"/") })
}

// list lists the objects that in says are in the directory, by the name that they
// have there.
func (m *Mem) list(ctx context.Context, dir string, in func(name string) (string, bool)) ([]Info, error) {
	if err := CheckName(dir); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	var out []Info
	for name, o := range m.objects {
		if below, ok := in(name); ok {
			out = append(out, o.info(below))
		}
	}
	return out, nil
}

type memWriter struct {
	ctx  context.Context
	m    *Mem
	name string
	buf  []byte
	done bool
}

// Create implements [Store].
func (m *Mem) Create(ctx context.Context, name string, _ WriteOptions) (Writer, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if _, taken := m.objects[name]; taken {
		return nil, exists(name)
	}
	return &memWriter{ctx: ctx, m: m, name: name}, nil
}

func (w *memWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	w.buf = append(w.buf, p...)
	return len(p), nil
}

func (w *memWriter) Close() error {
	if w.done {
		return nil
	}
	w.done = true
	if err := w.ctx.Err(); err != nil {
		return err
	}
	return w.m.put(w.name, w.buf, false)
}

func (w *memWriter) Abort() error {
	w.done = true
	return nil
}

func (m *Mem) put(name string, data []byte, replace bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, taken := m.objects[name]; taken && !replace {
		return exists(name)
	}
	m.objects[name] = memObject{data: data, modified: time.Now(), number: numbers.Add(1)}
	return nil
}

// Put implements [Store].
func (m *Mem) Put(ctx context.Context, name string, data []byte, _ WriteOptions) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.put(name, slices.Clone(data), true)
}

// PutIfAbsent implements [Store].
func (m *Mem) PutIfAbsent(ctx context.Context, name string, data []byte) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.put(name, slices.Clone(data), false)
}

// Delete implements [Store].
func (m *Mem) Delete(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, name)
	return nil
}

// Clone returns a store with the same objects, which are shared as they never
// change. Tests use it to try every crash of an operation on the same table.
func (m *Mem) Clone() *Mem {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return newMem(maps.Clone(m.objects))
}

// Names returns the names of all objects, sorted.
func (m *Mem) Names() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.objects))
}

var _ Store = (*Mem)(nil)
