package fri_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// storedGroup is a group of index version 0, written by hand.
func storedGroup(survivors []byte, sources, destinations []fri.Digest) []byte {
	group := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), survivors)
	for num, ds := range map[protowire.Number][]fri.Digest{2: sources, 3: destinations} {
		for _, d := range ds {
			var b []byte
			for field, v := range map[protowire.Number]uint64{1: uint64(d.ID), 2: d.PhysicalRows, 3: d.DeletedRows} {
				b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
			}
			group = protowire.AppendBytes(protowire.AppendTag(group, num, protowire.BytesType), b)
		}
	}
	return group
}

// storedVersion is what one commit recorded.
func storedVersion(version uint64, groups ...[]byte) []byte {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), version)
	for _, g := range groups {
		b = protowire.AppendBytes(protowire.AppendTag(b, 3, protowire.BytesType), g)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), b)
}

// emptyMap is a survivor bitmap without survivors.
var emptyMap = make([]byte, 8)

// goodGroup rewrites fragment 10, of 4 rows, into 20.
func goodGroup(t *testing.T) []byte {
	t.Helper()
	var b fri.Builder
	require.NoError(t, b.AddSource(fri.Digest{ID: 10, PhysicalRows: 4}, nil))
	tr, err := b.Build([]fri.Digest{{ID: 20, PhysicalRows: 4}})
	require.NoError(t, err)
	h, err := (&fri.History{}).Append(5, tr)
	require.NoError(t, err)
	_, _, n := protowire.ConsumeTag(h.Encode())
	version, _ := protowire.ConsumeBytes(h.Encode()[n:])
	_, _, n = protowire.ConsumeTag(version)
	_, m := protowire.ConsumeVarint(version[n:])
	version = version[n+m:]
	_, _, n = protowire.ConsumeTag(version)
	group, _ := protowire.ConsumeBytes(version[n:])
	return group
}

// asOldLanceWrote is what old releases recorded of compactions of a table with stable
// row ids: no survivors, and destinations without ids.
func asOldLanceWrote() []byte {
	return storedGroup(emptyMap,
		[]fri.Digest{{ID: 0, PhysicalRows: 100, DeletedRows: 10}, {ID: 1, PhysicalRows: 100}},
		[]fri.Digest{{PhysicalRows: 150}, {PhysicalRows: 40}})
}

func TestReport15DamagedGroupIsSetAside(t *testing.T) {
	good := goodGroup(t)
	damages := map[string][]byte{
		"as old Lance wrote":  asOldLanceWrote(),
		"no bitmap at all":    storedGroup(nil, []fri.Digest{{ID: 0, PhysicalRows: 4}}, []fri.Digest{{ID: 2, PhysicalRows: 4}}),
		"rows do not match":   storedGroup(emptyMap, []fri.Digest{{ID: 0, PhysicalRows: 4, DeletedRows: 4}}, []fri.Digest{{ID: 2, PhysicalRows: 4}}),
		"deleted beyond":      storedGroup(emptyMap, []fri.Digest{{ID: 0, PhysicalRows: 4, DeletedRows: 5}}, nil),
		"source without rows": storedGroup(emptyMap, []fri.Digest{{ID: 0}}, []fri.Digest{{ID: 2}}),
	}
	for name, bad := range damages {
		t.Run(name, func(t *testing.T) {
			for order, groups := range map[string][][]byte{"first": {bad, good}, "last": {good, bad}} {
				content := storedVersion(5, groups...)
				_, err := fri.Decode(content, 0)
				require.ErrorIs(t, err, table.ErrCorrupt, "who vouches for a history asks for all of it")

				h, err := fri.Recover(content, 0)
				require.NoError(t, err)
				require.Equal(t, content, h.Encode(), "carried as it is")
				require.Len(t, h.Damaged(), 1)
				at := h.Damaged()[0]
				require.Equal(t, order == "last", at == 1)
				require.ErrorIs(t, h.Damage(at), table.ErrCorrupt)
				require.ErrorIs(t, h.Validate(), table.ErrCorrupt)
				require.False(t, h.Complete())
				require.Equal(t, "damaged", h.Segments(at)[0].Kind)

				require.Equal(t, fri.Translation{State: fri.Moved, Addr: table.NewRowAddr(20, 3)}, h.Translate(table.NewRowAddr(10, 3)))
				_, err = h.Translator().Translate(table.NewRowAddr(0, 2))
				require.ErrorIs(t, err, table.ErrCorrupt)
				require.Equal(t, fri.Untranslatable, h.Translate(table.NewRowAddr(0, 2)).State)

				// Others are added beside it.
				var b fri.Builder
				require.NoError(t, b.AddSource(fri.Digest{ID: 20, PhysicalRows: 4}, nil))
				next, err := b.Build([]fri.Digest{{ID: 30, PhysicalRows: 4}})
				require.NoError(t, err)
				more, err := h.Append(6, next)
				require.NoError(t, err)
				again, err := fri.Recover(more.Encode(), more.IndexVersion())
				require.NoError(t, err)
				require.Equal(t, h.Damaged(), again.Damaged())
				require.Equal(t, fri.Translation{State: fri.Moved, Addr: table.NewRowAddr(30, 3)}, again.Translate(table.NewRowAddr(10, 3)))

				// It goes when nothing needs it, or when it is asked for.
				kept, dropped, err := h.Trim(fri.Trimming{Commits: make([]fri.Commit, 2), Indexes: []table.IndexMeta{
					{Name: "i", CoverageKnown: true, Coverage: []table.FragmentID{10}, Reuse: table.ReuseThrough}}, OldestReader: 1, DropDamaged: true})
				require.NoError(t, err)
				require.Equal(t, h.Damaged(), dropped)
				require.Empty(t, kept.Damaged())
				require.NoError(t, kept.Validate())
				strict, err := fri.Decode(kept.Encode(), 0)
				require.NoError(t, err)
				require.Equal(t, fri.Translation{State: fri.Moved, Addr: table.NewRowAddr(20, 3)}, strict.Translate(table.NewRowAddr(10, 3)))
			}
		})
	}
}

// A bitmap that is broken inside is found when it is read, and set aside then.
func TestReport15DamageInsideABitmapIsSetAside(t *testing.T) {
	// Fragment 0 of 4 rows with survivors {0, 0}: headers say two, which the array
	// does not hold.
	array := []byte{0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 16, 0, 0, 0, 0, 0, 0, 0}
	survivors := append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, array...)
	bad := storedGroup(survivors, []fri.Digest{{ID: 0, PhysicalRows: 4, DeletedRows: 2}}, []fri.Digest{{ID: 2, PhysicalRows: 2}})
	content := storedVersion(5, bad, goodGroup(t))
	h, err := fri.Decode(content, 0)
	require.NoError(t, err, "no bitmap is read yet")
	require.ErrorIs(t, h.Validate(), table.ErrCorrupt)
	aside, err := h.SetAsideDamage()
	require.NoError(t, err)
	require.Equal(t, []int{0}, aside.Damaged())
	require.Empty(t, h.Damaged(), "a history is immutable")
	require.Equal(t, content, aside.Encode())
	kept, dropped, err := aside.Trim(fri.Trimming{Commits: make([]fri.Commit, 2), OldestReader: 1, DropDamaged: true})
	require.NoError(t, err)
	require.Equal(t, []int{0}, dropped)
	require.NoError(t, kept.Validate())
	whole, err := kept.SetAsideDamage()
	require.NoError(t, err)
	require.Same(t, kept, whole)
}

// What cannot be set aside is refused as before.
func TestReport15WhatCannotBeSetAside(t *testing.T) {
	good := goodGroup(t)
	for name, content := range map[string][]byte{
		"a message that is cut off":   storedVersion(5, good)[:20],
		"an id that is none":          storedVersion(5, storedGroup(emptyMap, []fri.Digest{{ID: table.MaxFragmentID + 1, PhysicalRows: 4}}, nil)),
		"good ones that disagree":     storedVersion(5, good, good),
		"no sources at all":           storedVersion(5, good, storedGroup(emptyMap, nil, nil)),
		"damage to what is elsewhere": storedVersion(5, good, storedGroup(emptyMap, []fri.Digest{{ID: 10, PhysicalRows: 4}}, nil)),
	} {
		_, err := fri.Recover(content, 0)
		require.ErrorIs(t, err, table.ErrCorrupt, name)
	}
}
