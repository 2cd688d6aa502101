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
//
// # Mode queues
//
// It measures flow control, in the parts that -part selects:
//
//	claimed     the claimed path of a queue without settings (free), and with settings that bound the runs (bound:
//	            more than are executed at once; full: as many), keys, rates and priorities; free_ratio compares
//	            each round with that of free, and free_cpu_ratio the processor time of all processes for a
//	            workflow: on a busy machine it says more
//	backlog     the dispatch of a run of another queue, and of an urgent run of the same queue, while -backlog due
//	            runs wait behind a bound, in turns with a database without them
//	permits     steps that need a permit of a limit, beside steps without one
//	schedules   an idle schedule, -schedules schedules that are due at once, and a Backfill of -backfill times, with
//	            the dispatch of other runs meanwhile (probe), and the lateness of a schedule that fires each second
//	registered  claims of a worker with -registers workflows and a tenth as many queues, beside one workflow
//
// # Mode idle
//
// It measures what -workers workers without work cost on one database, by the statistics of the server and of the system: transactions
// per second, connections and percent of a core, each divided by the number of workers. With the same workers it then measures the
// dispatch of -samples runs, and the takeover of the runs of -takeovers killed processes.
//
// # Mode fleet
//
// For each number of -engines it starts -fleet-runs runs of ten steps, and then that many engines in up to four processes, with 1,600
// slots in sum. wf_per_s is the rate of the middle eight tenths of the ends, best_ratio compares it with the best fleet. The dispatch
// is that to the idle fleet. The last line is the largest fleet, with -backlog further due runs behind those that it executes;
// time_ratio is its time divided by the time without them.
//
// # Mode live
//
// While -sleepers runs sleep, -waiting runs wait for a signal, and ten processes execute -executing runs that do not end, it measures
// the dispatch of -samples runs, the time from Signal until a run continues, how late runs continue after a sleep, and how long a
// pause, a resume and a cancel of a run with -children pending children take. blocked_max_ms is the longest start of another run
// meanwhile.
//
// # Mode ui
//
// It measures the dashboard: how long each list of -listed-runs runs takes that an index serves; the overview under -rate workflows per
// second with 20 watchers, and the throughput with and without them, in turns; and the transactions per second of 20 watchers of one run.
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
