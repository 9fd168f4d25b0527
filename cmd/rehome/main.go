// Command rehome compacts Lance tables. The commands are in package cli; this
// file only ties them to the process.
package main

import (
	"context"
	"os"
	"runtime/debug"
	// Timestamps with a zone are shown in it also where the system has no zone
	// database.
	_ "time/tzdata"

	"github.com/rehome-db/rehome/cli"
)

func main() { os.Exit(run()) }

func run() int {
	if os.Getenv("GOGC") == "" {
		// What a command holds is few large buffers that it uses again and again, so
		// that there is little to collect; waiting until as much again has gathered
		// would save no time and cost memory.
		debug.SetGCPercent(50)
	}
	// The first Ctrl-C cancels: the command cleans up what it wrote and the table
	// stays as it was. So does every other way in which a process is asked to stop.
	ctx, stop := cli.NotifyContext(context.Background())
	defer stop()
	return cli.Run(ctx, cli.Options{}, os.Args[1:])
}
