package fri_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

func isOurs(err error) bool {
	return errors.Is(err, table.ErrCorrupt) || errors.Is(err, table.ErrUnsupported)
}

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
	for _, tr := range h.All() {
		for _, s := range tr.Sources() {
			moved, asked := uint64(0), min(s.PhysicalRows, 3000)
			for o := range asked + 1 {
				a := table.NewRowAddr(s.ID, uint32(o))
				got := h.Translate(a)
				switch got.State {
				case fri.Moved:
					_, rewritten := h.Consumer(got.Addr.Fragment())
					require.False(t, rewritten)
					p, ok := h.Producer(got.Addr.Fragment())
					require.True(t, ok)
					require.Contains(t, ids(h.At(p).Destinations()), got.Addr.Fragment())
					moved++
				case fri.Unaffected:
					require.EqualValues(t, s.PhysicalRows, o)
				}
			}
			require.LessOrEqual(t, moved, s.LiveRows())
		}
		data, err := tr.MarshalBinary()
		require.NoError(t, err)
		again, err := fri.ParseTransition(data)
		require.NoError(t, err)
		require.Equal(t, tr.String(), again.String())
	}
}

func ids(ds []fri.Digest) (out []table.FragmentID) {
	for _, d := range ds {
		out = append(out, d.ID)
	}
	return out
}

func FuzzDecode(f *testing.F) {
	for _, c := range stockCases(f) {
		f.Add(c.content)
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		h, err := fri.Decode(content, 0)
		if len(content) == 0 {
			content = []byte{}
		}
		checkDecoded(t, content, h, err)
	})
}

func FuzzDetails(f *testing.F) {
	for _, c := range stockCases(f) {
		f.Add(c.details)
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
		h, err := fri.Decode(d.Inline, 0)
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
				h, err := fri.Decode(append([]byte{}, content...), 0)
				checkDecoded(t, content, h, err)
				if err != nil {
					refused++
				}
				content[i] ^= 1 << bit
			}
		}
		// What passes is little more than fields that change no meaning: ids and
		// versions, and one survivor for another.
		require.Greater(t, refused, len(content)*8*3/4, c.name)
		for i := range content {
			h, err := fri.Decode(content[:i:i], 0)
			checkDecoded(t, content[:i], h, err)
		}
	}
}
