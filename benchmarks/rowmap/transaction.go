package rowmap

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/rehome-db/rehome/fri"
	"github.com/rehome-db/rehome/table"
)

// Transaction is a rewrite that carries its change of address: what the message
// would be if the stock format had a place for it.
//
//	Transaction  { 1 read_version, 2 uuid, 104 rewrite }
//	Rewrite      { 3 groups, 5 change_of_address, 6 coding }   5 and 6 are free in the format
//	RewriteGroup { 1 old_fragments, 2 new_fragments }
//	DataFragment { 1 id, 3 deletion_file, 4 physical_rows }
//	DeletionFile { 4 num_deleted_rows }
//
// Data files and the like are left out: they are there with and without a map.
type Transaction struct {
	Groups []Group // without Deleted and Order, which only the map knows
	Coding Coding
	Map    []byte
}

const (
	txReadVersion, txUUID, txRewrite           = 1, 2, 104
	rewriteGroups, rewriteMap, rewriteCoding   = 3, 5, 6
	groupOld, groupNew                         = 1, 2
	fragmentID, fragmentDeletion, fragmentRows = 1, 3, 4
	deletionRows                               = 4
	maxMessage                                 = math.MaxInt32 // what protobuf allows a message to be
)

// Encode returns the transaction's bytes, as they lie in its file and, once more,
// inline in the manifest. It fails if a protobuf message cannot hold them.
func (t *Transaction) Encode() ([]byte, error) {
	var rewrite []byte
	for _, g := range t.Groups {
		var group []byte
		for _, d := range g.Sources {
			group = appendBytes(group, groupOld, appendFragment(nil, d))
		}
		for _, d := range g.Destinations {
			group = appendBytes(group, groupNew, appendFragment(nil, d))
		}
		rewrite = appendBytes(rewrite, rewriteGroups, group)
	}
	if len(t.Map) > maxMessage-len(rewrite)-128 {
		return nil, fmt.Errorf("rowmap: a map of %d bytes does not fit into a message", len(t.Map))
	}
	rewrite = slices.Grow(rewrite, len(t.Map)+128)
	if len(t.Map) > 0 {
		rewrite = appendBytes(rewrite, rewriteMap, t.Map)
		rewrite = protowire.AppendVarint(protowire.AppendTag(rewrite, rewriteCoding, protowire.VarintType), uint64(t.Coding))
	}
	out := make([]byte, 0, len(rewrite)+128)
	out = protowire.AppendVarint(protowire.AppendTag(out, txReadVersion, protowire.VarintType), 1)
	out = appendBytes(out, txUUID, []byte("00000000-0000-4000-8000-000000000000"))
	return appendBytes(out, txRewrite, rewrite), nil
}

// Committed returns the bytes that the map adds to a commit: twice what it adds to
// the transaction, which is stored in two places. encoded is what Encode returned.
func (t *Transaction) Committed(encoded []byte) (uint64, error) {
	without, err := (&Transaction{Groups: t.Groups}).Encode()
	return 2 * uint64(len(encoded)-len(without)), err
}

func appendFragment(b []byte, d fri.Digest) []byte {
	b = protowire.AppendVarint(protowire.AppendTag(b, fragmentID, protowire.VarintType), uint64(d.ID))
	if d.DeletedRows > 0 {
		b = appendBytes(b, fragmentDeletion, protowire.AppendVarint(protowire.AppendTag(nil, deletionRows, protowire.VarintType), d.DeletedRows))
	}
	return protowire.AppendVarint(protowire.AppendTag(b, fragmentRows, protowire.VarintType), d.PhysicalRows)
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}

// DecodeTransaction reads what Encode wrote and checks it, but not the map, which
// [Transaction.Moves] reads. The transaction keeps pointing into data.
func DecodeTransaction(data []byte) (*Transaction, error) {
	t := &Transaction{}
	var rewrite []byte
	err := each(data, func(num protowire.Number, v uint64, b []byte) error {
		if num == txRewrite {
			rewrite = b
		}
		return nil
	})
	if err == nil {
		err = each(rewrite, func(num protowire.Number, v uint64, b []byte) error {
			switch num {
			case rewriteGroups:
				g, err := decodeGroup(b)
				t.Groups = append(t.Groups, g)
				return err
			case rewriteMap:
				t.Map = b
			case rewriteCoding:
				t.Coding = Coding(min(v, math.MaxUint8))
			}
			return nil
		})
	}
	if err != nil {
		return nil, table.Corruptf("rowmap: transaction: %w", err)
	}
	return t, nil
}

func decodeGroup(data []byte) (Group, error) {
	var g Group
	var live, arrive uint64
	err := each(data, func(num protowire.Number, _ uint64, b []byte) error {
		d, err := decodeFragment(b)
		switch {
		case err != nil:
			return err
		case num == groupOld:
			g.Sources = append(g.Sources, d)
			live += d.LiveRows()
		case num == groupNew:
			g.Destinations = append(g.Destinations, d)
			arrive += d.PhysicalRows
		}
		return nil
	})
	if err == nil && live != arrive {
		err = fmt.Errorf("%d rows survive, %d arrive", live, arrive)
	}
	return g, err
}

func decodeFragment(data []byte) (fri.Digest, error) {
	var d fri.Digest
	err := each(data, func(num protowire.Number, v uint64, b []byte) error {
		switch {
		case num == fragmentID && v <= uint64(table.MaxFragmentID):
			d.ID = table.FragmentID(v)
		case num == fragmentID:
			return fmt.Errorf("fragment id %d", v)
		case num == fragmentRows:
			d.PhysicalRows = v
		case num == fragmentDeletion:
			return each(b, func(num protowire.Number, v uint64, _ []byte) error {
				if num == deletionRows {
					d.DeletedRows = v
				}
				return nil
			})
		}
		return nil
	})
	if err == nil && (d.PhysicalRows > math.MaxUint32 || d.PhysicalRows == 0 || d.DeletedRows > d.PhysicalRows) {
		err = fmt.Errorf("fragment %d has %d rows, %d of them deleted", d.ID, d.PhysicalRows, d.DeletedRows)
	}
	return d, err
}

// each calls f for every varint and every length-delimited field of a message.
func each(msg []byte, f func(num protowire.Number, v uint64, b []byte) error) error {
	for len(msg) > 0 {
		num, typ, n := protowire.ConsumeTag(msg)
		if n < 0 {
			return protowire.ParseError(n)
		}
		msg = msg[n:]
		var v uint64
		var b []byte
		switch typ {
		case protowire.VarintType:
			v, n = protowire.ConsumeVarint(msg)
		case protowire.BytesType:
			b, n = protowire.ConsumeBytes(msg)
		default:
			return fmt.Errorf("field %d has wire type %d", num, typ)
		}
		if n < 0 {
			return protowire.ParseError(n)
		}
		msg = msg[n:]
		if err := f(num, v, b); err != nil {
			return err
		}
	}
	return nil
}

// Moves decodes the map: its runs by ascending old address. The last one has an
// error if the map is not one of the transaction's fragments.
func (t *Transaction) Moves() iter.Seq2[Move, error] {
	return func(yield func(Move, error) bool) {
		c := checker{}
		for _, g := range t.Groups {
			c.sources = append(c.sources, g.Sources...)
			for _, d := range g.Destinations {
				c.arrive += d.PhysicalRows
			}
		}
		for m, err := range t.Coding.decode(t.Map, t.Groups) {
			if err == nil {
				err = c.check(m)
			}
			if err != nil {
				yield(Move{}, table.Corruptf("rowmap: map (%v): after %d rows: %w", t.Coding, c.seen, err))
				return
			}
			if !yield(m, nil) {
				return
			}
		}
		if c.seen != c.arrive {
			yield(Move{}, table.Corruptf("rowmap: map (%v): %d rows, %d arrived", t.Coding, c.seen, c.arrive))
		}
	}
}

// checker makes sure of what the decoded forms rely on.
type checker struct {
	sources      []fri.Digest
	at           int    // the source that the last run was of
	next         uint64 // the first offset after it
	seen, arrive uint64
}

var errNotASource = errors.New("an address is out of order or in no fragment of the transaction")

func (c *checker) check(m Move) error {
	for c.at < len(c.sources) && c.sources[c.at].ID != m.From.Fragment() {
		c.at, c.next = c.at+1, 0
	}
	if c.at == len(c.sources) || uint64(m.From.Offset()) < c.next {
		return errNotASource
	}
	s := c.sources[c.at]
	if m.Rows == 0 || m.Rows > s.PhysicalRows || uint64(m.From.Offset()) > s.PhysicalRows-m.Rows ||
		m.To.Fragment() > table.MaxFragmentID || uint64(m.To.Offset())+m.Rows > 1<<32 {
		return fmt.Errorf("%d rows from %v to %v", m.Rows, m.From, m.To)
	}
	c.next = uint64(m.From.Offset()) + m.Rows
	if c.seen += m.Rows; c.seen > c.arrive {
		return fmt.Errorf("more rows than the %d that arrived", c.arrive)
	}
	return nil
}

// stripped returns the groups as a stored transaction has them.
func stripped(gs []Group) []Group {
	out := make([]Group, len(gs))
	for i, g := range gs {
		out[i] = Group{Sources: g.Sources, Destinations: g.Destinations}
	}
	return out
}

// NewTransaction makes the transaction of a rewrite with its map in the given
// coding. Codings that rely on the order of rows refuse a shuffled rewrite.
func NewTransaction(gs []Group, c Coding) (*Transaction, error) {
	m, err := c.encode(gs)
	if err != nil {
		return nil, err
	}
	return &Transaction{Groups: stripped(gs), Coding: c, Map: m}, nil
}

func ordered(gs []Group) bool {
	for _, g := range gs {
		if g.Order != nil {
			return false
		}
	}
	return true
}

// Smallest makes the transaction in every packed coding that can express the
// rewrite and returns the smallest, with the sizes of all.
func Smallest(gs []Group) (*Transaction, map[Coding]int, error) {
	var best *Transaction
	sizes := make(map[Coding]int)
	for _, c := range Packed() {
		if c == FixedWidth && ordered(gs) {
			continue // never the smallest, and slow
		}
		t, err := NewTransaction(gs, c)
		if errors.Is(err, table.ErrUnsupported) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		sizes[c] = len(t.Map)
		if best == nil || len(t.Map) < len(best.Map) {
			best = t
		}
	}
	return best, sizes, nil
}
