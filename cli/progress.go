package cli

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/rehome-db/rehome/dml"
)

// progress shows how far a long step is: as a bar on a terminal, as a line now
// and then elsewhere (a log file, a service manager). Nothing is shown of work
// that is over at once. Its methods are safe for concurrent use; a nil progress
// shows nothing.
type progress struct {
	label string
	unit  func(uint64) string
	total uint64

	mu   sync.Mutex
	done uint64

	// On a terminal.
	container *mpb.Progress
	bar       *mpb.Bar

	// Elsewhere.
	w    io.Writer
	now  func() time.Time
	next time.Time
}

const noProgressUsage = "show no progress on standard error"

const (
	firstLine = 2 * time.Second
	nextLine  = 10 * time.Second
)

// startProgress starts showing a step that ends at total, counted in what unit
// prints. It shows on standard error.
func (a *app) startProgress(label string, total uint64, unit func(uint64) string, enabled bool) *progress {
	if !enabled || total == 0 {
		return nil
	}
	p := &progress{label: label, unit: unit, total: total, w: a.Stderr, now: time.Now}
	p.next = p.now().Add(firstLine)
	if f, ok := a.Stderr.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.container = mpb.New(mpb.WithOutput(f), mpb.WithWidth(40))
		p.bar = p.container.AddBar(int64(total), mpb.BarRemoveOnComplete(),
			mpb.PrependDecorators(decor.Name(label+" ")),
			mpb.AppendDecorators(decor.Percentage(), decor.Any(func(s decor.Statistics) string {
				return fmt.Sprintf("  %s of %s", unit(uint64(s.Current)), unit(uint64(s.Total)))
			})),
		)
	}
	return p
}

// add moves the progress on.
func (p *progress) add(n uint64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show(p.done + n)
}

// set moves the progress to done.
func (p *progress) set(done uint64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.show(done)
}

// show is called with p.mu held. Sizes are estimates, so done may pass total.
func (p *progress) show(done uint64) {
	p.done = min(done, p.total)
	if p.bar != nil {
		// One short of the end: only finish completes and so removes the bar.
		p.bar.SetCurrent(int64(min(p.done, p.total-1)))
		return
	}
	now := p.now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(nextLine)
	fmt.Fprintf(p.w, "%s: %s of %s (%s)\n", p.label, p.unit(p.done), p.unit(p.total), percent(p.done, p.total))
}

// finish removes the bar, and returns when nothing more will be written.
func (p *progress) finish() {
	if p == nil || p.container == nil {
		return
	}
	p.bar.Abort(true)
	p.container.Wait()
}

// steps shows the steps of a change of rows, one after the other. Its methods are safe
// for concurrent use.
type steps struct {
	app     *app
	enabled bool

	mu   sync.Mutex
	step dml.Step
	seen uint64
	bar  *progress
}

func (a *app) steps(enabled bool) *steps { return &steps{app: a, enabled: enabled} }

// events are those that move the steps on.
func (s *steps) events() dml.Events {
	return dml.Events{
		// Another attempt begins again.
		ComputeBegin: func(dml.ComputeInfo) { s.finish() },
		Progress:     s.show,
	}
}

func (s *steps) show(i dml.ProgressInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bar == nil || s.step != i.Step {
		s.bar.finish()
		s.bar, s.step, s.seen = s.app.startProgress(i.Step.String(), i.Total, func(n uint64) string { return plural(n, "row") }, s.enabled), i.Step, 0
	}
	// Threads may come in another order than their numbers.
	s.seen = max(s.seen, i.Rows)
	s.bar.set(s.seen)
}

// finish ends the step that is shown.
func (s *steps) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bar.finish()
	s.bar = nil
}
