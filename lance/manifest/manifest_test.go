package manifest_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	tablepb "github.com/rehome-db/rehome/lance/internal/pb/table"
	"github.com/rehome-db/rehome/lance/manifest"
	"github.com/rehome-db/rehome/table"
)

// goldenManifests are the manifests of every version of every golden table.
func goldenManifests(t testing.TB) map[string][]byte {
	paths, err := filepath.Glob("../../testdata/golden/*/t.lance/_versions/*.manifest")
	require.NoError(t, err)
	require.Greater(t, len(paths), 150)
	out := map[string][]byte{}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		out[p] = data
	}
	return out
}

// old finds the tables of engines that named manifests in the first way.
var old = regexp.MustCompile(`_p0_\d+/`)

func TestGoldenManifestsAreUnderstoodAndKept(t *testing.T) {
	for p, data := range goldenManifests(t) {
		c, err := manifest.Decode(data)
		require.NoError(t, err, p)
		version, scheme, ok := manifest.ParseName(filepath.Base(p))
		require.True(t, ok, p)
		if old.MatchString(p) {
			require.Equal(t, manifest.V1, scheme, p)
		} else {
			require.Equal(t, manifest.V2, scheme, p)
		}
		require.Equal(t, version, c.Manifest.GetVersion(), p)

		// Every field is one that the messages name: nothing lives on as
		// unknown bytes only.
		requireNoUnknown(t, p, c.Manifest)
		requireNoUnknown(t, p, c.Indexes)
		if old.MatchString(p) {
			require.Empty(t, c.Transaction, p) // then in a file of its own only
		} else {
			txn, err := manifest.DecodeTransaction(c.Transaction)
			require.NoError(t, err, p)
			require.NotNil(t, txn.GetOperation(), p)
		}

		// Feature flags are what the engine that wrote the file computed.
		flags := proto.CloneOf(c.Manifest)
		manifest.SetFlags(flags)
		require.Equal(t, c.Manifest.GetReaderFeatureFlags(), flags.GetReaderFeatureFlags(), p)
		require.Equal(t, c.Manifest.GetWriterFeatureFlags(), flags.GetWriterFeatureFlags(), p)

		want := proto.CloneOf(c.Manifest)
		out, err := c.Encode()
		require.NoError(t, err, p)
		again, err := manifest.Decode(out)
		require.NoError(t, err, p)
		if want.TransactionSectionV14 == nil {
			require.True(t, len(out) == len(data) || old.MatchString(p), p)
		} else { // written where every engine looks, and in the order of the others
			want.TransactionSection, want.TransactionSectionV14 = again.Manifest.TransactionSection, nil
		}
		require.True(t, proto.Equal(want, again.Manifest), p)
		require.True(t, proto.Equal(c.Indexes, again.Indexes), p)
		require.Equal(t, c.Transaction, again.Transaction, p)
	}
}

func requireNoUnknown(t *testing.T, where string, m proto.Message) {
	t.Helper()
	require.Empty(t, m.ProtoReflect().GetUnknown(), where)
}

// The engine writes maps and fields in an order of its own, so bytes may differ
// where a table has a config; where it has not, they must not.
func TestEncodeGivesTheEnginesOwnBytes(t *testing.T) {
	same := 0
	for p, data := range goldenManifests(t) {
		c, err := manifest.Decode(data)
		require.NoError(t, err, p)
		if c.Manifest.TransactionSectionV14 != nil {
			continue // Lance 14's own place for the transaction is not written
		}
		if old.MatchString(p) {
			continue // a container of an earlier minor version
		}
		out, err := c.Encode()
		require.NoError(t, err, p)
		if string(out) == string(data) {
			same++
		} else {
			require.NotEmpty(t, c.Indexes.GetIndices(), p)
		}
	}
	require.Greater(t, same, 100)
}

func sample(t testing.TB) []byte {
	data, err := os.ReadFile("../../testdata/golden/with_ivf_pq_v39/t.lance/_versions/18446744073709551610.manifest")
	require.NoError(t, err)
	return data
}

func TestTruncatedManifestsAreCorrupt(t *testing.T) {
	data := sample(t)
	for n := range len(data) {
		_, err := manifest.Decode(data[:n])
		require.ErrorIs(t, err, table.ErrCorrupt, "first %d bytes of %d", n, len(data))
		_, err = manifest.Decode(data[n+1:])
		require.ErrorIs(t, err, table.ErrCorrupt, "last %d bytes of %d", len(data)-n-1, len(data))
	}
	_, err := manifest.Decode(nil)
	require.ErrorIs(t, err, table.ErrCorrupt)
}

// Not every flipped bit can be seen: the format has no checksum. But none may
// panic, and what decodes must also encode.
func TestFlippedBitsDoNoHarm(t *testing.T) {
	data := sample(t)
	refused := 0
	for i := range data {
		for bit := range 8 {
			bad := append([]byte{}, data...)
			bad[i] ^= 1 << bit
			c, err := manifest.Decode(bad)
			if err != nil {
				require.True(t, table.Classify(err) == table.OutcomeDamaged, "%v", err)
				refused++
				continue
			}
			_, err = c.Encode()
			require.NoError(t, err)
		}
	}
	require.Greater(t, refused, len(data))
}

func TestTheFooterIsChecked(t *testing.T) {
	at := func(back int, b ...byte) []byte {
		data := append([]byte{}, sample(t)...)
		copy(data[len(data)-back:], b)
		return data
	}
	_, err := manifest.Decode(at(4, []byte("LANX")...))
	require.ErrorIs(t, err, table.ErrCorrupt)
	_, err = manifest.Decode(at(8, 1, 0, 0, 0))
	require.ErrorIs(t, err, table.ErrUnsupported)
	_, err = manifest.Decode(at(16, 255, 255, 255, 255, 255, 255, 255, 255))
	require.ErrorIs(t, err, table.ErrCorrupt)
}

// build encodes a manifest that a test made, without the checks of Decode.
func build(t testing.TB, m *tablepb.Manifest, indexes ...*tablepb.IndexMetadata) []byte {
	c := manifest.Contents{Manifest: m, Indexes: &tablepb.IndexSection{Indices: indexes}, Transaction: []byte{}}
	data, err := c.Encode()
	require.NoError(t, err)
	return data
}

func TestContentsThatCannotBe(t *testing.T) {
	frag := func(change func(f *tablepb.DataFragment)) *tablepb.Manifest {
		f := &tablepb.DataFragment{Id: 3, PhysicalRows: 10, Files: []*tablepb.DataFile{{
			Path: "a.lance", Fields: []int32{0, -2}, ColumnIndices: []int32{0, 1}, FileMajorVersion: 2, FileMinorVersion: 1,
		}}}
		change(f)
		return &tablepb.Manifest{Version: 1, Fragments: []*tablepb.DataFragment{f}}
	}
	_, err := manifest.Decode(build(t, frag(func(*tablepb.DataFragment) {})))
	require.NoError(t, err)

	for name, m := range map[string]*tablepb.Manifest{
		"an id of 33 bits":         frag(func(f *tablepb.DataFragment) { f.Id = 1 << 32 }),
		"the tombstone id":         frag(func(f *tablepb.DataFragment) { f.Id = 1<<32 - 1 }),
		"too many rows":            frag(func(f *tablepb.DataFragment) { f.PhysicalRows = 1<<32 + 1 }),
		"a path that climbs":       frag(func(f *tablepb.DataFragment) { f.Files[0].Path = "../../secret" }),
		"an absolute path":         frag(func(f *tablepb.DataFragment) { f.Files[0].Path = "/etc/passwd" }),
		"a field without a column": frag(func(f *tablepb.DataFragment) { f.Files[0].ColumnIndices = []int32{0} }),
		"a field that cannot be":   frag(func(f *tablepb.DataFragment) { f.Files[0].Fields[0] = -1 }),
		"an unlisted base":         frag(func(f *tablepb.DataFragment) { f.Files[0].BaseId = proto.Uint32(7) }),
		"an unlisted base of a deletion file": frag(func(f *tablepb.DataFragment) {
			f.DeletionFile = &tablepb.DeletionFile{BaseId: proto.Uint32(7)}
		}),
		"more deleted than there are": frag(func(f *tablepb.DataFragment) {
			f.DeletionFile = &tablepb.DeletionFile{NumDeletedRows: 11}
		}),
		"one id twice":   {Version: 1, Fragments: []*tablepb.DataFragment{{Id: 1}, {Id: 1}}},
		"one base twice": {Version: 1, BasePaths: []*tablepb.BasePath{{Id: 1}, {Id: 1}}},
	} {
		_, err := manifest.Decode(build(t, m))
		require.ErrorIs(t, err, table.ErrCorrupt, name)
	}
	_, err = manifest.Decode(build(t, frag(func(f *tablepb.DataFragment) {
		f.DeletionFile = &tablepb.DeletionFile{FileType: 7}
	})))
	require.ErrorIs(t, err, table.ErrUnsupported, "a deletion file of a new kind")

	id := &tablepb.UUID{Uuid: make([]byte, 16)}
	for name, indexes := range map[string][]*tablepb.IndexMetadata{
		"an index without id":      {{Name: "i"}},
		"an index id twice":        {{Name: "i", Uuid: id}, {Name: "j", Uuid: id}},
		"coverage that is garbage": {{Name: "i", Uuid: id, FragmentBitmap: []byte{1, 2, 3}}},
		"coverage and more":        {{Name: "i", Uuid: id, FragmentBitmap: []byte{0x3a, 0x30, 0, 0, 0, 0, 0, 0, 0}}},
	} {
		_, err := manifest.Decode(build(t, &tablepb.Manifest{Version: 1}, indexes...))
		require.ErrorIs(t, err, table.ErrCorrupt, name)
	}
}

// Lance 14 names the inline transaction's place in another field. A stale one would
// send it anywhere in the file that replaces this one.
func TestTheTransactionIsFoundWhereLance14PutsIt(t *testing.T) {
	data, err := os.ReadFile("testdata/lance14.manifest")
	require.NoError(t, err)
	c, err := manifest.Decode(data)
	require.NoError(t, err)
	require.NotNil(t, c.Manifest.TransactionSectionV14, "the engine's own bytes")
	require.Empty(t, c.Manifest.ProtoReflect().GetUnknown())
	txn, err := manifest.DecodeTransaction(c.Transaction)
	require.NoError(t, err)
	require.NotNil(t, txn.GetDelete())

	c.Indexes = &tablepb.IndexSection{} // moves the transaction
	again, err := c.Encode()
	require.NoError(t, err)
	c, err = manifest.Decode(again)
	require.NoError(t, err)
	require.Nil(t, c.Manifest.TransactionSectionV14)
	require.NotNil(t, c.Manifest.TransactionSection, "where every engine looks")
	moved, err := manifest.DecodeTransaction(c.Transaction)
	require.NoError(t, err)
	require.Equal(t, txn.GetUuid(), moved.GetUuid())
}

// A newer engine's fields must come through, at every depth.
func TestUnknownFieldsSurvive(t *testing.T) {
	extra := protowire.AppendVarint(protowire.AppendTag(nil, 999, protowire.VarintType), 42)
	m := &tablepb.Manifest{
		Version:   1,
		Fragments: []*tablepb.DataFragment{{Files: []*tablepb.DataFile{{Path: "a"}}, DeletionFile: &tablepb.DeletionFile{}}},
	}
	ix := &tablepb.IndexMetadata{Uuid: &tablepb.UUID{Uuid: make([]byte, 16)}}
	for _, msg := range []proto.Message{m, m.Fragments[0], m.Fragments[0].Files[0], m.Fragments[0].DeletionFile, ix} {
		msg.ProtoReflect().SetUnknown(extra)
	}
	c, err := manifest.Decode(build(t, m, ix))
	require.NoError(t, err)
	again, err := c.Encode()
	require.NoError(t, err)
	c, err = manifest.Decode(again)
	require.NoError(t, err)
	f := c.Manifest.GetFragments()[0]
	for _, msg := range []proto.Message{c.Manifest, f, f.GetFiles()[0], f.GetDeletionFile(), c.Indexes.GetIndices()[0]} {
		require.Equal(t, extra, []byte(msg.ProtoReflect().GetUnknown()))
	}
}

func TestNames(t *testing.T) {
	require.Equal(t, "18446744073709551614.manifest", manifest.V2.Name(1))
	require.Equal(t, "1.manifest", manifest.V1.Name(1))
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64Range(1, manifest.MaxVersion).Draw(t, "version")
		for _, s := range []manifest.Scheme{manifest.V1, manifest.V2} {
			got, scheme, ok := manifest.ParseName(s.Name(v))
			require.True(t, ok)
			require.Equal(t, v, got)
			require.Equal(t, s, scheme)
		}
	})
	for _, name := range []string{
		"", ".manifest", "0.manifest", "01.manifest", "-1.manifest", "x.manifest", "7.manifest-0a1b",
		"d18446744073709551614.manifest", ".tmp_7.manifest_0a1b", "latest_version_hint.json",
		"18446744073709551615.manifest",  // version 0
		"00000000000000000001.manifest",  // detached
		"99999999999999999999.manifest",  // no 64-bit number
		"184467440737095516140.manifest", // 21 digits
	} {
		_, _, ok := manifest.ParseName(name)
		require.False(t, ok, name)
	}
}

func TestFlags(t *testing.T) {
	m := &tablepb.Manifest{Version: 9, ReaderFeatureFlags: 1 | 16, WriterFeatureFlags: 1 | 16 | 32}
	require.NoError(t, manifest.CheckReader(m))
	require.NoError(t, manifest.CheckWriter(m))
	manifest.SetFlags(m)
	require.EqualValues(t, 0, m.GetReaderFeatureFlags(), "no deletion file and no base path is left")
	require.EqualValues(t, 32, m.GetWriterFeatureFlags(), "a mode stays")

	m.Config = map[string]string{"a": "b"}
	m.BasePaths = []*tablepb.BasePath{{Id: 1}}
	m.Fragments = []*tablepb.DataFragment{{DeletionFile: &tablepb.DeletionFile{}}, {RowIdSequence: &tablepb.DataFragment_InlineRowIds{}}}
	manifest.SetFlags(m)
	require.EqualValues(t, 1|2|16, m.GetReaderFeatureFlags())
	require.EqualValues(t, 1|2|8|16|32, m.GetWriterFeatureFlags())

	for _, half := range []*tablepb.Manifest{{ReaderFeatureFlags: 1024}, {WriterFeatureFlags: 1024}} {
		require.NoError(t, manifest.CheckReader(half))
		require.NoError(t, manifest.CheckWriter(half))
		manifest.SetFlags(half)
		require.EqualValues(t, 1024, half.GetReaderFeatureFlags(), "once tagged, for ever")
		require.EqualValues(t, 1024, half.GetWriterFeatureFlags())
	}

	m.ReaderFeatureFlags = 64 | 1<<40
	err := manifest.CheckReader(m)
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, "64 (data overlay files), 1099511627776")
	m.WriterFeatureFlags = 512
	err = manifest.CheckWriter(m)
	require.ErrorIs(t, err, table.ErrUnsupported)
	require.ErrorContains(t, err, "512 (fragment reuse index with stable row ids)")
}

func TestCoverage(t *testing.T) {
	b := manifest.CoverageBytes(nil)
	require.Equal(t, []byte{0x3a, 0x30, 0, 0, 0, 0, 0, 0}, b, "covers nothing, in so many bytes")
	ids, err := manifest.Coverage(b)
	require.NoError(t, err)
	require.NotNil(t, ids)
	require.Empty(t, ids)
	ids, err = manifest.Coverage(nil)
	require.NoError(t, err)
	require.Nil(t, ids, "unknown")

	want := []table.FragmentID{0, 5, 65536, 1 << 31}
	b = manifest.CoverageBytes(want)
	ids, err = manifest.Coverage(b)
	require.NoError(t, err)
	require.Equal(t, want, ids)

	// A few bytes of runs that claim every fragment there could be.
	bomb := binary.LittleEndian.AppendUint32(nil, 12347|1023<<16)
	for range 128 {
		bomb = append(bomb, 0xff)
	}
	for key := range 1024 {
		bomb = binary.LittleEndian.AppendUint16(bomb, uint16(key))
		bomb = binary.LittleEndian.AppendUint16(bomb, 0xffff)
	}
	at := len(bomb) + 4*1024
	for key := range 1024 {
		bomb = binary.LittleEndian.AppendUint32(bomb, uint32(at+key*6))
	}
	for range 1024 {
		bomb = append(bomb, 1, 0, 0, 0, 0xff, 0xff)
	}
	_, err = manifest.Coverage(bomb)
	require.ErrorIs(t, err, table.ErrCorrupt)
	require.ErrorContains(t, err, "67108864 fragments")
}
