package versus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rehome-db/rehome/interop"
)

// Cost is what one compaction took.
type Cost struct {
	// Wall and CPU (user and system) time.
	Wall, CPU time.Duration
	// PeakRSS is the process's largest resident memory, in bytes.
	PeakRSS int64
	// Written is what the process handed to the file system, in bytes.
	Written int64
	// DataBytes is the size of the data files that the compaction made.
	DataBytes int64
	// FragmentsRemoved and FragmentsAdded are what it reported.
	FragmentsRemoved, FragmentsAdded int
}

// Contender is a way of compacting the table at path.
type Contender struct {
	Name string
	// Command says how it is run, for people; without the places of files.
	Command string
	// Run compacts and says what that took; Measure adds what files tell.
	Run func(ctx context.Context, path string) (Cost, error)
}

// Stock is a stock engine's own maintenance.
func Stock(s interop.Spec) Contender { return stock(s, s.Name, "") }

// StockCopy is the maintenance of a stock engine on Lance 14 that copies encoded
// pages where it can.
func StockCopy(s interop.Spec) Contender {
	return stock(s, s.Name+" binary copy", "try_binary_copy")
}

func stock(s interop.Spec, name, mode string) Contender {
	engine := filepath.Join(interop.EnginesDir(), s.Name)
	argv := []string{"node", filepath.Join(sourceDir(), "stock.mjs"), engine}
	command := "optimize() of " + s.Name
	if strings.HasPrefix(s.Name, "pylance") {
		argv = []string{filepath.Join(engine, "venv", "bin", "python"), filepath.Join(sourceDir(), "stock.py")}
		command = "compact_files() of " + s.Name
	}
	return Contender{Name: name, Command: command, Run: func(ctx context.Context, path string) (Cost, error) {
		args := append(slices.Clone(argv), path)
		if mode != "" {
			args = append(args, mode)
		}
		out, cost, err := run(ctx, args)
		if err != nil {
			return cost, err
		}
		var r struct {
			WallNS           int64 `json:"wall_ns"`
			CPUNS            int64 `json:"cpu_ns"`
			FragmentsRemoved int   `json:"fragments_removed"`
			FragmentsAdded   int   `json:"fragments_added"`
		}
		if err := json.Unmarshal(out, &r); err != nil {
			return cost, fmt.Errorf("versus: %s printed no JSON: %w", s.Name, err)
		}
		cost.Wall, cost.CPU = time.Duration(r.WallNS), time.Duration(r.CPUNS)
		cost.FragmentsRemoved, cost.FragmentsAdded = r.FragmentsRemoved, r.FragmentsAdded
		return cost, nil
	}}
}

// Bytes copies the bytes of all data files into one new file, and syncs it or not:
// what nothing that reads and writes them can beat by much.
func Bytes(sync bool) Contender {
	name := "cat"
	if sync {
		name = "cat and sync"
	}
	return Contender{Name: name, Command: name + " of the data files", Run: func(ctx context.Context, path string) (Cost, error) {
		start := time.Now()
		err := concatenate(ctx, filepath.Join(path, "data"), sync)
		return Cost{Wall: time.Since(start), FragmentsAdded: 1}, err
	}}
}

func concatenate(ctx context.Context, dir string, sync bool) (err error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(dir, "all"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buffer := make([]byte, 8<<20)
	for _, f := range files {
		in, err := os.Open(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		// Not file to file, which the kernel may do without moving a byte.
		_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, buffer)
		if err := errors.Join(err, in.Close(), ctx.Err()); err != nil {
			return err
		}
	}
	if sync {
		return out.Sync()
	}
	return nil
}

// Rehome is `rehome compact` with the given flags.
func Rehome(binary string, flags ...string) Contender {
	name := strings.TrimSpace("rehome " + strings.Join(flags, " "))
	return Contender{Name: name, Command: strings.TrimSpace("rehome compact TABLE " + strings.Join(flags, " ")),
		Run: func(ctx context.Context, path string) (Cost, error) {
			out, cost, err := run(ctx, append([]string{binary, "compact", path, "--json", "--no-progress"}, flags...))
			if err != nil {
				return cost, err
			}
			var r struct {
				FragmentsRemoved int `json:"fragments_removed"`
				FragmentsAdded   int `json:"fragments_added"`
			}
			if err := json.Unmarshal(out, &r); err != nil {
				return cost, fmt.Errorf("versus: rehome printed no JSON: %w", err)
			}
			cost.FragmentsRemoved, cost.FragmentsAdded = r.FragmentsRemoved, r.FragmentsAdded
			return cost, nil
		}}
}

func sourceDir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// run runs a process to its end and returns what it printed and used.
func run(ctx context.Context, argv []string) ([]byte, Cost, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	start := time.Now()
	err := cmd.Run()
	cost := Cost{Wall: time.Since(start)}
	if cmd.ProcessState != nil {
		cost.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			cost.PeakRSS = u.Maxrss * 1024        // Linux counts kilobytes
			cost.Written = int64(u.Oublock) * 512 // and sectors
		}
	}
	if err != nil {
		return nil, cost, fmt.Errorf("versus: %s: %w: %s", filepath.Base(argv[0]), err, bytes.TrimSpace(errs.Bytes()))
	}
	return out.Bytes(), cost, nil
}

// Measure runs the contender on a copy of the table made in dir, which is removed
// afterwards.
func Measure(ctx context.Context, c Contender, table, dir string) (Cost, error) {
	work, err := os.MkdirTemp(dir, "copy-")
	if err != nil {
		return Cost{}, err
	}
	defer os.RemoveAll(work)
	path := filepath.Join(work, "t.lance")
	if err := Copy(table, path); err != nil {
		return Cost{}, err
	}
	// What others wrote, and who made the table, is not for the contender to flush.
	syscall.Sync()
	cost, err := c.Run(ctx, path)
	if err != nil {
		return cost, err
	}
	cost.DataBytes, err = newDataBytes(table, path)
	return cost, err
}

// Copy copies a table. Its data files are linked, not copied: nothing ever writes
// into one again, and so both contenders read the same pages of the same cache.
func Copy(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, 0o755)
		case filepath.Dir(rel) == "data":
			return os.Link(path, target)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}

// newDataBytes is the size of the data files at path that were not there before.
func newDataBytes(before, path string) (int64, error) {
	files, err := os.ReadDir(filepath.Join(path, "data"))
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, f := range files {
		if _, err := os.Stat(filepath.Join(before, "data", f.Name())); err == nil {
			continue
		}
		info, err := f.Info()
		if err != nil {
			return 0, err
		}
		sum += info.Size()
	}
	return sum, nil
}

// DataBytes is the size of all data files of a table.
func DataBytes(path string) (int64, error) { return newDataBytes(filepath.Join(path, "nothing"), path) }

// Median returns, figure by figure, the median of some costs, which must not be
// empty.
func Median(costs []Cost) Cost {
	return Cost{
		Wall:             median(costs, func(c Cost) time.Duration { return c.Wall }),
		CPU:              median(costs, func(c Cost) time.Duration { return c.CPU }),
		PeakRSS:          median(costs, func(c Cost) int64 { return c.PeakRSS }),
		Written:          median(costs, func(c Cost) int64 { return c.Written }),
		DataBytes:        median(costs, func(c Cost) int64 { return c.DataBytes }),
		FragmentsRemoved: median(costs, func(c Cost) int { return c.FragmentsRemoved }),
		FragmentsAdded:   median(costs, func(c Cost) int { return c.FragmentsAdded }),
	}
}

func median[T ~int | ~int64](costs []Cost, of func(Cost) T) T {
	values := make([]T, len(costs))
	for i, c := range costs {
		values[i] = of(c)
	}
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}
