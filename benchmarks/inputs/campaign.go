package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/rehome-db/rehome/cli"
	"github.com/rehome-db/rehome/lance"
	"github.com/rehome-db/rehome/lance/store"
	"github.com/rehome-db/rehome/table"
)

// deepEvery is how many of the tables that took an input are verified: one of so many.
const deepEvery = 4

// maxMemory is what the process may take from the system.
const maxMemory = 512 << 20

// campaign is a run of many inputs, and what became of them.
type campaign struct {
	rng    *rand.Rand
	seeds  []seed
	table  *store.Mem // as it is before each
	file   string     // where the input lies
	inputs int
	codes  map[int]int
	// recovered is how many inputs made a library panic.
	recovered int
	peak      uint64
}

func newCampaign(number uint64) (*campaign, error) {
	c := &campaign{rng: rand.New(rand.NewPCG(number, 0)), codes: map[int]int{}}
	var err error
	if c.seeds, err = makeSeeds(); err != nil {
		return c, err
	}
	c.table = store.NewMem()
	e, err := lance.CreateStore(context.Background(), c.table, columns, lance.CreateOptions{}, lance.Options{})
	if err != nil {
		return c, err
	}
	if err := e.Close(); err != nil {
		return c, err
	}
	code, out := c.command(context.Background(), c.table, rows, "upsert", "t", "-", "--on", "id")
	if code != 0 {
		return c, fmt.Errorf("the table cannot be made: %s", out)
	}
	return c, nil
}

// command runs a command on a table in memory.
func (c *campaign) command(ctx context.Context, m *store.Mem, stdin string, args ...string) (int, string) {
	var out bytes.Buffer
	code := cli.Run(ctx, cli.Options{
		Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &out,
		Open: func(ctx context.Context, _ string) (table.Engine, error) {
			return lance.OpenStore(ctx, m, lance.Options{})
		},
	}, append(args, "--json"))
	return code, out.String()
}

func (c *campaign) run(ctx context.Context, n int) error {
	dir, err := os.MkdirTemp("", "inputs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c.file = filepath.Join(dir, "rows")
	for range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.one(ctx); err != nil {
			return err
		}
	}
	return nil
}

// one damages a file and upserts it.
func (c *campaign) one(ctx context.Context) error {
	s := c.seeds[c.rng.IntN(len(c.seeds))]
	input := damage(c.rng, s.bytes)
	c.inputs++
	if err := os.WriteFile(c.file, input, 0o600); err != nil {
		return err
	}
	failed := func(format string, args ...any) error {
		kept := filepath.Join(os.TempDir(), fmt.Sprintf("input-%s-%d", s.name, c.inputs))
		return fmt.Errorf("input %d, of %s, kept as %s: %s (%v)", c.inputs, s.name, kept, fmt.Sprintf(format, args...), os.WriteFile(kept, input, 0o600))
	}
	m := c.table.Clone()
	before := m.Names()
	from, stdin := c.file, ""
	if s.stream && c.rng.IntN(2) == 0 {
		from, stdin = "-", string(input)
	}
	code, out := c.command(ctx, m, stdin, "upsert", "t", from, "--on", "id")
	c.codes[code]++
	c.recovered += strings.Count(out, "internal error")
	switch {
	case !json.Valid([]byte(out)):
		return failed("no document: %s", out)
	case code == cli.ExitDone:
		if c.codes[code]%deepEvery != 0 {
			break
		}
		if code, out := c.command(ctx, m, "", "verify", "t", "--deep"); code != cli.ExitDone {
			return failed("verify: exit %d: %s", code, out)
		}
	case code != cli.ExitFailed && code != cli.ExitUsage:
		return failed("exit %d: %s", code, out)
	case !slices.Equal(before, m.Names()):
		return failed("files are left behind: %s", out)
	}
	var mem runtime.MemStats
	if c.inputs%64 == 0 {
		runtime.ReadMemStats(&mem)
		c.peak = max(c.peak, mem.Sys)
	}
	if c.peak > maxMemory {
		return failed("the process has %d MB", c.peak>>20)
	}
	return nil
}

// String says what happened.
func (c *campaign) String() string {
	return fmt.Sprintf("%d inputs: %d taken, %d refused (exit 1), %d bad usage (exit 2), of which %d stopped a panic of a library; at most %d MB",
		c.inputs, c.codes[cli.ExitDone], c.codes[cli.ExitFailed], c.codes[cli.ExitUsage], c.recovered, c.peak>>20)
}
