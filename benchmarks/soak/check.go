package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/internal/verify"
	"github.com/rehome-db/rehome/table"
)

// errWrong is what the soak looks for.
var errWrong = errors.New("the table is not as the model says")

// check stops everybody, replays what was committed since the last time, compares
// the latest version and some of those before with the model, verifies the table,
// and makes sure that nobody left an object behind.
func (s *soak) check(ctx context.Context) error {
	s.world.Lock()
	defer s.world.Unlock()
	latest, err := s.checker.Load(ctx, 0)
	if err != nil {
		return err
	}
	from := s.model.upTo
	if err := s.replay(ctx, latest.Version); err != nil {
		return err
	}
	versions := []uint64{latest.Version}
	rng := rand.New(rand.NewPCG(s.seed, latest.Version))
	for range 4 {
		if n := latest.Version - from; n > 1 {
			versions = append(versions, from+1+rng.Uint64N(n-1))
		}
	}
	slices.Sort(versions)
	for _, v := range slices.Compact(versions) {
		if err := s.compare(ctx, v); err != nil {
			return err
		}
	}
	s.size.Store(int64(latest.LiveRows()))
	rows := s.model.rows(latest.Version)
	var dead []int64
	for key := range s.model.events {
		if _, live := rows[key]; !live {
			dead = append(dead, key)
		}
	}
	wrong, err := s.place.ask(ctx, rows, dead)
	if err != nil {
		return err
	}
	if wrong != "" {
		return fmt.Errorf("%w: version %d: %s", errWrong, latest.Version, wrong)
	}
	report, err := verify.Table(ctx, s.checker, verify.Options{})
	if err != nil {
		return err
	}
	if !report.OK {
		return fmt.Errorf("%w: version %d: %v", errWrong, latest.Version, report.Problems)
	}
	left, err := s.place.orphans(ctx)
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("%w: version %d: nothing refers to %v", errWrong, latest.Version, left)
	}
	s.model.forget(latest.Version)
	return s.place.prune(ctx)
}

func (s *soak) compare(ctx context.Context, version uint64) error {
	snapshot, err := s.checker.Load(ctx, version)
	if err != nil {
		return err
	}
	rows, err := readRows(ctx, s.checker, snapshot)
	if err != nil {
		return err
	}
	wrong := s.model.differences(version, rows)
	if snapshot.StableRowIDs && len(wrong) == 0 {
		if wrong, err = s.identities(ctx, snapshot, rows); err != nil {
			return err
		}
	}
	if len(wrong) > 0 {
		return fmt.Errorf("%w: %s", errWrong, strings.Join(wrong, "; "))
	}
	s.stats.add(func(st *stats) { st.compared++ })
	return nil
}

// identities compares the stable ids of a version's rows with those of the version
// that was looked at before. A row that was updated since keeps its id, one that was
// deleted and inserted anew does not, and no two rows have the same.
func (s *soak) identities(ctx context.Context, snapshot *table.Snapshot, rows []row) (wrong []string, err error) {
	identifier, ok := table.As[table.RowIdentifier](s.checker)
	if !ok {
		return nil, fmt.Errorf("%T has stable row ids and cannot tell them", s.checker)
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.addr, b.addr) })
	addrs := make([]table.RowAddr, len(rows))
	for i, r := range rows {
		addrs[i] = r.addr
	}
	list, err := identifier.RowIdentities(ctx, snapshot, addrs)
	if err != nil {
		return nil, err
	}
	now, owner := map[int64]table.RowIdentity{}, map[table.RowID]int64{}
	for i, r := range rows {
		if other, taken := owner[list[i].ID]; taken {
			wrong = append(wrong, fmt.Sprintf("version %d: keys %d and %d have the row id %d", snapshot.Version, other, r.key, list[i].ID))
		}
		owner[list[i].ID], now[r.key] = r.key, list[i]
		was, there := s.ids[r.key]
		if there && s.model.survived(r.key, s.idsAt, snapshot.Version) != (was == list[i]) {
			wrong = append(wrong, fmt.Sprintf("key %d was row %+v in version %d and is %+v in version %d: %v", r.key, was, s.idsAt, list[i], snapshot.Version, s.model.events[r.key]))
		}
	}
	s.ids, s.idsAt = now, snapshot.Version
	return wrong, nil
}

// replay brings the model up to a version. Every version must be a change that a
// writer was told of, or a commit that changes no row.
func (s *soak) replay(ctx context.Context, upTo uint64) error {
	byVersion := map[uint64]*change{}
	for _, c := range s.changes {
		if other := byVersion[c.version]; other != nil {
			return fmt.Errorf("%w: %v, and so was %v", errWrong, c, other)
		}
		byVersion[c.version] = c
	}
	s.changes = nil
	if upTo == s.model.upTo && len(byVersion) == 0 {
		return nil
	}
	txs, err := s.checker.TransactionsSince(ctx, s.model.upTo, upTo)
	if err != nil {
		return err
	}
	for _, tx := range txs {
		c := byVersion[tx.Version]
		delete(byVersion, tx.Version)
		switch tx.Operation.(type) {
		case table.Append, table.Delete, table.Update:
			if c == nil {
				return fmt.Errorf("%w: version %d is a %s that nobody was told of", errWrong, tx.Version, tx.Operation.Kind())
			}
			if err := s.model.replay(c); err != nil {
				return fmt.Errorf("%w: %w", errWrong, err)
			}
		default:
			if c != nil {
				return fmt.Errorf("%w: %v, which is a %s", errWrong, c, tx.Operation.Kind())
			}
			s.model.upTo = tx.Version
		}
	}
	for _, c := range byVersion {
		return fmt.Errorf("%w: %v, and there is no such version", errWrong, c)
	}
	return nil
}
