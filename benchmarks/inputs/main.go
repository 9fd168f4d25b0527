// Command inputs upserts files of rows that were damaged at random into tables, and
// checks that none of them does more than be refused:
//
//	go run ./benchmarks/inputs                 # 100,000 of them, some minutes
//	go run ./benchmarks/inputs -n 2000 -seed 7
//
// The files are Arrow IPC files and streams of columns of many types, plain and
// compressed, with dictionaries, and JSON lines. What an upsert takes must read back
// whole: `verify --deep` finds nothing. What it refuses must leave the table's files as
// they were, and must not be called damage of the table. A crash, of a library in a
// goroutine for example, ends the command. It prints what happened, with the most
// memory that the process had.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	n := flag.Int("n", 100000, "how many inputs")
	seed := flag.Uint64("seed", 1, "of the damage")
	flag.Parse()
	c, err := newCampaign(*seed)
	if err == nil {
		err = c.run(ctx, *n)
	}
	fmt.Println(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "inputs:", err)
		os.Exit(1)
	}
}
