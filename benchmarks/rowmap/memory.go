package rowmap

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// heap returns the bytes in use on the heap, after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// startPeak forgets the most memory that the process ever had and returns a
// function that says by how much it has grown at most since. It works on Linux;
// elsewhere the answer is 0.
func startPeak() func() uint64 {
	debug.FreeOSMemory()
	if os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) != nil {
		return func() uint64 { return 0 }
	}
	before := status("VmRSS:")
	return func() uint64 {
		after := status("VmHWM:")
		return after - min(before, after)
	}
}

// status reads a size out of what the kernel knows about the process.
func status(name string) uint64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		var kb uint64
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			if _, err := fmt.Sscanf(string(rest), "%d kB", &kb); err == nil {
				return kb << 10
			}
		}
	}
	return 0
}
