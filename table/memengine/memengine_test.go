package memengine_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/table"
	"github.com/rehome-db/rehome/table/enginetest"
	"github.com/rehome-db/rehome/table/memengine"
)

func TestConformance(t *testing.T) {
	enginetest.Run(t, enginetest.Config{
		Schema: enginetest.NullVectorSchema(),
		New: func(_ *testing.T, schema table.Schema) (table.Engine, enginetest.Ops) {
			e := memengine.New("mem", schema)
			return e, e
		},
	})
}

func TestConformanceOfTheRewriter(t *testing.T) {
	unrewritable := func(t *testing.T) (table.Engine, enginetest.Ops) {
		e := memengine.New("mem", enginetest.DefaultSchema())
		appendNames(t, e, "a", "b")
		return memengine.Rewriting{Engine: e, Unsupported: []string{"name"}}, e
	}
	enginetest.Run(t, enginetest.Config{
		New: func(_ *testing.T, schema table.Schema) (table.Engine, enginetest.Ops) {
			e := memengine.New("mem", schema)
			return memengine.Rewriting{Engine: e}, e
		},
		Unrewritable: unrewritable,
	})
}

// The suite's own row changes work on an engine that has none.
func TestConformanceThroughTheEngine(t *testing.T) {
	enginetest.Run(t, enginetest.Config{
		New: func(_ *testing.T, schema table.Schema) (table.Engine, enginetest.Ops) {
			e := memengine.New("mem", schema)
			return e, enginetest.ThroughEngine(e)
		},
		Schema: table.Schema{Fields: []table.Field{
			{ID: 0, Name: "key", Type: arrow.PrimitiveTypes.Int64},
			{ID: 4, Name: "blob", Type: arrow.BinaryTypes.Binary, Nullable: true},
			{ID: 9, Name: "ratio", Type: arrow.PrimitiveTypes.Float64},
		}},
	})
}

func TestDeletingAllRowsRemovesTheFragment(t *testing.T) {
	e := memengine.New("mem", enginetest.DefaultSchema())
	appendNames(t, e, "a", "b")
	appendNames(t, e, "c")
	require.NoError(t, e.DeleteRows(t.Context(), table.NewRowAddr(0, 0), table.NewRowAddr(0, 1)))
	s, err := e.Load(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, s.Fragments, 1)
	require.Equal(t, table.FragmentID(1), s.Fragments[0].ID)
	require.Equal(t, table.FragmentID(2), s.NextFragmentID)
}

func TestDeletingARowThatIsNotThere(t *testing.T) {
	e := memengine.New("mem", enginetest.DefaultSchema())
	appendNames(t, e, "a", "b")
	before, err := e.Objects(t.Context())
	require.NoError(t, err)
	// The first address is fine, and what was written for it must not stay.
	require.ErrorIs(t, e.DeleteRows(t.Context(), table.NewRowAddr(0, 1), table.NewRowAddr(7, 0)), table.ErrConflict)
	require.ErrorContains(t, e.DeleteRows(t.Context(), table.NewRowAddr(0, 2)), "fragment 0")
	after, err := e.Objects(t.Context())
	require.NoError(t, err)
	require.Equal(t, before, after)
	s, err := e.Load(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, uint64(2), s.LiveRows())
}

func appendNames(t *testing.T, e *memengine.Engine, names ...string) {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, enginetest.DefaultSchema().Arrow())
	defer b.Release()
	for i, name := range names {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.StringBuilder).Append(name)
		b.Field(2).AppendNull()
		b.Field(3).AppendNull()
	}
	rec := b.NewRecordBatch()
	defer rec.Release()
	require.NoError(t, e.Append(t.Context(), rec))
}
