package fri_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// taggedContents are contents of index version 1 with everything in them.
func taggedContents(f testing.TB) (out [][]byte) {
	h, _ := largePartition(f, 100)
	partition := h.Encode()
	digest := func(id, rows uint64) []byte { return varintField(varintField(nil, 1, id), 2, rows) }
	// Sources 1, destinations 2, and a mapping of the future.
	unknown := bytesField(nil, 1, digest(4, 34))
	unknown = bytesField(unknown, 2, digest(9, 34))
	unknown = bytesField(unknown, 5, []byte("future"))
	var b fri.Builder
	require.NoError(f, b.AddSource(fri.Digest{ID: 3, PhysicalRows: 33}, nil))
	tr, err := b.Build([]fri.Digest{{ID: 5, PhysicalRows: 33}})
	require.NoError(f, err)
	more, err := h.Append(2, tr)
	require.NoError(f, err)
	return [][]byte{partition, bytesField(partition, 2, unknown), more.Encode(), varintField(more.Encode(), 9, 1)}
}

// FuzzCounts: a matrix is refused, or is what was stored and adds up.
func FuzzCounts(f *testing.F) {
	_, file := largePartition(f, 1000)
	counts, _ := file.Counts(context.Background())
	seed, err := counts.AppendBinary(nil)
	require.NoError(f, err)
	f.Add(seed)
	f.Add(seed[:28])
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := fri.DecodeCounts(data)
		if err != nil {
			require.Nil(t, c)
			require.True(t, isOurs(err), "%v", err)
			return
		}
		again, err := c.AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, data, again)
		total := uint64(0)
		for d := range c.Destinations() {
			total += c.Total(d)
		}
		require.LessOrEqual(t, total, c.Rows())
		last := uint64(0)
		for i := range c.Blocks() {
			from, to := c.Block(i)
			require.Equal(t, last, from)
			require.Less(t, from, to)
			last = to
		}
		require.Equal(t, c.Rows(), last)
	})
}

// hostileLabels answers with whatever it was given.
type hostileLabels struct {
	counts *fri.Counts
	labels []byte
}

func (l hostileLabels) Counts(context.Context) (*fri.Counts, error) { return l.counts, nil }

func (l hostileLabels) Labels(_ context.Context, from, to uint64) (fri.LabelBlock, error) {
	var b fri.LabelBlock
	for i := from; i < to && i < uint64(len(l.labels)); i++ {
		if (i-from)%64 == 0 {
			b.Live = append(b.Live, 0)
		}
		b.Labels = append(b.Labels, uint16(l.labels[i]>>1))
		if l.labels[i]&1 == 1 {
			b.Live[(i-from)/64] |= 1 << ((i - from) % 64)
		}
	}
	return b, nil
}

// FuzzLabels: rows that labels place are placed in their destinations, each place
// once, and where labels and counts disagree, nothing is said.
func FuzzLabels(f *testing.F) {
	_, file := largePartition(f, 100)
	counts, _ := file.Counts(context.Background())
	seed, err := counts.AppendBinary(nil)
	require.NoError(f, err)
	labels := make([]byte, 100)
	for i := range labels {
		labels[i] = byte(i%3)<<1 | 1
	}
	f.Add(seed, labels)
	f.Add(seed, labels[:70])
	f.Fuzz(func(t *testing.T, matrix, labels []byte) {
		c, err := fri.DecodeCounts(matrix)
		if err != nil || c.Rows() == 0 || c.Rows() > 5000 || c.Destinations() > 100 {
			return
		}
		live := uint64(0)
		size := map[table.FragmentID]uint64{}
		var destinations []fri.Digest
		for d := range c.Destinations() {
			id := table.FragmentID(10 + d)
			destinations = append(destinations, fri.Digest{ID: id, PhysicalRows: c.Total(d)})
			size[id] = c.Total(d)
			live += c.Total(d)
		}
		content := encodePartition(fri.Digest{ID: 1, PhysicalRows: c.Rows(), DeletedRows: c.Rows() - live}, destinations)
		h, err := fri.Decode(content, 1)
		require.NoError(t, err)
		open := func(context.Context, fri.PartitionRef) (fri.PartitionMap, error) {
			return hostileLabels{c, labels}, nil
		}
		tr := h.WithPartitions(context.Background(), open).Translator()
		seen := map[table.RowAddr]bool{}
		bad := false
		for o := range c.Rows() {
			got, err := tr.Translate(table.NewRowAddr(1, uint32(o)))
			require.Equal(t, err != nil, got.State == fri.Untranslatable)
			if err != nil {
				require.ErrorIs(t, err, table.ErrCorrupt)
				bad = true
				continue
			}
			if got.State == fri.Moved {
				require.Less(t, uint64(got.Addr.Offset()), size[got.Addr.Fragment()])
				require.False(t, seen[got.Addr])
				seen[got.Addr] = true
			}
		}
		if !bad {
			require.Len(t, seen, int(live))
		}
		require.Equal(t, bad, h.At(0).CheckLabels(context.Background(), open) != nil)
	})
}

// encodePartition is the content of one stable partition.
func encodePartition(source fri.Digest, destinations []fri.Digest) []byte {
	digest := func(d fri.Digest) []byte {
		return varintField(varintField(varintField(nil, 1, uint64(d.ID)), 2, d.PhysicalRows), 3, d.DeletedRows)
	}
	msg := bytesField(nil, 1, digest(source))
	for _, d := range destinations {
		msg = bytesField(msg, 2, digest(d))
	}
	ref := varintField(bytesField(nil, 1, []byte("00000000-0000-0000-0000-000000000001")), 2, 1)
	return bytesField(nil, 2, bytesField(msg, 4, ref))
}
