package main

import (
	"os"
	"runtime/debug"
	"strconv"
)

// roomy is the garbage collector's setting unless GOGC is set in the environment. A benchmark's
// process holds two megabytes; by Go's default of 100 it would collect them eighty times a
// second, which no process does that holds an application too.
const roomy = 400

// collect sets the collector of this process, and answers what it is set to. That is said with
// the figures, and is the same for durable and for what it is compared with.
func collect() string {
	if set := os.Getenv("GOGC"); set != "" {
		return set
	}
	debug.SetGCPercent(roomy)
	return strconv.Itoa(roomy)
}
