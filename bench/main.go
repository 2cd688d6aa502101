// Command bench measures durable. It compares durable with the maximal throughput of the database and
// with a naive design, in one run on one machine, because ratios depend less on the machine than
// absolute figures.
//
//	go run ./bench                              # about five minutes; make bench
//	go run ./bench -store sqlite -c 100         # less of it
//	go run ./bench -mode takeover,replay        # the other modes; -h lists them
//	go run ./bench -json bench.json && go run ./bench/plot -o bench.svg bench.json
//
// PostgreSQL is a throwaway server with the durability of a default installation (fsync,
// synchronous_commit and full_page_writes on), 1 GB of shared buffers and max_wal_size 8 GB,
// whose log has been in use (1 GB of it is written first); SQLite is a file in the temporary
// folder. Load and server share the processors. The collector's GOGC is 400, unless the
// environment says otherwise.
//
// # The default mode
//
// A workflow is ten steps that do nothing but return a struct of 60 bytes of JSON. For each
// number of callers the paths take turns, round after round, with a checkpoint of the
// database before each; the medians over the rounds are printed.
//
//	ceiling  one row for each step, in groups, and no engine: what the database can do
//	naive    a transaction held open around each step, a connection for each
//	local    started and executed in this process
//	claimed  started by another process, claimed and executed by this one
//
// Each prints a line:
//
//	bench: store=S path=P c=N wf_per_s=N steps_per_s=N ceiling_ratio=N p50_ms=N p99_ms=N xacts_per_wf=N bytes_per_step=N
//
// ceiling_ratio is steps_per_s divided by the ceiling's in the same rounds. The latencies are those of
// a workflow of ten steps; for the ceiling, of ten consecutive rows. xacts_per_wf counts all
// transactions of the database (on SQLite: flushes, and claims that claimed a run). bytes_per_step is
// the growth of the step table and its index, divided by the number of steps. "-" means not measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
)

func main() {
	if job := os.Getenv(jobVariable); job != "" {
		os.Exit(work(job))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is the program without its setup. It returns the exit code: 2 for an invalid command line, 1
// for a failed benchmark.
func command(ctx context.Context, args []string, out, complaints io.Writer) int {
	o, err := parse(args, complaints)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(complaints, "bench:", err)
		return 2
	}
	if o.profile != "" {
		file, err := os.Create(o.profile)
		if err != nil {
			fmt.Fprintln(complaints, "bench:", err)
			return 2
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			fmt.Fprintln(complaints, "bench:", err)
			return 1
		}
		defer pprof.StopCPUProfile()
	}
	if err := run(ctx, o, out); err != nil {
		fmt.Fprintln(complaints, "bench: failed:", err)
		return 1
	}
	return 0
}
