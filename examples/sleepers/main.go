// Command sleepers shows what a run costs while it sleeps: a row and a bit of the
// database, and no memory.
//
// It starts 100,000 runs of a workflow that does one durable sleep, lets each of them
// execute, record its sleep and leave memory, and measures how much larger the process
// and the database have become. All of them sleep for an hour but for 2,000, whose
// sleeps end over five seconds while the others go on sleeping: how late they go on,
// by the database's clock, is measured too. The last line for a store says it:
//
//	sleepers: store=S runs=N started_per_s=N rss_per_run_b=N db_per_run_b=N late_p50_ms=N late_p99_ms=N
//
// The rate counts from the first start until all of them sleep. A sleeping run that costs
// more than 100 bytes of memory, or one that was due and did not go on, ends it with a
// status that is not zero, and the reason.
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

// patience bounds one store's trial: one that hangs has failed.
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
		err = errors.Join(alone(ctx, "sqlite", *runs, *due), alone(ctx, "postgres", *runs, *due))
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

// alone tries a store in a process of its own: what one of them has left in memory
// would be counted, or be of use, to the next.
func alone(ctx context.Context, store string, runs, due int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-store="+store, "-runs="+strconv.Itoa(runs), "-due="+strconv.Itoa(due))
	// An interrupt reaches the process by itself, and it has a database to remove.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", store, err)
	}
	return nil
}
