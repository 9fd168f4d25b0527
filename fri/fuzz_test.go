package fri_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

func isOurs(err error) bool {
	return errors.Is(err, table.ErrCorrupt) || errors.Is(err, table.ErrUnsupported)
}

// askedRows is how many rows of a fragment are asked for, from the first on.
const askedRows = 120

// checkDecoded: a decoder refuses with one of the sentinels, or the history keeps
// its promises: it is carried unchanged, no translation leads to a fragment that
// was rewritten, and as many rows move as the digests say.
func checkDecoded(t *testing.T, content []byte, h *fri.History, err error) {
	if err != nil {
		if h != nil || !isOurs(err) {
			t.Fatalf("history %v, error %v", h, err)
		}
		return
	}
	require.Equal(t, content, append([]byte{}, h.Encode()...))
	// What may make a row untranslatable.
	damage := h.Validate()
	require.True(t, damage == nil || isOurs(damage), "%v", damage)
	doubtful := damage != nil || !h.Complete()
	for range h.Partitions() {
		doubtful = true // there are no label files
	}
	for _, tr := range h.All() {
		if tr.Mapping() == fri.UnknownMapping {
			checkUnknown(t, h, tr)
			continue
		}
		for _, s := range tr.Sources() {
			moved, asked := uint64(0), min(s.PhysicalRows, askedRows)
			for o := range asked + 1 {
				a := table.NewRowAddr(s.ID, uint32(o))
				got := h.Translate(a)
				switch got.State { // without require, which is slow
				case fri.Moved:
					moved++
					f := got.Addr.Fragment()
					_, rewritten := h.Consumer(f)
					p, ok := h.Producer(f)
					if rewritten || !ok || !slices.Contains(ids(h.At(p).Destinations()), f) {
						t.Fatalf("%v is at %v", a, got.Addr)
					}
				case fri.Unaffected:
					if o != s.PhysicalRows {
						t.Fatalf("%v is unaffected", a)
					}
				case fri.Untranslatable:
					if !doubtful {
						t.Fatalf("%v is untranslatable", a)
					}
				}
			}
			require.LessOrEqual(t, moved, s.LiveRows())
		}
		data, err := tr.MarshalBinary()
		require.NoError(t, err)
		again, err := fri.ParseTransition(data)
		if err != nil { // it reads the bitmap
			require.True(t, damage != nil && isOurs(err), "%v", err)
			continue
		}
		require.Equal(t, show(tr), show(again))
		for _, s := range tr.Sources() {
			checkWalk(t, h, s)
		}
	}
}

// checkWalk: sorted batches and runs say what single lookups say.
func checkWalk(t *testing.T, h *fri.History, s fri.Digest) {
	n := min(s.PhysicalRows, askedRows) + 1
	addrs, states := make([]table.RowAddr, n), make([]fri.State, n)
	for o := range addrs {
		addrs[o] = table.NewRowAddr(s.ID, uint32(o))
	}
	err := h.Translator().TranslateSorted(addrs, states)
	for o := range addrs {
		a := table.NewRowAddr(s.ID, uint32(o))
		want := h.Translate(a)
		if want.State == fri.Moved {
			a = want.Addr
		}
		if want.State != states[o] || want.State == fri.Untranslatable && err == nil || a != addrs[o] {
			t.Fatalf("%v: %v %v, error %v, and alone %v", table.NewRowAddr(s.ID, uint32(o)), states[o], addrs[o], err, want)
		}
	}
	asked := 0
	for run, err := range h.Runs(s.ID) {
		if asked++; err != nil || asked > 100 {
			break
		}
		got := h.Translate(run.From)
		require.Equal(t, run.Deleted, got.State == fri.Deleted)
		require.True(t, run.Deleted || got == fri.Translation{State: fri.Moved, Addr: run.To}, "%v: %v", run, got)
	}
}

// checkUnknown: of a transition that is not understood nothing is said.
func checkUnknown(t *testing.T, h *fri.History, tr *fri.Transition) {
	require.False(t, h.Complete())
	for _, s := range tr.Sources() {
		for _, o := range []uint32{0, 1, 1<<32 - 1} {
			require.Equal(t, fri.Untranslatable, h.Translate(table.NewRowAddr(s.ID, o)).State)
		}
	}
	_, err := tr.MarshalBinary()
	require.ErrorIs(t, err, table.ErrUnsupported)
	_, err = tr.WithDestinations(ids(tr.Destinations()))
	require.ErrorIs(t, err, table.ErrUnsupported)
}

func ids(ds []fri.Digest) (out []table.FragmentID) {
	for _, d := range ds {
		out = append(out, d.ID)
	}
	return out
}

func FuzzDecode(f *testing.F) {
	for _, c := range stockCases(f) {
		if len(c.content) < 4096 { // for speed
			f.Add(c.content, c.IndexVersion[0] > 0)
		}
	}
	for _, content := range taggedContents(f) {
		f.Add(content, true)
	}
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, content []byte, tagged bool) {
		version := int32(0)
		if tagged {
			version = 1
		}
		h, err := fri.Decode(content, version)
		checkDecoded(t, append([]byte{}, content...), h, err)
	})
}

func FuzzDetails(f *testing.F) {
	for _, c := range stockCases(f) {
		if len(c.details) < 4096 {
			f.Add(c.details)
		}
	}
	f.Add(externalDetails("details.binpb", 0, 229676))
	f.Fuzz(func(t *testing.T, details []byte) {
		d, err := fri.DecodeDetails(details)
		if err != nil {
			require.True(t, isOurs(err), "%v", err)
			return
		}
		if d.External != nil {
			require.NotContains(t, d.External.Path, "..")
			_, err := d.External.Slice(details)
			require.True(t, err == nil || isOurs(err))
			return
		}
		h, err := fri.Decode(d.Inline, 1)
		checkDecoded(t, append([]byte{}, d.Inline...), h, err)
	})
}

// Damage anywhere in what a stock engine wrote is refused or decodes to a history
// that keeps its promises.
func TestBitFlips(t *testing.T) {
	for _, c := range stockCases(t) {
		if len(c.content) > 1000 {
			continue
		}
		content := append([]byte{}, c.content...)
		refused := 0
		for i := range content {
			for bit := range 8 {
				content[i] ^= 1 << bit
				h, err := fri.Decode(append([]byte{}, content...), c.IndexVersion[0])
				checkDecoded(t, content, h, err)
				if err != nil || h.Validate() != nil || !h.Complete() {
					refused++
				}
				content[i] ^= 1 << bit
			}
		}
		// What passes is little more than fields that change no meaning: ids and
		// versions, and one survivor for another.
		require.Greater(t, refused, len(content)*8*3/4, c.name)
		for i := range content {
			h, err := fri.Decode(content[:i:i], c.IndexVersion[0])
			checkDecoded(t, content[:i], h, err)
		}
	}
}
