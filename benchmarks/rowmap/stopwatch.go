package rowmap

import (
	"slices"
	"time"
)

// stopwatch measures work of one thread on a machine that has other work, too.
type stopwatch struct {
	start time.Time
	cpu   time.Duration
	ok    bool
}

func startWatch() stopwatch {
	cpu, ok := processorTime()
	return stopwatch{time.Now(), cpu, ok}
}

// sliced is the time from which on a measurement is likely to have been interrupted
// by others, and from which on the processor time is precise enough.
const sliced = 5 * time.Millisecond

// elapsed is the time that passed or, if it is longer than a moment and the process
// had less of the processor than that, the time it had. On an idle machine the two
// are one. It favours what takes long, which is never the reuse index.
func (w stopwatch) elapsed() time.Duration {
	wall := time.Since(w.start)
	if cpu, ok := processorTime(); ok && w.ok && wall > sliced {
		return min(wall, cpu-w.cpu)
	}
	return wall
}

// perItem runs f over pieces of n items and returns the median of the nanoseconds
// an item. A piece takes about a millisecond, so that what interrupts some of them
// does not show.
func perItem(n, piece int, f func(from, to int) error) (float64, error) {
	var all []float64
	for from := 0; from < n; from += piece {
		to := min(from+piece, n)
		start := time.Now()
		if err := f(from, to); err != nil {
			return 0, err
		}
		all = append(all, float64(time.Since(start).Nanoseconds())/float64(to-from))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}
