package lance_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/rehome-db/rehome/compaction"
	"github.com/rehome-db/rehome/dml"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/store/fault"
	"github.com/rehome-db/rehome/table"
)

// soon is how long something may take that is to end at once, on a busy machine. What
// waits for a store that does not answer waits for ever, or for the half minute that
// cleaning up may take.
const soon = 10 * time.Second

// everyThird matches rows whose id is a multiple of three.
type everyThird struct{}

func (everyThird) Columns(table.Schema) ([]string, error) { return []string{"id"}, nil }

func (everyThird) Matches(_ context.Context, rec arrow.RecordBatch) (*array.Boolean, error) {
	b := array.NewBooleanBuilder(memory.DefaultAllocator)
	for _, id := range rec.Column(rec.Schema().FieldIndices("id")[0]).(*array.Int64).Int64Values() {
		b.Append(id%3 == 0)
	}
	return b.NewBooleanArray(), nil
}

// hanging is what is done to a table whose store stops answering, each on an engine that
// knows nothing of the table yet.
var hanging = map[string]func(ctx context.Context, e *lance.Engine) error{
	"scan": func(ctx context.Context, e *lance.Engine) error {
		s, err := e.Load(ctx, 0)
		if err != nil {
			return err
		}
		for _, err := range e.Rows(ctx, s, fragmentIDs(s), table.ReadOptions{}) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"take": func(ctx context.Context, e *lance.Engine) error {
		s, err := e.Load(ctx, 0)
		if err != nil {
			return err
		}
		for _, err := range e.Take(ctx, s, []table.RowAddr{table.NewRowAddr(0, 2), table.NewRowAddr(2, 5)}, nil) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"history": func(ctx context.Context, e *lance.Engine) error {
		_, err := e.TransactionsSince(ctx, 1, 0)
		return err
	},
	"append": func(ctx context.Context, e *lance.Engine) error {
		_, err := e.Append(ctx, rows(100, 10), table.WriteOptions{})
		return err
	},
	"delete": func(ctx context.Context, e *lance.Engine) error {
		_, err := dml.Execute(ctx, e, dml.Delete{Where: everyThird{}}, dml.Options{})
		return err
	},
	"compact": func(ctx context.Context, e *lance.Engine) error {
		_, err := compaction.Compact(ctx, e, compaction.Options{})
		return err
	},
}

// A store may stop answering at any operation, and whoever gives up then is free at
// once: no goroutine waits on, and the table is as it was, or the change is in.
func TestWhatIsCancelledEndsAlthoughTheStoreDoesNotAnswer(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	prepared := store.NewMem()
	e := newTable(t, prepared, 20, 25, 30)
	_, err := e.DeleteRows(t.Context(), table.NewRowAddr(0, 3), table.NewRowAddr(1, 4))
	require.NoError(t, err)
	base := load(t, e, 0).Version
	var all errgroup.Group // most of the time is spent waiting
	for name, do := range hanging {
		for how, hangs := range map[string]func(op, first int, k fault.Kind) bool{
			"one operation hangs":      func(op, first int, _ fault.Kind) bool { return op == first },
			"all reads hang from here": func(op, first int, k fault.Kind) bool { return op >= first && k == fault.Read },
		} {
			never := func(int, fault.Kind) bool { return false }
			operations, _, err := hangAt(t, prepared.Clone(), do, never)
			require.NoError(t, err)
			require.Greater(t, operations, 3)
			for n := 1; n <= operations; n++ {
				all.Go(func() error {
					m := prepared.Clone()
					_, unknown, err := hangAt(t, m, do, func(op int, k fault.Kind) bool { return hangs(op, n, k) })
					if err == nil && !unknown {
						err = asBefore(t, prepared, m, base)
					}
					if err != nil {
						return fmt.Errorf("%s, %s, operation %d: %w", name, how, n, err)
					}
					return nil
				})
			}
		}
	}
	require.NoError(t, all.Wait())
}

// hangAt does something to the table in m while the operations that which picks hang,
// and gives up at the first of them. It returns how many operations there were,
// whether a commit may still arrive, and why the end was not as it has to be.
func hangAt(t *testing.T, m *store.Mem, do func(context.Context, *lance.Engine) error, which func(op int, k fault.Kind) bool) (operations int, unknown bool, err error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	armed, at := false, make(chan fault.Op, 1)
	e, err := lance.OpenStore(ctx, fault.New(m, func(o fault.Op) fault.Action {
		if !armed {
			return fault.Pass
		}
		if operations++; !which(operations, o.Kind) {
			return fault.Pass
		}
		select {
		case at <- o:
		default: // not the first
		}
		return fault.Hang
	}), lance.Options{})
	if err != nil {
		return 0, false, err
	}
	armed = true
	done := make(chan error, 1)
	go func() { done <- do(ctx, e) }()
	var op fault.Op
	select {
	case err := <-done: // before anything hung
		return operations, false, errors.Join(err, e.Close())
	case op = <-at:
	}
	cancel()
	select {
	case err = <-done:
	case <-time.After(soon):
		return operations, false, fmt.Errorf("it still waits for %v", op)
	}
	switch {
	case err == nil: // what it was waiting for was not important
	case errors.Is(err, context.Canceled):
	case op.Kind == fault.PutIfAbsent && errors.Is(err, table.ErrAmbiguousCommit):
		unknown = true
	default:
		return operations, false, fmt.Errorf("given up at %v: %w", op, err)
	}
	return operations, unknown, e.Close()
}

// asBefore says what else is in m than there was before a change that was given up,
// unless the change is in.
func asBefore(t *testing.T, before, m *store.Mem, base uint64) error {
	e, err := lance.OpenStore(t.Context(), m, lance.Options{})
	if err != nil {
		return err
	}
	s, err := e.Load(t.Context(), 0)
	if err = errors.Join(err, e.Close()); err != nil || s.Version > base {
		return err
	}
	var left []string
	for _, name := range m.Names() {
		if !slices.Contains(before.Names(), name) {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("left behind: %v", left)
	}
	return nil
}

// What one engine waits for in a session, another may want too, and give up.
func TestNobodyWaitsLongerThanItsContextForAnothersRead(t *testing.T) {
	m := store.NewMem()
	newTable(t, m, 20)
	session, err := lance.NewSession(lance.SessionOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, session.Close()) })
	var hang atomic.Bool
	at := make(chan fault.Op, 1)
	first := openIn(t, session, fault.New(m, func(o fault.Op) fault.Action {
		if o.Kind == fault.Read && hang.CompareAndSwap(true, false) {
			at <- o
			return fault.Hang
		}
		return fault.Pass
	}))
	second := openIn(t, session, m)

	patient, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	hang.Store(true)
	firstDone := make(chan error, 1)
	go func() { _, err := first.Load(patient, 0); firstDone <- err }()
	<-at
	brief, cancel := context.WithCancel(t.Context())
	secondDone := make(chan error, 1)
	go func() { _, err := second.Load(brief, 0); secondDone <- err }()
	time.Sleep(20 * time.Millisecond) // it is waiting now, most likely
	cancel()
	select {
	case err := <-secondDone:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(soon):
		t.Fatal("it waits for the other's read")
	}
	giveUp()
	require.ErrorIs(t, <-firstDone, context.Canceled)
	s, err := second.Load(t.Context(), 0)
	require.NoError(t, err, "the other's end is nothing to this one")
	require.NotZero(t, s.Version)
}
