package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rehome-db/rehome/benchmarks/report"
	"github.com/rehome-db/rehome/benchmarks/versus"
	"github.com/rehome-db/rehome/interop"
	"github.com/rehome-db/rehome/interop/workload"
)

// beside is the benchmark of compactions beside a client that writes.
type beside struct {
	rows, fragments     int
	duration, period    time.Duration
	stock, only, binary string
}

func newBeside() benchmark {
	o := &beside{}
	return benchmark{"beside", func(f *flag.FlagSet) {
		f.IntVar(&o.rows, "rows", 1_000_000, "rows of the table")
		f.IntVar(&o.fragments, "fragments", 100, "fragments of the table")
		f.DurationVar(&o.duration, "duration", time.Minute, "how long compactions are begun")
		f.DurationVar(&o.period, "every", 200*time.Millisecond, "how often the client updates a row")
		f.StringVar(&o.stock, "stock", interop.LanceDB39.Name, "the client's engine, and the one whose optimize is compared with")
		f.StringVar(&o.binary, "rehome", "", "the rehome binary (default: built for the run)")
		f.StringVar(&o.only, "only", "", "measure only this contender: rehome or stock")
	}, o.measure}
}

// compactor compacts the table at path once and says whether that was committed; if
// not, and there is no error, there was nothing to do. An error that is not an errLost
// ends the run.
type compactor func(ctx context.Context, path string) (committed bool, err error)

// errLost marks a compaction that the compactor itself reported as failed.
var errLost = errors.New("not committed")

func (o *beside) measure(ctx context.Context, work string, r *report.Report) error {
	spec, err := stockEngine(o.stock)
	if err != nil {
		return err
	}
	client, err := interop.Start(ctx, spec)
	if err != nil {
		return err
	}
	defer client.Close()
	maintainer, err := interop.Start(ctx, spec)
	if err != nil {
		return err
	}
	defer maintainer.Close()
	if o.binary == "" {
		o.binary = filepath.Join(work, "rehome")
		if out, err := exec.CommandContext(ctx, "go", "build", "-o", o.binary, "github.com/rehome-db/rehome/cmd/rehome").CombinedOutput(); err != nil {
			return fmt.Errorf("build rehome: %w\n%s", err, out)
		}
	}

	t := workload.Vectors(o.rows, o.fragments)
	t.DeletePercent = 0
	template := filepath.Join(work, "template", "t.lance")
	if err := os.MkdirAll(filepath.Dir(template), 0o755); err != nil {
		return err
	}
	if err := t.Build(ctx, client, template); err != nil {
		return err
	}
	size, err := versus.DataBytes(template)
	if err != nil {
		return err
	}
	r.Printf("Table: %d rows (int64, utf8, vector of 128 float32) in %d fragments, %d data bytes, written by %s.\n", o.rows, o.fragments, size, spec.Name)
	r.Printf("A client of the same engine updates one row every %v while compactions run back to back for %v.\n\n", o.period, o.duration)

	rows := []string{"compactions by\tbegun\tcommitted\tlost\tnothing to do\tmedian s\torphans\torphaned MB\tclient's commits\tits errors\tits slowest s\tits orphans\twrong rows"}
	for _, c := range []struct {
		only, name string
		compact    compactor
	}{
		{"rehome", "rehome", withRehome(o.binary)},
		{"stock", "optimize() of " + spec.Name, withStock(maintainer)},
	} {
		if o.only != "" && o.only != c.only {
			continue
		}
		path := filepath.Join(work, "run", "t.lance")
		if err := versus.Copy(template, path); err != nil {
			return err
		}
		got, err := o.run(ctx, client, c.compact, path)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%.2f\t%d\t%.0f\t%d\t%d\t%.2f\t%d\t%d", c.name, got.begun, got.committed, got.lost, got.begun-got.committed-got.lost, median(got.took).Seconds(),
			got.orphans, float64(got.orphanBytes)/1e6, got.client.done, got.client.failed, got.client.slowest.Seconds(), got.clientOrphans, got.wrong))
		for _, err := range []error{got.firstLost, got.client.err} {
			if err != nil {
				// Without where in its source the engine raised it.
				text, _, _ := strings.Cut(err.Error(), ", /")
				r.Printf("%s: %s\n\n", c.name, text)
			}
		}
		if err := errors.Join(maintainer.Forget(ctx, path), client.Forget(ctx, path), os.RemoveAll(filepath.Dir(path))); err != nil {
			return err
		}
	}
	r.Table(rows...)
	return nil
}

func stockEngine(name string) (interop.Spec, error) {
	for _, s := range []interop.Spec{interop.LanceDB39, interop.LanceDB31, interop.PyLance14} {
		if s.Name == name {
			return s, nil
		}
	}
	return interop.Spec{}, fmt.Errorf("no stock engine %q", name)
}

func withRehome(binary string) compactor {
	return func(ctx context.Context, path string) (bool, error) {
		cmd := exec.CommandContext(ctx, binary, "compact", path, "--json", "--no-progress")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil {
			return false, fmt.Errorf("%w: %w: %s%s", errLost, err, out, errs.Bytes())
		}
		var doc struct{ Committed bool }
		return doc.Committed, errors.Join(json.Unmarshal(out, &doc), ctx.Err())
	}
}

func withStock(e *interop.Engine) compactor {
	return func(ctx context.Context, path string) (bool, error) {
		done, err := e.Optimize(ctx, path)
		if reported := (*interop.EngineError)(nil); errors.As(err, &reported) {
			return false, fmt.Errorf("%w: %w", errLost, err)
		}
		return done.FragmentsRemoved > 0, err
	}
}

// besideResult is what a run came to.
type besideResult struct {
	// What is neither committed nor lost found nothing to do.
	begun, committed, lost int
	took                   []time.Duration
	firstLost              error
	// orphans are files of a compaction that no version refers to.
	orphans       int
	orphanBytes   int64
	client        updates
	clientOrphans int
	wrong         int
}

func (o *beside) run(ctx context.Context, client *interop.Engine, compact compactor, path string) (got besideResult, err error) {
	sweep, err := newSweeper(ctx, path)
	if err != nil {
		return got, err
	}
	defer sweep.close()
	stop, wrote := make(chan struct{}), make(chan updates, 1)
	go func() { wrote <- o.update(ctx, client, path, stop) }()
	for end := time.Now().Add(o.duration); err == nil && time.Now().Before(end); {
		begin := time.Now()
		var committed bool
		committed, err = compact(ctx, path)
		got.took = append(got.took, time.Since(begin))
		got.begun++
		if committed {
			got.committed++
		}
		if errors.Is(err, errLost) && ctx.Err() == nil {
			if got.lost++; got.firstLost == nil {
				got.firstLost = err
			}
			err = nil
		}
		if err == nil {
			err = sweep.sweep(ctx)
		}
	}
	close(stop)
	got.client = <-wrote
	if err != nil {
		return got, err
	}
	if err := sweep.sweep(ctx); err != nil {
		return got, err
	}
	got.orphans, got.orphanBytes = sweep.orphans, sweep.orphanBytes
	if got.clientOrphans, err = sweep.small(); err != nil {
		return got, err
	}
	got.wrong, err = wrongRows(ctx, client, path, o.rows, got.client.values)
	return got, err
}

// updates is what the client did.
type updates struct {
	done, failed int
	slowest      time.Duration
	values       map[int64]string
	err          error // the first
}

// update changes a row in every period until stop is closed.
func (o *beside) update(ctx context.Context, client *interop.Engine, path string, stop <-chan struct{}) updates {
	u := updates{values: map[int64]string{}}
	tick := time.NewTicker(o.period)
	defer tick.Stop()
	for i := int64(0); ; i++ {
		select {
		case <-stop:
			return u
		case <-ctx.Done():
			return u
		case <-tick.C:
		}
		id, value, begin := i*7919%int64(o.rows), fmt.Sprintf("updated %d", i), time.Now()
		err := client.Churn(ctx, path, []interop.Write{{Where: fmt.Sprintf("id = %d", id), Set: map[string]string{"s": "'" + value + "'"}}})
		u.slowest = max(u.slowest, time.Since(begin))
		if err != nil {
			u.failed++
			if u.err == nil {
				u.err = err
			}
			continue
		}
		u.done++
		u.values[id] = value
	}
}
