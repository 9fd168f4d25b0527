package lance

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/lance/datafile"
	"github.com/rehome-db/rehome/lance/datafile/level"
	"github.com/rehome-db/rehome/lance/objects"
	"github.com/rehome-db/rehome/lance/schema"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/lance/version"
	"github.com/rehome-db/rehome/table"
)

// The labels of a stable partition are a data file with one column,
//
//	_fri/<map id>/stable_partition.lance    label: uint16, nullable
//
// one row for each physical row of the sources, null for a deleted one. The matrix
// of counts is a global buffer of the file; the schema's metadata has its number.
const (
	labelColumn  = "label"
	labelType    = "uint16"
	countsBuffer = "lance:stable_partition:counts_buffer_index"
	labelsFormat = datafile.V2_1 // the older of those that are written
	labelBits    = 16
)

// WritePartition stores the labels of a stable partition in a new label file of the
// table, for a transition to refer to. The object is what a commit that does not
// come about has to delete; if it has a path it is returned also with an error.
func (e *Engine) WritePartition(ctx context.Context, p *fri.Partition) (fri.PartitionRef, table.Object, error) {
	if err := e.root.Ready(ctx); err != nil {
		return fri.PartitionRef{}, table.Object{}, err
	}
	ref := fri.PartitionRef{MapID: uuid.NewString()}
	o := table.Object{Kind: table.ObjectPartition, Path: objects.LabelPath(ref.MapID)}
	n, err := e.writeLabels(ctx, o.Path, p)
	if err != nil {
		return fri.PartitionRef{}, o, fmt.Errorf("lance: table %s: label file %s: %w", e.root.Store, o.Path, err)
	}
	ref.Bytes, o.Bytes = n, n
	return ref, o, nil
}

func (e *Engine) writeLabels(ctx context.Context, name string, p *fri.Partition) (uint64, error) {
	counts, err := p.Counts(ctx)
	if err != nil {
		return 0, err
	}
	matrix, err := counts.AppendBinary(nil)
	if err != nil {
		return 0, err
	}
	// The first global buffer that a file has beside its schema is number 1.
	meta := arrow.MetadataFrom(map[string]string{countsBuffer: "1"})
	s, err := schema.FromArrow(arrow.NewSchema([]arrow.Field{{Name: labelColumn, Type: arrow.PrimitiveTypes.Uint16, Nullable: true}}, &meta), 0)
	if err != nil {
		return 0, err
	}
	out, err := e.root.Store.Create(ctx, name, store.WriteOptions{})
	if err != nil {
		return 0, err
	}
	info, err := func() (datafile.FileInfo, error) {
		w, err := datafile.NewWriter(out, labelsFormat, s, datafile.WriterOptions{})
		if err != nil {
			return datafile.FileInfo{}, err
		}
		for i := range counts.Blocks() {
			from, to := counts.Block(i)
			block, err := p.Labels(ctx, from, to)
			if err == nil {
				err = ctx.Err()
			}
			if err == nil {
				err = w.Column(0).Append(labelLevels(block))
			}
			if err != nil {
				return datafile.FileInfo{}, err
			}
		}
		if n, err := w.AddGlobalBuffer(matrix); err != nil || n != 1 {
			return datafile.FileInfo{}, fmt.Errorf("the counts are global buffer %d: %w", n, err)
		}
		return w.Finish()
	}()
	if err != nil {
		return 0, errors.Join(err, out.Abort())
	}
	return info.Bytes, out.Close()
}

// labelLevels puts labels into level space: a nullable leaf.
func labelLevels(b fri.LabelBlock) *level.Block {
	n := len(b.Labels)
	out := &level.Block{
		Type: level.Type{Kind: level.Fixed, Bits: labelBits}, Rows: n, Layers: []level.Layer{level.NullableItem},
		Def:    make([]uint16, n),
		Values: level.Values{N: n, Data: make([]byte, 2*n)},
	}
	for i, label := range b.Labels {
		if b.Live != nil && b.Live[i/64]>>(i%64)&1 == 0 {
			out.Def[i] = 1
			continue
		}
		out.Values.Data[2*i], out.Values.Data[2*i+1] = byte(label), byte(label>>8)
	}
	return out
}

// Partitions returns what opens the label files that a version's fragment reuse
// index refers to, for [fri.History.WithPartitions]. Nothing is read until a row is
// asked for.
func (e *Engine) Partitions(s *table.Snapshot) (fri.PartitionSource, error) {
	v, err := version.Of(s)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, ref fri.PartitionRef) (fri.PartitionMap, error) {
		if err := e.root.Ready(ctx); err != nil {
			return nil, err
		}
		l := &labelFile{engine: e, file: table.DataFile{Path: objects.LabelPath(ref.MapID), Bytes: ref.Bytes}}
		if ref.HasBase {
			if _, listed := v.Bases[ref.Base]; !listed {
				return nil, table.Corruptf("lance: table %s version %d: label file %s lies under base %d, which is not listed", e.root.Store, s.Version, ref.MapID, ref.Base)
			}
			l.file.Base = v.Bases.Root(&ref.Base)
		}
		return l, nil
	}, nil
}

// labelFile implements fri.PartitionMap. It holds no file open: the engine's cache
// of files does.
type labelFile struct {
	engine *Engine
	file   table.DataFile
}

func (l *labelFile) wrap(err error) error {
	return fmt.Errorf("lance: table %s: %s: %w", l.engine.root.Store, l.file.Path, err)
}

// open opens the file and checks that it is one of labels.
func (l *labelFile) open(ctx context.Context) (*objects.DataFile, schema.Leaf, error) {
	if err := l.engine.root.Ready(ctx); err != nil {
		return nil, schema.Leaf{}, err
	}
	f, err := l.engine.root.OpenFile(ctx, l.file, l.engine.root.Metadata)
	if err != nil {
		return nil, schema.Leaf{}, l.wrap(err)
	}
	leaves := f.Schema().Leaves()
	switch {
	case uint64(f.Size()) != l.file.Bytes:
		err = table.Corruptf("it has %d bytes, the transition records %d", f.Size(), l.file.Bytes)
	case len(leaves) != 1 || f.NumColumns() != 1:
		err = table.Corruptf("it has %d columns, and labels are one", f.NumColumns())
	case leaves[0].Path != labelColumn || leaves[0].Field.LogicalType != labelType || !leaves[0].Field.Nullable:
		err = table.Corruptf("its column is %q (%s, nullable: %v), and labels are %q (%s, nullable)",
			leaves[0].Path, leaves[0].Field.LogicalType, leaves[0].Field.Nullable, labelColumn, labelType)
	}
	if err != nil {
		f.Release()
		return nil, schema.Leaf{}, l.wrap(err)
	}
	return f, leaves[0], nil
}

// Counts implements fri.PartitionMap.
func (l *labelFile) Counts(ctx context.Context) (*fri.Counts, error) {
	f, _, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Release()
	number, err := strconv.ParseUint(f.Schema().Metadata[countsBuffer], 10, 32)
	if err != nil {
		return nil, l.wrap(table.Corruptf("its schema does not say where the counts are: %s is %.100q", countsBuffer, f.Schema().Metadata[countsBuffer]))
	}
	matrix, err := f.GlobalBuffer(ctx, number, f.Size())
	if err != nil {
		return nil, l.wrap(err)
	}
	counts, err := fri.DecodeCounts(matrix)
	if err != nil {
		return nil, l.wrap(err)
	}
	if f.Rows() != counts.Rows() {
		return nil, l.wrap(table.Corruptf("it has %d labels, and its counts are of %d", f.Rows(), counts.Rows()))
	}
	return counts, nil
}

// Labels implements fri.PartitionMap.
func (l *labelFile) Labels(ctx context.Context, from, to uint64) (fri.LabelBlock, error) {
	f, leaf, err := l.open(ctx)
	if err != nil {
		return fri.LabelBlock{}, err
	}
	defer f.Release()
	column, err := f.Column(0)
	if err != nil {
		return fri.LabelBlock{}, l.wrap(err)
	}
	n := int(to - from)
	out := fri.LabelBlock{Labels: make([]uint16, 0, n), Live: make([]uint64, (n+63)/64)}
	for b, err := range column.BlocksRange(ctx, leaf, from, to) {
		if err != nil {
			return fri.LabelBlock{}, l.wrap(err)
		}
		for i := range b.Rows {
			at := len(out.Labels)
			label := uint16(b.Values.Data[2*i]) | uint16(b.Values.Data[2*i+1])<<8
			out.Labels = append(out.Labels, label)
			if b.Def == nil || b.Def[i] == 0 {
				out.Live[at/64] |= 1 << (at % 64)
			}
		}
	}
	return out, nil
}
