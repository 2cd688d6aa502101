// Command bench measures durable: against what the database can do at most, and against
// the textbook's design, in one run on one machine, so that the ratios hold where the
// figures do not.
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
// ceiling_ratio is steps_per_s by the ceiling's in the same rounds. The latencies are those of a
// workflow of ten steps, for the ceiling of ten rows one after the other. xacts_per_wf counts all
// transactions of the database meanwhile (on SQLite: flushes, and at most as many claims as took something), and
// bytes_per_step what the table of checkpoints has grown by, index included. A figure that
// was not measured is "-".
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

// command is the whole program. It answers the exit code: 2 for a command line that
// cannot be, 1 for a benchmark that failed.
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
