package commit

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff says how long to wait between attempts. The pause is random, and grows with
// the cost of an attempt and the number of lost ones, so that many writers do not keep
// each other from finishing.
type Backoff struct {
	// Every is the number of lost attempts after which a pause may be twice as long.
	Every int
	// Most bounds a pause, in multiples of what an attempt costs. It is a power of 2.
	Most int
}

// backoff is that of the commit loop. It is short at first: to beat one writer that
// commits all the time, an attempt has to begin right after one of its commits, and
// waiting only gives that writer time for more of them.
var backoff = Backoff{Every: 8, Most: 64}

// Pause is how long to wait after so many lost attempts, the last of which took cost.
func (b Backoff) Pause(lost int, cost time.Duration) time.Duration {
	// An attempt in memory takes no time; a pause above longest is never worth it.
	const shortest, longest = time.Millisecond, 10 * time.Second
	slots := min(time.Duration(1)<<min((lost-1)/b.Every, 62), time.Duration(b.Most))
	return min(time.Duration(1+rand.Int64N(int64(slots*max(cost, shortest)))), longest)
}

// Sleep waits for d or until ctx is done; then it returns the error of ctx.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
