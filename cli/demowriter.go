package cli

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/lance"
)

// demoWriter changes rows until it is told to stop, and keeps the model of what must
// be in the table. It is the only one who does, so the model is exact.
type demoWriter struct {
	engine *lance.Engine
	model  demoModel
	cancel chan struct{}
	ended  chan struct{}
	// commits is how many changes were committed so far.
	commits atomic.Int64

	// Whoever has called stop may look at these.
	err      error
	doc      demoWriterDoc
	problems []string
}

// startDemoWriter lets a writer loose. The model is its own until it was stopped.
func startDemoWriter(ctx context.Context, engine *lance.Engine, model demoModel) *demoWriter {
	w := &demoWriter{engine: engine, model: model, cancel: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		w.err = w.run(ctx)
	}()
	return w
}

// await waits until the writer has committed n changes; less if it came to an end.
func (w *demoWriter) await(n int64) {
	for w.commits.Load() < n {
		select {
		case <-w.ended:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// stop waits for the change that is under way.
func (w *demoWriter) stop() error {
	close(w.cancel)
	<-w.ended
	return w.err
}

func (w *demoWriter) run(ctx context.Context) error {
	for n := int64(0); ; n++ {
		select {
		case <-w.cancel:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		// Other rows every time, all over the table.
		pick := func(id int64) bool { return (id*7919+n*104729)%257 == 0 }
		var err error
		if n%3 == 0 {
			err = w.delete(ctx, pick)
		} else {
			err = w.update(ctx, pick)
		}
		if err != nil {
			return fmt.Errorf("demo: the writer: %w", err)
		}
	}
}

func (w *demoWriter) delete(ctx context.Context, pick func(id int64) bool) error {
	r, err := dml.Execute(ctx, w.engine, dml.Delete{Where: whereID(pick)}, dml.Options{})
	if err != nil {
		return err
	}
	rows := uint64(0)
	for id := range w.model {
		if pick(id) {
			delete(w.model, id)
			rows++
		}
	}
	w.doc.RowsDeleted += r.Deleted
	w.count(r, rows, r.Deleted)
	return nil
}

func (w *demoWriter) update(ctx context.Context, pick func(id int64) bool) error {
	increment := dml.ExprFunc([]string{"updates"}, func(_ context.Context, rec arrow.RecordBatch) (arrow.Array, error) {
		at := rec.Schema().FieldIndices("updates")
		b := array.NewInt64Builder(memory.DefaultAllocator)
		defer b.Release()
		for _, v := range rec.Column(at[0]).(*array.Int64).Int64Values() {
			b.Append(v + 1)
		}
		return b.NewArray(), nil
	})
	r, err := dml.Execute(ctx, w.engine, dml.Update{Where: whereID(pick), Set: map[string]dml.Expr{"updates": increment}}, dml.Options{})
	if err != nil {
		return err
	}
	rows := uint64(0)
	for id := range w.model {
		if pick(id) {
			w.model[id]++
			rows++
		}
	}
	w.doc.RowsUpdated += r.Updated
	w.count(r, rows, r.Updated)
	return nil
}

// count takes down what a change says that it did, of which the model knows better.
func (w *demoWriter) count(r dml.Result, want, got uint64) {
	if want != got {
		w.problems = append(w.problems, fmt.Sprintf("version %d changed %d rows instead of %d", r.Version, got, want))
	}
	if !r.Committed {
		return
	}
	w.commits.Add(1)
	w.doc.Commits++
	w.doc.Retries += r.Attempts - 1
	w.doc.RowsRelocated += r.RowsRelocated
	if len(r.RebasedOver) > 0 {
		w.doc.RebasedOver++
	}
}

// whereID is the predicate of a function of the id.
func whereID(pick func(id int64) bool) dml.Predicate {
	return dml.RowFunc([]string{"id"}, func(rec arrow.RecordBatch, i int) bool {
		at := rec.Schema().FieldIndices("id")
		return pick(rec.Column(at[0]).(*array.Int64).Value(i))
	})
}
