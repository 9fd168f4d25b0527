package interop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
)

// Spec names an engine and how its driver is run.
type Spec struct {
	// Name is the engine's folder under the engines' directory, and what messages
	// call it.
	Name string
	// argv gives the command line, for the engine's and the drivers' folders.
	argv func(engine, drivers string) []string
}

func node(engine, drivers string) []string {
	return []string{"node", filepath.Join(drivers, "lancedb.mjs"), engine}
}

func python(engine, drivers string) []string {
	return []string{filepath.Join(engine, "venv", "bin", "python"), filepath.Join(drivers, "pylance.py")}
}

// The engines that interop/setup.sh installs.
var (
	LanceDB39 = Spec{Name: "lancedb-0.39.0", argv: node}
	LanceDB31 = Spec{Name: "lancedb-0.31.0", argv: node}
	PyLance14 = Spec{Name: "pylance-14.0.2", argv: python}
)

// SpecOf finds an engine by its name.
func SpecOf(name string) (Spec, error) {
	for _, s := range []Spec{LanceDB39, LanceDB31, PyLance14} {
		if s.Name == name {
			return s, nil
		}
	}
	return Spec{}, fmt.Errorf("interop: no stock engine %q", name)
}

// IndexKind names an index type, the same for every engine.
type IndexKind string

// The kinds of index that some engine builds; see [Engine.Builds].
const (
	BTree       IndexKind = "BTREE"
	Bitmap      IndexKind = "BITMAP"
	LabelList   IndexKind = "LABEL_LIST"
	FTS         IndexKind = "FTS"
	FM          IndexKind = "FM"
	NGram       IndexKind = "NGRAM"
	ZoneMap     IndexKind = "ZONEMAP"
	BloomFilter IndexKind = "BLOOMFILTER"
	IVFFlat     IndexKind = "IVF_FLAT"
	IVFPQ       IndexKind = "IVF_PQ"
	IVFSQ       IndexKind = "IVF_SQ"
	IVFRQ       IndexKind = "IVF_RQ"
	HNSWFlat    IndexKind = "IVF_HNSW_FLAT"
	HNSWPQ      IndexKind = "IVF_HNSW_PQ"
	HNSWSQ      IndexKind = "IVF_HNSW_SQ"
)

// EngineError is an error that the engine itself reported, as opposed to one of
// the driver.
type EngineError struct{ Engine, Message string }

func (e *EngineError) Error() string { return e.Engine + ": " + e.Message }

// CallTimeout bounds one call. An engine that hangs is killed and started anew
// for the next call.
const CallTimeout = 2 * time.Minute

// Engine is a running stock engine. It is safe for concurrent use; calls take
// turns. Close it to end the process.
type Engine struct {
	Name  string
	argv  []string
	kinds []IndexKind

	mu   sync.Mutex
	proc *process
}

// EnginesDir is where interop/setup.sh puts the engines.
func EnginesDir() string {
	if dir := os.Getenv("REHOME_ENGINES"); dir != "" {
		return dir
	}
	return filepath.Join(sourceDir(), ".engines")
}

// sourceDir is the folder of this file, where the drivers lie.
func sourceDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// Start runs an engine. An engine that is not installed is an error that says so.
func Start(ctx context.Context, s Spec) (*Engine, error) {
	dir := filepath.Join(EnginesDir(), s.Name)
	if _, err := os.Stat(filepath.Join(dir, ".installed")); err != nil {
		return nil, fmt.Errorf("interop: engine %s is not installed in %s: run interop/setup.sh: %w", s.Name, EnginesDir(), err)
	}
	e := &Engine{Name: s.Name, argv: s.argv(dir, filepath.Join(sourceDir(), "driver"))}
	var hello struct{ Kinds []IndexKind }
	if err := e.call(ctx, request{"op": "hello"}, &hello); err != nil {
		return nil, err
	}
	e.kinds = hello.Kinds
	return e, nil
}

// Close ends the engine's process.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.proc == nil {
		return nil
	}
	p := e.proc
	e.proc = nil
	if err := p.close(); err != nil {
		return fmt.Errorf("interop: %s: %w: %s", e.Name, err, p.log)
	}
	return nil
}

// Builds says whether the engine can build indexes of the kind.
func (e *Engine) Builds(kind IndexKind) bool { return slices.Contains(e.kinds, kind) }

// request is a JSON request: "op" and the operation's arguments.
type request map[string]any

func (e *Engine) call(ctx context.Context, req request, reply any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	// The time starts when the engine is free.
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if e.proc == nil {
		p, err := startProcess(e.Name, e.argv)
		if err != nil {
			return err
		}
		e.proc = p
	}
	err := e.proc.call(ctx, req, reply)
	if errors.Is(err, errDriverGone) {
		e.proc = nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", req["op"], err)
	}
	return nil
}

// commit is a call that makes a version.
func (e *Engine) commit(ctx context.Context, req request) (version uint64, err error) {
	var reply struct{ Version uint64 }
	err = e.call(ctx, req, &reply)
	return reply.Version, err
}

// CreateOptions says how a table is laid out.
type CreateOptions struct {
	// DataFormat is the version of the data files, for example "2.1". The
	// default is the engine's own.
	DataFormat string
	// V1Manifests asks for the old manifest naming scheme. The default is false.
	V1Manifests bool
	// StableRowIDs asks for stable row ids. The default is false.
	StableRowIDs bool
	// RowsPerFragment divides the rows into fragments; only pylance does. The default
	// is one fragment.
	RowsPerFragment int
}

// Create makes a table of one fragment at path, which must end in "/t.lance".
func (e *Engine) Create(ctx context.Context, path string, rows arrow.RecordBatch, o CreateOptions) (uint64, error) {
	enc, err := encodeRows(rows)
	if err != nil {
		return 0, err
	}
	req := request{"op": "create", "table": path, "rows": enc,
		"storage": o.DataFormat, "v1Manifests": o.V1Manifests, "stableRowIds": o.StableRowIDs}
	if o.RowsPerFragment > 0 {
		req["rowsPerFile"] = o.RowsPerFragment
	}
	return e.commit(ctx, req)
}

// Append adds rows as one fragment.
func (e *Engine) Append(ctx context.Context, path string, rows arrow.RecordBatch) (uint64, error) {
	enc, err := encodeRows(rows)
	if err != nil {
		return 0, err
	}
	return e.commit(ctx, request{"op": "append", "table": path, "rows": enc})
}

// Delete deletes the rows that match a filter.
func (e *Engine) Delete(ctx context.Context, path, where string) (uint64, error) {
	return e.commit(ctx, request{"op": "delete", "table": path, "where": where})
}

// Update sets columns of the rows that match a filter to SQL expressions.
func (e *Engine) Update(ctx context.Context, path, where string, set map[string]string) (uint64, error) {
	return e.commit(ctx, request{"op": "update", "table": path, "where": where, "set": set})
}

// Merge replaces the rows whose column on equals that of a given row and adds the
// others.
func (e *Engine) Merge(ctx context.Context, path, on string, rows arrow.RecordBatch) (uint64, error) {
	enc, err := encodeRows(rows)
	if err != nil {
		return 0, err
	}
	return e.commit(ctx, request{"op": "merge", "table": path, "on": on, "rows": enc})
}

// Write is one of the changes of [Engine.Churn]: a delete if it has a filter, an
// update if it has values to set too, a merge on the column On otherwise.
type Write struct {
	Where string
	Set   map[string]string
	On    string
	Rows  arrow.RecordBatch
}

// Churn makes changes one after the other, each a commit, on a handle that is not
// brought up to date between them: as a busy client does that nobody tells of what
// others commit.
func (e *Engine) Churn(ctx context.Context, path string, writes []Write) error {
	list := make([]request, len(writes))
	for i, w := range writes {
		switch {
		case w.On != "":
			enc, err := encodeRows(w.Rows)
			if err != nil {
				return err
			}
			list[i] = request{"op": "merge", "on": w.On, "rows": enc}
		case w.Set != nil:
			list[i] = request{"op": "update", "where": w.Where, "set": w.Set}
		default:
			list[i] = request{"op": "delete", "where": w.Where}
		}
	}
	return e.call(ctx, request{"op": "churn", "table": path, "writes": list}, nil)
}

// Optimized is what the engine's own maintenance did.
type Optimized struct {
	Version          uint64
	FragmentsRemoved int
	FragmentsAdded   int
}

// Optimize runs the engine's own maintenance: compaction, then bringing the
// indexes up to date.
func (e *Engine) Optimize(ctx context.Context, path string) (o Optimized, err error) {
	err = e.call(ctx, request{"op": "optimize", "table": path}, &o)
	return o, err
}

// CompactOnly runs the engine's own compaction, with or without a fragment reuse
// index. Only pylance offers it.
func (e *Engine) CompactOnly(ctx context.Context, path string, deferRemap bool) (o Optimized, err error) {
	err = e.call(ctx, request{"op": "compact", "table": path, "deferRemap": deferRemap}, &o)
	return o, err
}

// CreateIndex builds an index, replacing one that the column has.
func (e *Engine) CreateIndex(ctx context.Context, path, column string, kind IndexKind) (uint64, error) {
	return e.commit(ctx, request{"op": "create_index", "table": path, "column": column, "kind": kind,
		"partitions": vectorPartitions, "subVectors": vectorSubVectors})
}

// Vector indexes in this package are small, and cut so that a query that probes
// every partition sees every row.
const (
	vectorPartitions = 4
	vectorSubVectors = 4
)

// Index is an engine's view of an index.
type Index struct {
	Name          string
	Kind          string
	Columns       []string
	IndexedRows   int
	UnindexedRows int
}

// Indices lists the indexes that the engine shows.
func (e *Engine) Indices(ctx context.Context, path string) ([]Index, error) {
	var reply struct{ Indices []Index }
	err := e.call(ctx, request{"op": "indices", "table": path}, &reply)
	return reply.Indices, err
}

// Query asks for rows. The zero value is a full scan.
type Query struct {
	// Version reads an older version; 0 is the latest.
	Version uint64
	// Columns in the order wanted. The default is all.
	Columns []string
	// Where is a filter in SQL.
	Where string
	// FTS is a full-text search.
	FTS *TextSearch
	// KNN is a vector search.
	KNN *VectorSearch
	// Limit bounds the rows; needed with FTS and KNN.
	Limit int
	// Blobs asks for the bytes of blobs, not where they are. Only pylance offers it.
	Blobs bool
}

// TextSearch asks for the rows whose column holds any of the words of Text.
type TextSearch struct {
	Column string `json:"column"`
	Text   string `json:"text"`
}

// VectorSearch asks for the nearest rows by L2 distance.
type VectorSearch struct {
	Column string    `json:"column"`
	Vector []float32 `json:"vector"`
	// Probes is the number of partitions searched.
	Probes int `json:"nprobes"`
	// Refine re-ranks so many times Limit candidates by their stored vectors; 0
	// does not.
	Refine int `json:"refine,omitempty"`
	// EF is the length of a graph search's candidate list; 0 is the engine's choice.
	EF int `json:"ef,omitempty"`
}

// Answer is what a query returned. Release it.
type Answer struct {
	Batches []arrow.RecordBatch
	// Plan is the engine's explanation of the query.
	Plan string
}

// Release frees the batches.
func (a *Answer) Release() {
	for _, b := range a.Batches {
		b.Release()
	}
	a.Batches = nil
}

// Query runs a query.
func (e *Engine) Query(ctx context.Context, path string, q Query) (*Answer, error) {
	req := request{"op": "query", "table": path}
	set := func(key string, value any, given bool) {
		if given {
			req[key] = value
		}
	}
	set("version", q.Version, q.Version != 0)
	set("columns", q.Columns, len(q.Columns) > 0)
	set("where", q.Where, q.Where != "")
	set("fts", q.FTS, q.FTS != nil)
	set("knn", q.KNN, q.KNN != nil)
	set("limit", q.Limit, q.Limit > 0)
	set("blobs", q.Blobs, q.Blobs)
	var reply struct {
		Batches []string
		Plan    string
	}
	if err := e.call(ctx, req, &reply); err != nil {
		return nil, err
	}
	a := &Answer{Plan: reply.Plan}
	for _, b := range reply.Batches {
		recs, err := decodeRows(b)
		if err != nil {
			a.Release()
			return nil, fmt.Errorf("interop: %s: answer of a query: %w", e.Name, err)
		}
		a.Batches = append(a.Batches, recs...)
	}
	return a, nil
}

// Count counts the rows that match a filter; an empty one counts all, which the
// engines answer from the metadata.
func (e *Engine) Count(ctx context.Context, path, where string) (int, error) {
	req := request{"op": "count", "table": path}
	if where != "" {
		req["where"] = where
	}
	var reply struct{ Rows int }
	err := e.call(ctx, req, &reply)
	return reply.Rows, err
}

// Version returns the latest version that the engine sees.
func (e *Engine) Version(ctx context.Context, path string) (uint64, error) {
	return e.commit(ctx, request{"op": "version", "table": path})
}

// Restore makes an older version the latest again, opening the table at that version if
// the engine can.
func (e *Engine) Restore(ctx context.Context, path string, version uint64) (uint64, error) {
	return e.commit(ctx, request{"op": "restore", "table": path, "version": version})
}

// Validate runs the engine's own check of the table. Only pylance offers it.
func (e *Engine) Validate(ctx context.Context, path string) error {
	return e.call(ctx, request{"op": "validate", "table": path}, nil)
}

// RemapAddrs translates old row addresses through the table's fragment reuse
// index as the engine does; nil means deleted. Without such an index ok is false.
// Only pylance offers it.
func (e *Engine) RemapAddrs(ctx context.Context, path string, addrs []uint64) (out []*uint64, ok bool, err error) {
	var reply struct{ Addrs []*uint64 }
	err = e.call(ctx, request{"op": "remap", "table": path, "addrs": addrs}, &reply)
	return reply.Addrs, reply.Addrs != nil, err
}

// Forget closes the engine's handle of the table; the next call opens it anew.
func (e *Engine) Forget(ctx context.Context, path string) error {
	return e.call(ctx, request{"op": "close", "table": path}, nil)
}
