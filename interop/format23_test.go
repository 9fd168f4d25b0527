package interop_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// Format 2.3 is not stable: Lance 14 reads no pages of those before it, nor they its. A
// table of it stays of the kind that it is: whoever could read it reads the same rows
// after a compaction and after row changes.
func test23(t *testing.T, writer *interop.Engine, s *arrow.Schema, make func(first int64, n int) arrow.RecordBatch) {
	ctx := t.Context()
	r := &rowsTest{ctx: ctx, t: t, path: filepath.Join(t.TempDir(), "t.lance"), s: s, make: make, want: map[int64]string{}}
	defer forget(ctx, r.path)
	require.NoError(t, r.create(writer, "2.3"))
	for k := range int64(3) {
		require.NoError(t, r.add(writer, 300*(k+1), 300))
	}
	r.dropSome(writer)
	var readers []*interop.Engine
	for _, e := range engines {
		if err := holds(ctx, e, r.path, s, r.want); err == nil {
			readers = append(readers, e)
		} else {
			t.Logf("not read by %s: %.200s", e.Name, err)
		}
	}
	require.Contains(t, readers, writer)
	compactTable(ctx, t, r.path)
	require.NoError(t, rehomeVerify(ctx, r.path))
	r.check("after the compaction", readers)

	// Pages that are copied stay what they were.
	require.NoError(t, r.add(writer, 5000, 100))
	compactTable(ctx, t, r.path, "--mode", "copy")
	require.NoError(t, rehomeVerify(ctx, r.path))
	r.check("after a compaction that copies pages", readers)

	r.change("update", "--where", "id % 5 = 1", "--set", "id = id + 10000")
	for id, row := range maps.Clone(r.want) {
		if id%5 == 1 {
			delete(r.want, id)
			r.want[id+10000] = strings.Replace(row, fmt.Sprintf(`"id":"%d"`, id), fmt.Sprintf(`"id":"%d"`, id+10000), 1)
		}
	}
	r.check("after an update", readers)

	// The engine's own compaction, of what was written together with rows of its own. It
	// may encode them in ways that older engines do not read.
	require.NoError(t, r.add(writer, 20000, 100))
	_, err := writer.Optimize(ctx, r.path)
	require.NoError(t, err)
	r.check("after the engine's own compaction", []*interop.Engine{writer})
}

// sparse23 says whether an engine makes sparse pages of a type: Lance 8 has none, and
// Lance 12 none with dictionaries.
func sparse23(writer *interop.Engine, dt arrow.DataType) bool {
	return writer == pylance || writer == lancedb39 && !strings.Contains(dt.String(), "dictionary")
}

// change runs a command of rehome that changes rows, if it can change rows of these
// types.
func (r *rowsTest) change(command string, args ...string) {
	code, stdout, stderr, err := run(r.ctx, append([]string{command, r.path, "--json"}, args...)...)
	require.NoError(r.t, err)
	require.Zero(r.t, code, "%s%s", stdout, stderr)
	require.NoError(r.t, rehomeVerify(r.ctx, r.path))
}

func TestFormat23OfColumnTypes(t *testing.T) {
	needEngines(t)
	for _, writer := range engines {
		for _, dt := range scalarTypes() {
			if list, ok := dt.(*arrow.FixedSizeListType); ok && writer != pylance && arrow.IsFloating(list.Elem().ID()) {
				continue // the node client takes it for a vector, and refuses those with a NaN
			}
			if dt.ID() == arrow.BOOL && writer != pylance {
				continue // the node client sends no bitmap for what is all null
			}
			t.Run(writer.Name+"/"+typeName(dt), func(t *testing.T) {
				t.Parallel()
				s := typeTable(dt)
				rng := rand.New(rand.NewPCG(1, uint64(dt.ID())))
				test23(t, writer, s, func(first int64, n int) arrow.RecordBatch { return typeRows(s, first, n, rng) })
			})
		}
	}
}

func TestFormat23OfNestedTypes(t *testing.T) {
	needEngines(t)
	columns := nestedColumns()
	for name, c := range columns {
		if len(c.metadata) > 0 {
			continue
		}
		c.metadata = map[string]string{"lance-encoding:structural-encoding": "sparse"}
		columns[name+", sparse"] = c
	}
	for _, writer := range engines {
		for name, c := range columns {
			if writer != pylance && (strings.Contains(c.dt.String(), "large_list") || c.dt.ID() == arrow.NULL) {
				continue // the node client has no such columns
			}
			if strings.HasSuffix(name, "sparse") && !sparse23(writer, c.dt) {
				continue
			}
			t.Run(writer.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				s, make := c.rows(t)
				test23(t, writer, s, make)
			})
		}
	}
}

func TestFormat23OfRandomTypes(t *testing.T) {
	needEngines(t)
	for _, writer := range engines {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(writer.Name, "/", seed), func(t *testing.T) {
				t.Parallel()
				rng := rand.New(rand.NewPCG(seed, 23))
				fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}}
				var columns []randomColumn
				for i := range 3 {
					c := drawColumn(rng, 3, "2.2")
					for writer != pylance && strings.Contains(c.dt.String(), "large_list") {
						c = drawColumn(rng, 3, "2.2")
					}
					columns = append(columns, c)
					f := arrow.Field{Name: fmt.Sprint("c", i), Type: c.dt, Nullable: true}
					if i == 2 && sparse23(writer, c.dt) {
						f.Metadata = arrow.MetadataFrom(map[string]string{"lance-encoding:structural-encoding": "sparse"})
					}
					fields = append(fields, f)
				}
				t.Log(fields)
				s := arrow.NewSchema(fields, nil)
				test23(t, writer, s, func(first int64, n int) arrow.RecordBatch {
					rec, err := jsonRecord(s, first, n, func(int64) (out []string) {
						for _, c := range columns {
							out = append(out, c.value(rng))
						}
						return out
					})
					require.NoError(t, err)
					return rec
				})
			})
		}
	}
}

// TestFormat23Appends has rows appended through the library to tables of either kind,
// also to those that have none yet.
func TestFormat23Appends(t *testing.T) {
	ctx := needEngines(t)
	columns := nestedColumns()
	for _, writer := range engines {
		for _, name := range []string{"list of structs", "map", "dictionary"} {
			t.Run(writer.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				s, make := columns[name].rows(t)
				r := &rowsTest{ctx: ctx, t: t, path: filepath.Join(t.TempDir(), "t.lance"), s: s, make: make, want: map[int64]string{}}
				defer forget(ctx, r.path)
				require.NoError(t, r.create(writer, "2.3"))
				_, err := writer.Delete(ctx, r.path, "true")
				require.NoError(t, err)
				clear(r.want)
				e, err := lance.Open(ctx, r.path, lance.Options{})
				require.NoError(t, err)
				defer e.Close()
				for k := range int64(2) {
					require.NoError(t, r.write(300*k, 300, func(rec arrow.RecordBatch) (uint64, error) {
						rec.Retain()
						next, err := e.Append(ctx, func(yield func(table.Batch, error) bool) { yield(table.Batch{Record: rec}, nil) }, table.WriteOptions{})
						if err != nil {
							return 0, err
						}
						return next.Version, nil
					}))
				}
				require.NoError(t, rehomeVerify(ctx, r.path))
				r.check("after appends", []*interop.Engine{writer})
			})
		}
	}
}

// TestFormat23Goldens compacts copies of the golden tables of format 2.3.
func TestFormat23Goldens(t *testing.T) {
	ctx := needEngines(t)
	dirs, err := filepath.Glob("../testdata/golden/*_2_3*/t.lance")
	require.NoError(t, err)
	require.NotEmpty(t, dirs)
	for _, dir := range dirs {
		t.Run(filepath.Base(filepath.Dir(dir)), func(t *testing.T) {
			t.Parallel()
			g := readGolden(t, filepath.Dir(dir))
			path := copyTable(t, dir)
			defer forget(ctx, path)
			read := func(e *interop.Engine) ([]string, error) {
				a, err := e.Query(ctx, path, interop.Query{})
				if err != nil {
					return nil, err
				}
				defer a.Release()
				got, err := allRows(a.Batches)
				return only(got, g.columns(t)), err
			}
			var readers []*interop.Engine
			for _, e := range engines {
				if got, err := read(e); err == nil {
					require.Equal(t, g.rows(t), got, e.Name)
					readers = append(readers, e)
				} else {
					t.Logf("not read by %s: %.200s", e.Name, err)
				}
			}
			require.NotEmpty(t, readers)
			compactTable(ctx, t, path)
			require.NoError(t, rehomeVerify(ctx, path))
			for _, e := range readers {
				got, err := read(e)
				require.NoError(t, err, e.Name)
				require.Equal(t, g.rows(t), got, e.Name)
			}
		})
	}
}
