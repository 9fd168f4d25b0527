// Package report is what benchmark commands print and save: the command line, the
// machine and the day, and then whatever was measured. A result without these says
// nothing.
package report

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"
)

// Report collects text. It is not safe for concurrent use.
type Report struct{ b strings.Builder }

// New begins a report of a command of ./benchmarks that was given args.
func New(command string, args []string) *Report {
	r := &Report{}
	r.Printf("Command: %s\n", strings.TrimSpace("go run ./benchmarks/"+command+" "+strings.Join(args, " ")))
	r.Printf("Machine: %d cores, %s, %s/%s, %s\n", runtime.NumCPU(), memory(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	r.Printf("Date: %s\n\n", time.Now().UTC().Format("2006-01-02"))
	return r
}

// Printf adds text.
func (r *Report) Printf(format string, args ...any) { fmt.Fprintf(&r.b, format, args...) }

// Write adds text; it never fails.
func (r *Report) Write(b []byte) (int, error) { return r.b.Write(b) }

// Table adds rows of cells that are separated by tabs, in columns.
func (r *Report) Table(rows ...string) {
	w := tabwriter.NewWriter(&r.b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, row)
	}
	_ = w.Flush() // into memory
}

// String returns the text.
func (r *Report) String() string { return r.b.String() }

// Save writes the text to a file NAME.txt in dir.
func (r *Report) Save(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name+".txt"), []byte(r.String()), 0o644)
}

// memory says how much memory the machine has.
func memory() string {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return "memory unknown"
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kb int64
		if _, err := fmt.Sscanf(s.Text(), "MemTotal: %d kB", &kb); err == nil {
			return fmt.Sprintf("%.0f GiB of memory", float64(kb)/(1<<20))
		}
	}
	return "memory unknown"
}
