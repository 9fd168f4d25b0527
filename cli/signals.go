package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// errOutputClosed is the cause of a context that ended because nobody reads what the
// command prints.
var errOutputClosed = errors.New("nobody reads the output any more")

// NotifyContext returns a context that ends when the process is asked to stop, so that
// a command cleans up what it wrote: by Ctrl-C, SIGTERM, SIGHUP (the terminal went
// away), or a broken pipe at standard output or standard error. A signal that the
// process was started to ignore (nohup) stays ignored. A second Ctrl-C or SIGTERM kills.
// stop gives the signals back; call it when the command is done.
func NotifyContext(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	asked := make(chan os.Signal, 4)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(asked, s)
		}
	}
	// With this a write to a broken pipe is an error and does not kill. It comes of
	// connections too, which are their users' business.
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	stopped, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case s := <-asked:
				cancel(context.Canceled)
				if s != syscall.SIGHUP { // which may come twice: of the shell and of the system
					signal.Reset(os.Interrupt, syscall.SIGTERM)
				}
			case <-pipes:
				if pipeBroken(os.Stdout) || pipeBroken(os.Stderr) {
					cancel(errOutputClosed)
				}
			case <-stopped:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(asked)
		signal.Stop(pipes)
		close(stopped)
		<-ended
		cancel(context.Canceled)
	}
}
