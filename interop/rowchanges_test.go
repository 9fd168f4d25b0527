package interop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/scalar"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// recording notes what an engine writes, so that it can be told from what others do.
type recording struct {
	*lance.Engine
	mu    sync.Mutex
	wrote map[string]bool
}

func (r *recording) WriteFragments(ctx context.Context, s table.Schema, rows iter.Seq2[table.Batch, error], o table.WriteOptions) (table.Written, error) {
	out, err := r.Engine.WriteFragments(ctx, s, rows, o)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, object := range out.Objects {
		r.wrote[object.Path] = true
	}
	return out, err
}

func (r *recording) WriteDeletions(ctx context.Context, id table.FragmentID, version uint64, deleted table.OffsetSet) (table.DeletionRef, error) {
	ref, err := r.Engine.WriteDeletions(ctx, id, version, deleted)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrote[ref.Path] = true
	return ref, err
}

// TestRehomeChangesRowsWhileStockEnginesOptimizeAndWrite has rehome delete, update
// and upsert rows one after the other, as a library and as a command, while a stock engine optimizes the table again
// and again, and another one changes other rows. Every change of rehome's is
// committed, wherever its rows went meanwhile; the stock writer never fails; the rows
// are right in every engine; and rehome leaves nothing behind. Whether the stock
// optimize gets through is its own affair, and logged.
//
// Writers pause now and then, or no stock optimize would ever get through.
func TestRehomeChangesRowsWhileStockEnginesOptimizeAndWrite(t *testing.T) {
	ctx := needEngines(t)
	for i, spec := range []interop.Spec{interop.LanceDB39, interop.LanceDB31, interop.PyLance14} {
		t.Run(spec.Name+" optimizes", func(t *testing.T) {
			t.Parallel()
			// A process of its own: the shared ones take turns.
			optimizer, err := interop.Start(ctx, spec)
			require.NoError(t, err)
			defer optimizer.Close()
			b := &busy{writer: engines[(i+1)%len(engines)], path: filepath.Join(t.TempDir(), "t.lance"), rows: map[int64]string{}}
			defer forget(ctx, b.path)
			for range 12 {
				b.grow(ctx, t, 500)
			}
			stored, err := lance.Open(ctx, b.path, lance.Options{})
			require.NoError(t, err)
			defer stored.Close()
			e := &recording{Engine: stored, wrote: map[string]bool{}}

			const breath = 150 * time.Millisecond
			stop := make(chan struct{})
			var others sync.WaitGroup
			var optimized, failed int
			others.Go(func() {
				for !closed(stop) {
					o, err := optimizer.Optimize(ctx, b.path)
					if reported := (*interop.EngineError)(nil); errors.As(err, &reported) {
						failed++
						continue
					}
					if !errorFree(t, err) {
						return
					}
					if o.FragmentsRemoved > 0 {
						optimized++
					}
				}
			})
			// The stock writer has the ids that are 1 modulo 3, rehome those that are 0.
			written := map[int64]string{}
			others.Go(func() {
				for i := int64(0); !closed(stop); i++ {
					id, value := (i*3*97+1)%6000, fmt.Sprintf("stock %d", i)
					w := interop.Write{Where: fmt.Sprintf("id = %d", id), Set: map[string]string{"s": "'" + value + "'"}}
					if !errorFree(t, b.writer.Churn(ctx, b.path, []interop.Write{w})) {
						return
					}
					written[id] = value
					time.Sleep(breath)
				}
			})

			const least, most = 40, 20 * time.Second
			var relocated, again uint64
			changes, mine := 0, map[int64]*string{}
			for end := time.Now().Add(most); time.Now().Before(end) && (changes < least || relocated == 0); changes++ {
				id, value := int64(changes)*3*89%6000, fmt.Sprintf("rehome %d", changes)
				change := b.changeByLibrary
				if changes%2 == 1 {
					change = b.changeByCommand
				}
				done, err := change(ctx, e, changes%3, id, value)
				require.NoError(t, err, "change %d of row %d", changes, id)
				relocated += done.RowsRelocated
				if done.Attempts > 1 {
					again++
				}
				switch changes % 3 {
				case 0:
					mine[id] = nil
				case 1:
					if last, touched := mine[id]; !touched || last != nil {
						mine[id] = &value
					}
				default:
					mine[id] = &value
				}
				time.Sleep(rand.N(breath))
			}
			close(stop)
			others.Wait()
			for id, value := range written {
				b.rows[id] = value
			}
			for id, value := range mine {
				if value == nil {
					delete(b.rows, id)
				} else {
					b.rows[id] = *value
				}
			}
			b.check(ctx, t)
			left, err := orphans(ctx, b.path)
			require.NoError(t, err)
			for _, o := range left {
				info, err := os.Stat(filepath.Join(b.path, o.path))
				require.NoError(t, err)
				require.False(t, e.wrote[o.path] || marked(info), "rehome left %s", o.path)
			}
			t.Logf("%d changes by rehome, %d rows followed to new addresses, %d computed again; %d by the stock writer; optimize: %d committed, %d failed; orphans of the stock engines: %d, %d bytes",
				changes, relocated, again, len(written), optimized, failed, len(left), bytesOf(left))
			require.NotZero(t, optimized)
			require.NotZero(t, relocated, "no change met an optimize")
		})
	}
}

// changeByLibrary deletes, updates or upserts a row.
func (b *busy) changeByLibrary(ctx context.Context, e table.Engine, how int, id int64, value string) (dml.Result, error) {
	switch how {
	case 0:
		return dml.Execute(ctx, e, dml.Delete{Where: idIs(id)}, dml.Options{})
	case 1:
		return dml.Execute(ctx, e, dml.Update{Where: idIs(id), Set: map[string]dml.Expr{"s": dml.Constant(scalar.NewStringScalar(value))}}, dml.Options{})
	default:
		rec := busyRecord([]int64{id}, func(int64) string { return value })
		defer rec.Release()
		return dml.Execute(ctx, e, dml.MergeInsert{On: []string{"id"}, Source: dml.Records(rec), WhenMatched: dml.MatchedUpdate}, dml.Options{})
	}
}

// changeByCommand does so with the command, under ownUmask.
func (b *busy) changeByCommand(ctx context.Context, _ table.Engine, how int, id int64, value string) (done dml.Result, err error) {
	where := fmt.Sprintf("id = %d", id)
	args := []string{"delete", b.path, "--where", where}
	switch how {
	case 1:
		args = []string{"update", b.path, "--where", where, "--set", "s='" + value + "'"}
	case 2:
		rec := busyRecord([]int64{id}, func(int64) string { return value })
		defer rec.Release()
		lines, err := rowsOf([]arrow.RecordBatch{rec}, columnNames(busySchema))
		if err != nil {
			return done, err
		}
		file := filepath.Join(filepath.Dir(b.path), "rows.jsonl")
		if err := os.WriteFile(file, []byte(lines[0].json+"\n"), 0o644); err != nil {
			return done, err
		}
		args = []string{"upsert", b.path, file, "--on", "id"}
	}
	code, stdout, stderr, err := runCommand(ctx, append(underOwnUmask(), append(args, "--json")...))
	if err == nil && code != exitDone {
		err = &refusal{code, stdout + stderr}
	}
	if err != nil {
		return done, err
	}
	return done, json.Unmarshal([]byte(stdout), &done)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// errorFree is for goroutines, which must not end the test.
func errorFree(t *testing.T, err error) bool {
	if err != nil {
		t.Errorf("%v", err)
	}
	return err == nil
}
