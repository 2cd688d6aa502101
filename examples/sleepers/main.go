// Command sleepers shows what a sleeping run costs: some space in the database, and no memory.
//
// It starts 100,000 runs of a workflow that does one durable sleep. Each run records its sleep and is
// unloaded from memory. The command measures how much the process and the database have grown. 2,000
// of the runs wake up within five seconds, while the others sleep for an hour. The command also
// measures how late these runs continue, by the database's clock. The last line for a store shows the
// figures:
//
//	sleepers: store=S runs=N started_per_s=N rss_per_run_b=N db_per_run_b=N late_p50_ms=N late_p99_ms=N
//
// The rate covers the time from the first start until all runs sleep. If a sleeping run costs more than
// 100 bytes of memory, or a due run does not continue, the command prints the reason and exits with a
// status that is not zero.
//
//	go run ./examples/sleepers                  # SQLite, nothing to install
//	go run ./examples/sleepers -store=postgres  # DATABASE_URL, or a throwaway server
//	go run ./examples/sleepers -store=all       # one after the other
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"time"
)

// patience limits the duration of one store's trial. A trial that takes longer has failed.
const patience = 5 * time.Minute

func main() {
	var (
		store = flag.String("store", "sqlite", "sqlite, postgres, or all")
		runs  = flag.Int("runs", 100_000, "how many runs sleep")
		due   = flag.Int("due", 2_000, "how many of them wake while the others sleep")
	)
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *store == "all" {
		err = errors.Join(measureInProcess(ctx, "sqlite", *runs, *due), measureInProcess(ctx, "postgres", *runs, *due))
	} else {
		ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %v", patience))
		err = sleepers(ctx, *store, *runs, *due)
		cancel()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sleepers: failed:", err)
		stop()
		os.Exit(1)
	}
}

// measureInProcess measures a store in a process of its own. Otherwise memory that one store leaves behind
// would be counted for the next store, or reused by it.
func measureInProcess(ctx context.Context, store string, runs, due int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-store="+store, "-runs="+strconv.Itoa(runs), "-due="+strconv.Itoa(due))
	// On a cancel, the process gets an interrupt instead of SIGKILL, so that it removes its
	// database.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", store, err)
	}
	return nil
}
