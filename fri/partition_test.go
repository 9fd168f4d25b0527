package fri_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/deletion"
	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// labelFiles stands for the label files of an engine, by map id.
type labelFiles map[string]*labelFile

type labelFile struct {
	*fri.Partition
	changed map[int]fri.LabelBlock
	reads   []int // blocks, in the order in which they were asked for
	fail    error // what reading does
}

func (f *labelFile) Labels(ctx context.Context, from, to uint64) (fri.LabelBlock, error) {
	counts, _ := f.Counts(ctx)
	i := int(from / counts.BlockRows())
	f.reads = append(f.reads, i)
	if f.fail != nil {
		return fri.LabelBlock{}, f.fail
	}
	if b, ok := f.changed[i]; ok {
		return b, nil
	}
	return f.Partition.Labels(ctx, from, to)
}

func (l labelFiles) open(_ context.Context, ref fri.PartitionRef) (fri.PartitionMap, error) {
	f, ok := l[ref.MapID]
	if !ok {
		return nil, fmt.Errorf("no file for %s: %w", ref.MapID, table.ErrNotFound)
	}
	return f, nil
}

// build reads one source a line, "ID rows= deleted= labels=0,1,0", the labels being
// those of the live rows, repeated as often as it takes; then "-> ID ...".
func (l labelFiles) build(t *testing.T, d *datadriven.TestData) (*fri.Transition, error) {
	var b *fri.PartitionBuilder
	var ids []table.FragmentID
	lines := strings.Split(d.Input, "\n")
	for _, f := range strings.Fields(strings.TrimPrefix(lines[len(lines)-1], "->")) {
		ids = append(ids, table.FragmentID(number(t, f)))
	}
	b, err := fri.NewPartitionBuilder(len(ids))
	if err != nil {
		return nil, err
	}
	if d.HasArg("small") {
		fri.SmallBlocks(b)
	}
	for _, line := range lines[:len(lines)-1] {
		id, kv := attrs(line)
		deleted := offsets(t, kv["deleted"])
		dg := fri.Digest{ID: table.FragmentID(number(t, id)), PhysicalRows: number(t, kv["rows"]), DeletedRows: deleted.Cardinality()}
		cycle := offsetsInOrder(t, kv["labels"])
		n := dg.LiveRows()
		if c, ok := kv["count"]; ok {
			n = number(t, c)
		}
		labels := make([]uint16, n)
		for i := range labels {
			labels[i] = cycle[i%len(cycle)]
		}
		if err := b.AddSource(dg, set(deleted), labels); err != nil {
			return nil, err
		}
	}
	ref := fri.PartitionRef{MapID: "00000000-0000-0000-0000-000000000001", Bytes: 100}
	d.MaybeScanArgs(t, "map", &ref.MapID)
	p := b.Build()
	l[ref.MapID] = &labelFile{Partition: p}
	return p.Transition(ids, ref)
}

func set(v *deletion.Vector) table.OffsetSet {
	if v.IsEmpty() {
		return nil
	}
	return v
}

func offsetsInOrder(t *testing.T, s string) (out []uint16) {
	for _, f := range strings.Split(s, ",") {
		out = append(out, uint16(number(t, f)))
	}
	return out
}

// damage reads "BLOCK: 0 1 . 1", a point for a deleted row; or "fail".
func (l labelFiles) damage(t *testing.T, id, text string) {
	f := l[id]
	require.NotNil(t, f, id)
	f.changed, f.fail = map[int]fri.LabelBlock{}, nil
	for _, line := range strings.Split(text, "\n") {
		if line == "fail" {
			f.fail = fmt.Errorf("the network is down")
			continue
		}
		n, list, _ := strings.Cut(line, ":")
		words := strings.Fields(list)
		b := fri.LabelBlock{Live: make([]uint64, len(words)/64+1)}
		for i, w := range words {
			b.Labels = append(b.Labels, 0)
			if w != "." {
				b.Labels[i] = uint16(number(t, w))
				b.Live[i/64] |= 1 << (i % 64)
			}
		}
		f.changed[int(number(t, n))] = b
	}
}

// decodeCounts reads "counts destinations= block= rows= [magic= version= repr=]"
// with one line of counts for each block, "cut N" and "trail N".
func decodeCounts(t *testing.T, d *datadriven.TestData) string {
	magic, version, repr := "LSPC", uint32(1), uint32(0)
	var destinations, block uint32
	var rows uint64
	d.MaybeScanArgs(t, "magic", &magic)
	d.MaybeScanArgs(t, "version", &version)
	d.MaybeScanArgs(t, "repr", &repr)
	d.MaybeScanArgs(t, "destinations", &destinations)
	d.MaybeScanArgs(t, "block", &block)
	d.MaybeScanArgs(t, "rows", &rows)
	data := []byte(magic)
	for _, v := range []uint32{version, repr, destinations, block} {
		data = binary.LittleEndian.AppendUint32(data, v)
	}
	data = binary.LittleEndian.AppendUint64(data, rows)
	for _, line := range strings.Split(d.Input, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case words[0] == "cut":
			data = data[:len(data)-int(number(t, words[1]))]
		case words[0] == "trail":
			data = append(data, make([]byte, number(t, words[1]))...)
		default:
			for _, w := range words {
				data = binary.LittleEndian.AppendUint32(data, uint32(number(t, w)))
			}
		}
	}
	c, err := fri.DecodeCounts(data)
	if err != nil {
		require.Nil(t, c)
		return describe(t, err)
	}
	again, err := c.AppendBinary(nil)
	require.NoError(t, err)
	require.Equal(t, data, again)
	var b strings.Builder
	fmt.Fprintf(&b, "%d rows in %d blocks to %d destinations\n", c.Rows(), c.Blocks(), c.Destinations())
	for i := range min(c.Destinations(), 4) {
		fmt.Fprintf(&b, "destination %d: %d rows\n", i, c.Total(i))
	}
	b.WriteString(hexLines(data[:min(len(data), 64)]))
	return b.String()
}
