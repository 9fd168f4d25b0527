package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// process is a driver that answers JSON lines. Requests are answered one at a
// time, in order.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	// lines yields the replies and is closed when the driver's output ends.
	lines chan []byte
	log   *tail
}

func startProcess(name string, argv []string) (*process, error) {
	p := &process{
		name: name,
		// The process outlives the context of the call that started it: it is
		// ended by close or kill.
		cmd:   exec.Command(argv[0], argv[1:]...),
		lines: make(chan []byte),
		log:   &tail{limit: 4096},
	}
	p.cmd.Stderr = p.log
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("interop: start %s: %w", name, err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("interop: start %s: %w", name, err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("interop: start %s: %w", name, err)
	}
	go func() {
		defer close(p.lines)
		r := bufio.NewReaderSize(stdout, 1<<20)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			p.lines <- line
		}
	}()
	return p, nil
}

// errDriverGone marks a call after which the process cannot be used any more.
var errDriverGone = errors.New("driver process ended")

// call sends one request and waits for its reply. When the context ends first,
// the process is in an unknown state and is killed.
func (p *process) call(ctx context.Context, request, reply any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("interop: encode request for %s: %w", p.name, err)
	}
	if _, err := p.stdin.Write(append(line, '\n')); err != nil {
		p.kill()
		return fmt.Errorf("interop: %s: %w: %w: %s", p.name, errDriverGone, err, p.log)
	}
	select {
	case answer, ok := <-p.lines:
		if !ok {
			p.kill()
			return fmt.Errorf("interop: %s: %w: %s", p.name, errDriverGone, p.log)
		}
		var failed struct {
			Error string `json:"error"`
		}
		if err := json.Unmarshal(answer, &failed); err != nil {
			p.kill()
			return fmt.Errorf("interop: %s: %w: reply is no JSON: %w", p.name, errDriverGone, err)
		}
		if failed.Error != "" {
			return &EngineError{Engine: p.name, Message: failed.Error}
		}
		if reply == nil {
			return nil
		}
		if err := json.Unmarshal(answer, reply); err != nil {
			return fmt.Errorf("interop: decode reply of %s: %w", p.name, err)
		}
		return nil
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("interop: %s: %w: no answer in time: %w: %s", p.name, errDriverGone, ctx.Err(), p.log)
	}
}

// close lets the driver end by itself.
func (p *process) close() error {
	_ = p.stdin.Close()
	for range p.lines { // until its output ends
	}
	return p.cmd.Wait()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.close()
}

// tail keeps the end of what is written to it: enough of a driver's log to say
// why it died.
type tail struct {
	mu    sync.Mutex
	limit int
	buf   []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.limit; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.buf) == 0 {
		return "it logged nothing"
	}
	return "log ends: " + string(bytes.TrimSpace(t.buf))
}
