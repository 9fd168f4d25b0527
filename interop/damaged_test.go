package interop_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/lance/manifest"
)

// This file is about histories of which a trim makes indexes claim other fragments:
// damaged ones, and ones from versions that were cleaned up. Whatever they claim, in
// every engine an answer by index is the answer of a scan.

// versionFiles are a table's manifests, newest first.
func versionFiles(path string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(path, "_versions", "*.manifest"))
	slices.Sort(names) // by the second naming scheme, the newest is the first
	return names, err
}

func readManifest(name string) (*manifest.Contents, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return manifest.Decode(data)
}

func lengthDelimited(num protowire.Number, body []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), body)
}

func digestOf(id, rows uint64) []byte {
	b := binary.AppendUvarint([]byte{0x08}, id)
	return binary.AppendUvarint(append(b, 0x10), rows)
}

// asOldLanceLeft makes of the newest version, a compaction of a table with stable row
// ids, what old releases made of one that put off the indexes: a history without
// survivors, and indexes that claim the fragments as they were.
func asOldLanceLeft(path string) error {
	names, err := versionFiles(path)
	if err != nil {
		return err
	}
	now, err := readManifest(names[0])
	if err != nil {
		return err
	}
	was, err := readManifest(names[1])
	if err != nil {
		return err
	}
	there := map[uint64]bool{}
	rows := uint64(0)
	for _, f := range now.Manifest.GetFragments() {
		there[f.GetId()] = true
		rows += f.GetPhysicalRows()
	}
	group := lengthDelimited(1, make([]byte, 8))
	for _, f := range was.Manifest.GetFragments() {
		if !there[f.GetId()] {
			group = append(group, lengthDelimited(2, digestOf(f.GetId(), f.GetPhysicalRows()))...)
		}
	}
	group = append(group, lengthDelimited(3, digestOf(0, rows))...)
	version := append(binary.AppendUvarint([]byte{0x08}, was.Manifest.GetVersion()), lengthDelimited(3, group)...)
	for _, x := range now.Indexes.GetIndices() {
		for _, y := range was.Indexes.GetIndices() {
			if bytes.Equal(x.GetUuid().GetUuid(), y.GetUuid().GetUuid()) {
				x.FragmentBitmap = y.GetFragmentBitmap()
			}
		}
	}
	entry := proto.CloneOf(was.Indexes.GetIndices()[0])
	proto.Reset(entry)
	id := proto.CloneOf(was.Indexes.GetIndices()[0].GetUuid())
	id.Uuid = []byte("0123456789abcdef")
	entry.Uuid, entry.Name, entry.DatasetVersion, entry.FragmentBitmap = id, "__lance_frag_reuse", was.Manifest.GetVersion(), manifest.CoverageBytes(nil)
	entry.IndexDetails = &anypb.Any{TypeUrl: "/lance.table.FragmentReuseIndexDetails", Value: lengthDelimited(1, lengthDelimited(1, version))}
	now.Indexes.Indices = append(now.Indexes.Indices, entry)
	data, err := now.Encode()
	if err != nil {
		return err
	}
	return os.WriteFile(names[0], data, 0o600)
}

// trimmedTo trims and says whether the trim dropped all that there was, n transitions.
func trimmedTo(ctx context.Context, path string, n int, flags ...string) error {
	code, stdout, stderr, err := run(ctx, append([]string{"trim", path, "--json"}, flags...)...)
	if err != nil {
		return err
	}
	var r trimReport
	if code != exitDone {
		return &refusal{code, stderr + stdout}
	}
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		return err
	}
	if !r.Committed || r.Dropped != n || r.Kept != 0 {
		return fmt.Errorf("the trim left something: %+v", r)
	}
	return nil
}

// once makes something else of the compaction that all engines' journeys share, and
// compacts as ever in each of them.
func (s scenario) once(first func(ctx context.Context, path string, m *model) error) compactor {
	again := s.withRehome()
	return func(ctx context.Context, stage string, by *interop.Engine, path string, m *model) []finding {
		if stage != firstCompaction {
			return again(ctx, stage, by, path, m)
		}
		forget(ctx, path) // versions change that engines do not read again
		var out []finding
		for _, err := range []error{first(ctx, path, m), rehomeVerify(ctx, path), rehomeScanEquals(ctx, path, m)} {
			if err != nil {
				out = append(out, finding{stage, "rehome", "verify", err.Error()})
			}
		}
		forget(ctx, path)
		return out
	}
}

// TestReport15DamageOverStableRowIDs drops the damage from a table with stable row ids
// that a stock engine wrote, indexes and all. All engines go on with it.
func TestReport15DamageOverStableRowIDs(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		t.Run(writer.Name, func(t *testing.T) {
			t.Parallel()
			s := scenario{
				writer: writer, uniform: true, opts: interop.CreateOptions{StableRowIDs: true},
				kinds: kinds(interop.Bitmap, interop.FTS, interop.IVFPQ, interop.BTree, interop.LabelList),
			}
			template, m := s.template(ctx, t)
			s.judge(ctx, t, template, m, s.once(func(ctx context.Context, path string, m *model) error {
				if _, err := rehomeCompact(ctx, path); err != nil {
					return err
				}
				if err := asOldLanceLeft(path); err != nil {
					return err
				}
				return trimmedTo(ctx, path, 1, "--drop-damaged")
			}))
		})
	}
}

// TestReport17ClaimsOfVanishedSources cleans up the versions from which could be told
// that an index has nothing to do with a transition, and drops the transition. The
// index claims the fragments that are gone from then on, and answers as before.
func TestReport17ClaimsOfVanishedSources(t *testing.T) {
	ctx := needEngines(t)
	for _, writer := range engines {
		t.Run(writer.Name, func(t *testing.T) {
			t.Parallel()
			s := scenario{
				writer: writer, uniform: true,
				kinds: kinds(interop.Bitmap, interop.FTS, interop.IVFPQ, interop.BTree, interop.LabelList),
			}
			template, m := s.template(ctx, t)
			s.judge(ctx, t, template, m, s.once(func(ctx context.Context, path string, m *model) error {
				return claimVanished(ctx, writer, path, m)
			}))
		})
	}
}

func claimVanished(ctx context.Context, writer *interop.Engine, path string, m *model) error {
	names, err := versionFiles(path)
	if err != nil {
		return err
	}
	indexed, err := readManifest(names[0])
	if err != nil {
		return err
	}
	var args []string
	for _, f := range indexed.Manifest.GetFragments() {
		args = append(args, "--exclude-fragments", fmt.Sprint(f.GetId()))
	}
	for _, from := range []int64{4000, 4100} {
		rows := newRows(from, from+100)
		m.put(rows...)
		rec := record(m.schema, rows)
		_, err := writer.Append(ctx, path, rec)
		rec.Release()
		if err != nil {
			return err
		}
	}
	forget(ctx, path)
	c, err := rehomeCompact(ctx, path, append(args, "--fri", "always", "--index-policy", "through")...)
	if err != nil {
		return err
	}
	if !c.FRI.Published || c.FragmentsRemoved != 2 {
		return fmt.Errorf("the compaction was to be of two fragments, with a history: %+v", c)
	}
	if names, err = versionFiles(path); err != nil {
		return err
	}
	for _, old := range names[1:] {
		if err := os.Remove(old); err != nil {
			return err
		}
	}
	if err := trimmedTo(ctx, path, 1); err != nil {
		return err
	}
	return claimsMoreThan(path, len(indexed.Manifest.GetFragments()))
}

// claimsMoreThan says whether some index claims fragments that are not there.
func claimsMoreThan(path string, n int) error {
	names, err := versionFiles(path)
	if err != nil {
		return err
	}
	now, err := readManifest(names[0])
	if err != nil {
		return err
	}
	for _, x := range now.Indexes.GetIndices() {
		ids, err := manifest.Coverage(x.GetFragmentBitmap())
		if err != nil {
			return err
		}
		if len(ids) > n {
			return nil
		}
	}
	return fmt.Errorf("no index claims more than %d fragments", n)
}
