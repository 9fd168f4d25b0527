package interop_test

import (
	"testing"

	"github.com/rehome-db/rehome/interop"
)

var allKinds = []interop.IndexKind{
	interop.BTree, interop.Bitmap, interop.LabelList, interop.FTS, interop.FM, interop.NGram,
	interop.ZoneMap, interop.BloomFilter, interop.IVFFlat, interop.IVFPQ, interop.IVFSQ, interop.IVFRQ,
	interop.HNSWFlat, interop.HNSWPQ, interop.HNSWSQ,
}

// bears says whether an index of the kind goes on answering behind a fragment
// reuse index, so that the automatic policy publishes one for its sake.
func bears(kind interop.IndexKind) bool {
	switch kind {
	case interop.Bitmap, interop.LabelList, interop.IVFFlat, interop.IVFPQ, interop.IVFRQ:
		return true
	}
	return false
}

// TestEveryIndexKind compacts a table with one index of each kind that each
// engine can build, with the default policy, and goes on using it with all of
// them.
func TestEveryIndexKind(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		t.Run(writer.Name+"/none", func(t *testing.T) {
			t.Parallel()
			scenario{writer: writer}.run(ctx, t)
		})
		t.Run(writer.Name+"/key", func(t *testing.T) {
			t.Parallel()
			scenario{writer: writer, keyed: true}.run(ctx, t)
		})
		for _, kind := range allKinds {
			if !writer.Builds(kind) {
				continue
			}
			t.Run(writer.Name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				scenario{writer: writer, kinds: kinds(kind), through: bears(kind)}.run(ctx, t)
			})
		}
	}
}

// TestLeave compacts tables whose indexes could be read through a fragment reuse
// index, without one.
func TestLeave(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		for _, vector := range []interop.IndexKind{interop.IVFFlat, interop.IVFPQ, interop.IVFRQ} {
			t.Run(writer.Name+"/"+string(vector), func(t *testing.T) {
				t.Parallel()
				scenario{
					writer: writer, keyed: true, kinds: kinds(interop.Bitmap, vector),
					actions: map[string]string{"id_idx": "left", "cat_idx": "left", "vec_idx": "left"},
				}.run(ctx, t, "--index-policy", "leave")
			})
		}
	}
}

// TestThrough compacts tables with every index that is read through or masked
// behind a fragment reuse index, side by side.
func TestThrough(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		for _, vector := range []interop.IndexKind{interop.IVFFlat, interop.IVFPQ, interop.IVFRQ} {
			t.Run(writer.Name+"/"+string(vector), func(t *testing.T) {
				t.Parallel()
				scenario{
					writer: writer, keyed: true, through: true,
					kinds:   kinds(interop.BTree, interop.FTS, interop.Bitmap, vector),
					actions: map[string]string{"id_idx": "masked", "n_idx": "masked", "txt_idx": "masked", "cat_idx": "through", "vec_idx": "through"},
				}.run(ctx, t, "--index-policy", "through")
			})
		}
	}
}
