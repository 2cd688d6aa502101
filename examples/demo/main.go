// Command demo shows a run that survives kill -9.
//
// It indexes every package in the source tree of Go (GOROOT/src) in one durable run, with a step for
// each package. It does this twice: once undisturbed, and once in a worker process that is killed five
// times at random moments and started again. The two results must be equal, and no step may be
// executed again after its checkpoint was committed. The last line shows the result:
//
//	demo: steps=N kills=5 reexecuted=0 equal=true seconds=S
//
// If a check fails, the command prints the reason and exits with a status that is not zero.
//
//	go run ./examples/demo                  # SQLite, nothing to install
//	go run ./examples/demo -store=postgres  # DATABASE_URL, or a throwaway server
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

// patience limits the duration of the command.
const patience = 5 * time.Minute

func main() {
	var (
		store  = flag.String("store", "sqlite", "sqlite or postgres")
		kills  = flag.Int("kills", 5, "how often the worker is killed")
		worker = flag.Bool("worker", false, "be the worker process; the demo starts those itself")
		ledger = flag.String("ledger", "", "in a worker: the file to which its steps append")
		schema = flag.String("schema", "", "in a worker: the schema of the tables in PostgreSQL")
	)
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *worker {
		err = work(ctx, fleet.Inherited(*store, *schema), *ledger)
	} else {
		ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %v", patience))
		err = demo(ctx, *store, *kills)
		cancel()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo: failed:", err)
		stop()
		os.Exit(1)
	}
}
