package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// residentMemory returns how much memory this process holds, in bytes, after it has released unused
// memory.
func residentMemory() (int64, error) {
	runtime.GC() // FreeOSMemory collects garbage too: the second collection frees what pools released in the first
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("measure the memory of the process, which only Linux tells: %w", err)
	}
	var all, pages int64
	if _, err := fmt.Sscan(string(text), &all, &pages); err != nil {
		return 0, fmt.Errorf("read /proc/self/statm: %w", err)
	}
	return pages * int64(os.Getpagesize()), nil
}
