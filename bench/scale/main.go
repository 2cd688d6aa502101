// Command scale prints what bounds fleets of workers on several PostgreSQL servers, from costs that were measured on one machine with
// two cores (docs/performance.md). It computes; it does not start anything.
//
//	go run ./bench/scale
package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// The measured costs.
const (
	idleConnections  = 2.06     // of a worker to each server whose runs it executes
	busyConnections  = 10.0     // likewise, at most, while it executes runs: six of the engine, three for renewals, one that listens
	idleTransactions = 1.94     // per second, likewise
	idleServerTime   = 200e-6   // seconds of the server's processors for such a transaction
	serverShare      = 0.5      // of the processor time of a workflow that the server takes
	logBytes         = 4_500.0  // of the server's log for a workflow of ten steps
	day              = 86_400.0 // seconds
)

// point is a measured fleet: how many slots each engine had, and the processor time of a workflow of ten steps in process and server.
type point struct{ slots, seconds float64 }

// The one with 400 slots is of before engines of one process shared a journal.
var measured = []point{{25, 572e-6}, {100, 387e-6}, {400, 285e-6}, {1600, 246e-6}}

// timeOf returns the processor time of a workflow with that many slots for each engine, between the measured points.
func timeOf(slots float64) float64 {
	first, last := measured[0], measured[len(measured)-1]
	switch {
	case slots <= first.slots:
		return first.seconds
	case slots >= last.slots:
		return last.seconds
	}
	for i := 1; ; i++ {
		if a, b := measured[i-1], measured[i]; slots <= b.slots {
			return a.seconds + (b.seconds-a.seconds)*(slots-a.slots)/(b.slots-a.slots)
		}
	}
}

// fleet is what is computed: groups are servers, each with a database of its own.
type fleet struct {
	groups, workers int
	spread          bool    // each worker executes the runs of all groups; otherwise of one
	slots           float64 // of each worker, divided among its groups
	cores           float64 // of each server
	workerCores     float64 // of each worker
	connections     float64 // max_connections of each server
	disk            float64 // bytes of log that each server writes per second
}

// result is what a fleet can do.
type result struct {
	connections float64 // of idle workers to each server
	busy        float64 // connections of workers to each server if all of them are busy
	idle        float64 // transactions per second of idle workers on each server
	workflows   float64 // per second, of all groups
	bound       string  // what bounds them
}

// compute returns what a fleet can do, and what bounds it: the first resource that is used up. If all workers together want more
// connections than there are, they share those, and something else bounds what the workers do that have some.
func (f fleet) compute() result {
	perGroup, groupsOfWorker := float64(f.workers)/float64(f.groups), 1.0
	if f.spread {
		perGroup, groupsOfWorker = float64(f.workers), float64(f.groups)
	}
	r := result{connections: perGroup * idleConnections, busy: perGroup * busyConnections, idle: perGroup * idleTransactions}
	if r.connections > f.connections {
		r.bound = "connections"
		return r
	}
	// As many workers are busy at once as have connections while the others are idle.
	busyWorkers := min(perGroup, (f.connections-r.connections)/(busyConnections-idleConnections))
	each := timeOf(f.slots / groupsOfWorker)
	server := max(0, f.cores-r.idle*idleServerTime) / (each * serverShare) * float64(f.groups)
	disk := f.disk / logBytes * float64(f.groups)
	worker := f.workerCores / (each * (1 - serverShare)) * busyWorkers * float64(f.groups) / groupsOfWorker
	r.workflows, r.bound = server, "the servers' processors"
	if disk < r.workflows {
		r.workflows, r.bound = disk, "the servers' disks"
	}
	if worker < r.workflows {
		r.workflows, r.bound = worker, "the workers' processors"
	}
	if busyWorkers < perGroup {
		r.bound = "connections, then " + r.bound
	}
	return r
}

// fleets are the rows of the table. A server has 16 cores, max_connections of 500 and a disk for 250 MB of log per second, and a worker two cores and 400 slots.
var fleets = []fleet{
	{groups: 1, workers: 10},
	{groups: 1, workers: 100},
	{groups: 1, workers: 1_000},
	{groups: 10, workers: 100},
	{groups: 10, workers: 100, spread: true},
	{groups: 10, workers: 1_000},
	{groups: 100, workers: 1_000},
	{groups: 100, workers: 10_000},
	{groups: 100, workers: 200, spread: true},
	{groups: 100, workers: 10_000, spread: true},
}

func main() {
	if err := print(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "groups\tworkers\teach executes\tidle connections/server\tbusy\tidle transactions/s/server\tworkflows/s\tmillion/day\tbound by\t")
	for _, f := range fleets {
		f.slots, f.cores, f.workerCores, f.connections, f.disk = 400, 16, 2, 500, 250e6
		r := f.compute()
		executes := "one group"
		if f.spread {
			executes = "all groups"
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t\n", f.groups, f.workers, executes, r.connections, r.busy, r.idle, r.workflows, r.workflows*day/1e6, r.bound)
	}
	return w.Flush()
}
