package main

import (
	"os"
	"runtime/debug"
	"strconv"
)

// defaultGOGC is the value of GOGC unless the environment sets it. The heap of a benchmark's process has two
// megabytes. With Go's default of 100, it would be collected eighty times a second, which does not
// happen in a process with an application.
const defaultGOGC = 400

// collect sets GOGC for this process and returns the value, which the report contains. It is the same
// for durable and for the designs that durable is compared with.
func collect() string {
	if set := os.Getenv("GOGC"); set != "" {
		return set
	}
	debug.SetGCPercent(defaultGOGC)
	return strconv.Itoa(defaultGOGC)
}
