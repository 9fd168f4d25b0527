package workload

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/table"
)

// ReadRehome reads a version of the table at path with rehome's engine; 0 is the
// latest. What it must hold says which columns are blobs.
func ReadRehome(ctx context.Context, path string, version uint64, want Version) (d Digests, err error) {
	e, err := lance.Open(ctx, path, lance.Options{})
	if err != nil {
		return d, err
	}
	defer e.Close()
	s, err := e.Load(ctx, version)
	if err != nil {
		return d, err
	}
	all := make([]table.FragmentID, len(s.Fragments))
	for i, f := range s.Fragments {
		all[i] = f.ID
	}
	for batch, err := range e.Rows(ctx, s, all, table.ReadOptions{}) {
		if err != nil {
			return d, err
		}
		rec := want.showBlobs(batch.Record)
		err = d.Add(rec)
		rec.Release()
		if err != nil {
			return d, err
		}
	}
	return d, nil
}

// showBlobs puts the bytes of described blobs into the place of what rehome gives, which
// says too where external ones are.
func (v Version) showBlobs(rec arrow.RecordBatch) arrow.RecordBatch {
	if !v.Blobs() {
		rec.Retain()
		return rec
	}
	fields, columns := rec.Schema().Fields(), slices.Clone(rec.Columns())
	for _, c := range v.Columns {
		for _, i := range rec.Schema().FieldIndices(c.Name) {
			if s, ok := columns[i].(*array.Struct); ok && c.Blob {
				columns[i] = blobBytes(s)
				fields[i].Type = columns[i].DataType()
				defer columns[i].Release()
			}
		}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, rec.NumRows())
}

// ReadStock reads a version of a table that was made, at path, with a stock engine, some
// rows at a time; 0 is the latest. What it must hold says whether there are blobs, whose
// bytes only pylance gives: others leave such columns out.
func (m Made) ReadStock(ctx context.Context, e *interop.Engine, path string, version uint64, want Version) (d Digests, err error) {
	atATime := 250_000
	if m.Unfiltered {
		atATime = m.Rows
	}
	q := interop.Query{Version: version}
	if want.Blobs() {
		if q.Blobs = e.Name == interop.PyLance14.Name; !q.Blobs {
			for _, c := range want.Columns {
				if !c.Blob {
					q.Columns = append(q.Columns, c.Name)
				}
			}
		}
	}
	for first := 0; first == 0 || first < m.Rows; first += atATime {
		if m.Rows > atATime {
			q.Where = fmt.Sprintf("id >= %d AND id < %d", first, first+atATime)
		}
		a, err := e.Query(ctx, path, q)
		if err != nil {
			return d, err
		}
		for _, b := range a.Batches {
			if err == nil {
				err = d.Add(b)
			}
		}
		a.Release()
		if err != nil {
			return d, fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return d, nil
}
