package rows

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/internal/arrowcheck"
	"github.com/rehome-db/rehome/internal/recovered"
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/datafile/shred"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

const (
	defaultMaxRows = 1 << 20
	// sliceRows bounds what is shredded at a time, and how far a file can grow
	// past MaxBytes.
	sliceRows = 8192
)

// WriteFragments writes rows into new files. Files have the format of the
// table's latest version. Rows that stock engines could not read again (package
// arrowcheck has the list) are refused.
func (t *Table) WriteFragments(ctx context.Context, s table.Schema, rows iter.Seq2[table.Batch, error], opts table.WriteOptions) (table.Written, error) {
	if err := t.root.Ready(ctx); err != nil {
		return table.Written{}, err
	}
	w := fragmentWriter{table: t, opts: withDefaults(opts), ratio: 1}
	err := w.open(ctx, s)
	if err == nil {
		err = w.writeSafely(ctx, rows)
	}
	if err != nil {
		return w.out, fmt.Errorf("lance: table %s: write fragments: %w", t.root.Store, err)
	}
	return w.out, nil
}

func withDefaults(opts table.WriteOptions) table.WriteOptions {
	if opts.MaxRows == 0 {
		opts.MaxRows = defaultMaxRows
	}
	if opts.MaxBytes == 0 {
		opts.MaxBytes = math.MaxUint64
	}
	return opts
}

// fragmentWriter cuts a stream of rows into data files.
type fragmentWriter struct {
	table  *Table
	opts   table.WriteOptions
	schema *schema.Schema
	format datafile.Version
	out    table.Written
	file   *newDataFile // nil between files
	blobs  *blobWriter  // with file
	object int          // of file, in out
	rows   uint64       // in file
	plain  uint64       // bytes in file before they are encoded
	// ratio is what encoding made of the last file's bytes: a file's size is known
	// when its pages are written, which may be long after MaxBytes.
	ratio float64
}

// size estimates how large the open file is going to be.
func (w *fragmentWriter) size() uint64 {
	return max(w.file.Bytes(), uint64(float64(w.plain)*w.ratio))
}

func (w *fragmentWriter) open(ctx context.Context, s table.Schema) (err error) {
	latest, err := w.table.history.Load(ctx, 0)
	if err != nil {
		return err
	}
	v, err := version.Of(latest)
	if err != nil {
		return err
	}
	// A commit would refuse it too, but after all the work.
	if err := manifest.CheckWriter(v.Contents.Manifest); err != nil {
		return err
	}
	fragments := slices.Clone(latest.Fragments)
	slices.Reverse(fragments) // as the table is of late
	if w.format, err = w.table.pagesOf(ctx, latest, fragments); err != nil {
		return err
	}
	w.schema, err = schema.FromTable(s)
	return err
}

// writeSafely is writeAll where a panic, of the rows' source too, is an error, so that
// files are not left behind.
func (w *fragmentWriter) writeSafely(ctx context.Context, rows iter.Seq2[table.Batch, error]) (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, w.abort()) // nothing is left to abort but after a panic
		}
	}()
	defer recovered.Into(&err)
	return w.writeAll(ctx, rows)
}

func (w *fragmentWriter) writeAll(ctx context.Context, rows iter.Seq2[table.Batch, error]) error {
	for batch, err := range rows {
		if err == nil {
			err = w.table.root.Ready(ctx)
		}
		if err == nil {
			err = w.batch(ctx, batch.Record)
		}
		if err != nil {
			return errors.Join(err, w.abort())
		}
	}
	return w.closeFile()
}

func (w *fragmentWriter) batch(ctx context.Context, rec arrow.RecordBatch) error {
	if int(rec.NumCols()) != len(w.schema.Fields) {
		return fmt.Errorf("a batch of %d columns for a schema of %d", rec.NumCols(), len(w.schema.Fields))
	}
	if err := arrowcheck.Record(rec); err != nil {
		return fmt.Errorf("rows that other engines could not read: %w", err)
	}
	for at := int64(0); at < rec.NumRows(); {
		if w.file == nil {
			storage := store.WriteOptions{NoSync: w.opts.NoSync}
			var err error
			if w.file, err = w.table.createData(ctx, w.format, w.schema, storage, datafile.WriterOptions{}); err != nil {
				return err
			}
			w.rows, w.plain = 0, 0
			w.blobs = newBlobWriter(&sidecars{table: w.table, path: w.file.object.Path, opts: storage})
			w.object = len(w.out.Objects)
			w.out.Objects = append(w.out.Objects, w.file.object)
		}
		n := min(rec.NumRows()-at, sliceRows, int64(min(w.opts.MaxRows-w.rows, math.MaxInt64)))
		if err := w.append(ctx, rec, at, at+n); err != nil {
			return err
		}
		at += n
		w.rows += uint64(n)
		if w.rows >= w.opts.MaxRows || w.size() >= w.opts.MaxBytes {
			if err := w.closeFile(); err != nil {
				return err
			}
		}
	}
	return nil
}

// append adds the rows [from, to) of a batch to the open file.
func (w *fragmentWriter) append(ctx context.Context, rec arrow.RecordBatch, from, to int64) error {
	rec = rec.NewSlice(from, to)
	defer rec.Release()
	next := 0 // the leaf's column
	for i, f := range w.schema.Fields {
		if got := rec.Column(i).DataType(); !arrow.TypeEqual(f.Type, got) {
			return fmt.Errorf("column %q: a batch has it as %v, the schema as %v", f.Name, got, f.Type)
		}
		blocks, err := shred.Column(f, rec.Column(i))
		if err != nil {
			return err
		}
		for _, b := range blocks {
			column := w.file.Column(next)
			if column.Leaf().Described {
				if b, err = w.blobs.describe(ctx, next, column, b); err != nil {
					return err
				}
			}
			if err := column.Append(b); err != nil {
				return err
			}
			w.plain += plainBytes(b)
			next++
		}
	}
	return nil
}

// plainBytes is the size of a block's values.
func plainBytes(b *level.Block) uint64 {
	v := &b.Values
	if b.Type.Kind != level.Variable {
		return uint64(v.N) * uint64(b.Type.ValueBits()) / 8
	}
	return uint64(v.Offsets[v.N]-v.Offsets[0]) + 4*uint64(v.N)
}

func (w *fragmentWriter) closeFile() error {
	if w.file == nil {
		return nil
	}
	file := w.file
	w.file = nil
	err := w.blobs.close()
	w.out.Objects = append(w.out.Objects, w.blobs.objects()...)
	if err != nil {
		return errors.Join(err, w.blobs.abort(), file.abort())
	}
	f, err := file.finish()
	if err != nil {
		return err
	}
	w.out.Fragments = append(w.out.Fragments, f)
	w.out.Objects[w.object].Bytes = f.Files[0].Bytes
	w.out.BytesWritten += f.Files[0].Bytes
	for _, o := range w.blobs.objects() {
		w.out.BytesWritten += o.Bytes
	}
	// Small files are mostly metadata, which says nothing about larger ones.
	w.ratio = min(1, float64(f.Files[0].Bytes)/float64(max(w.plain, 1)))
	return nil
}

func (w *fragmentWriter) abort() error {
	if w.file == nil {
		return nil
	}
	file := w.file
	w.file = nil
	w.out.Objects = append(w.out.Objects, w.blobs.objects()...)
	return errors.Join(w.blobs.abort(), file.abort())
}

// newDataFile is a data file being written, under its final name.
type newDataFile struct {
	*datafile.Writer
	object  table.Object
	format  datafile.Version
	storage store.Writer
}

// createData starts a data file with the columns of s.
func (t *Table) createData(ctx context.Context, format datafile.Version, s *schema.Schema, opts store.WriteOptions, writer datafile.WriterOptions) (*newDataFile, error) {
	d := &newDataFile{format: format, object: table.Object{Kind: table.ObjectData, Path: objects.DataDir + "/" + dataName()}}
	var err error
	if d.storage, err = t.root.Store.Create(ctx, d.object.Path, opts); err != nil {
		return nil, err
	}
	if d.Writer, err = datafile.NewWriter(d.storage, format, s, writer); err != nil {
		return nil, errors.Join(err, d.storage.Abort())
	}
	return d, nil
}

// finish completes the file and describes it as a fragment of its own.
func (d *newDataFile) finish() (table.NewFragment, error) {
	info, err := d.Finish()
	if err != nil {
		return table.NewFragment{}, errors.Join(err, d.storage.Abort())
	}
	if err := d.storage.Close(); err != nil {
		return table.NewFragment{}, err
	}
	return table.NewFragment{PhysicalRows: info.Rows, Files: []table.DataFile{{
		Path: d.object.Path, Fields: info.Fields, Columns: info.Columns, Format: formatName(d.format), Bytes: info.Bytes,
	}}}, nil
}

func (d *newDataFile) abort() error { return d.storage.Abort() }

// formatName is how tables record a version.
func formatName(v datafile.Version) string { return v.String() }

// dataName makes a unique name in the engines' own style: the first three of 16
// random bytes in binary, which spreads names over the partitions of an object
// store, the others in hexadecimal.
func dataName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%08b%08b%08b%s.lance", b[0], b[1], b[2], hex.EncodeToString(b[3:]))
}
