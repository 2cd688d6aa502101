// Command deploy shows a rolling deployment under live orders, with a mistake in it.
//
// The program is built three times. The first release executes the orders. The second one inserts a step with Patched, and renames
// another step by mistake. Its preflight names the orders that it does not fit. It is deployed all the same, beside the first one:
// the first one takes the orders that the second one cannot continue, and after it has ended they are held. The third release says
// that the step was renamed, and continues them. Then failed orders are retried, one price is corrected, and one order is forked. A
// ledger outside of the database has every effect. The last line shows the result:
//
//	deploy: runs=300 diverged=… failed=0 charged_twice=0 held_left=0 retried=20 overridden=1 forked=1 seconds=…
//
// If a check fails, the command prints the reason and exits with a status that is not zero.
//
//	go run ./examples/deploy                  # SQLite, nothing to install
//	go run ./examples/deploy -store=postgres  # DATABASE_URL, or a throwaway server
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
const patience = 3 * time.Minute

func main() {
	var (
		store  = flag.String("store", "sqlite", "sqlite or postgres")
		runs   = flag.Int("runs", 300, "how many orders there are")
		role   = flag.String("role", "", "be a worker, or a preflight; the demo starts those itself")
		folder = flag.String("folder", "", "in a worker: the ledger's folder")
		schema = flag.String("schema", "", "in a worker: the schema of the tables in PostgreSQL")
	)
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %v", patience))
	defer cancel()
	var err error
	switch *role {
	case "worker":
		err = work(ctx, fleet.Inherited(*store, *schema), *folder)
	case "preflight":
		err = preflight(ctx, fleet.Inherited(*store, *schema), *folder)
	default:
		err = deploy(ctx, *store, *runs)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "deploy: %s failed: %v\n", release, err)
		cancel()
		stop()
		os.Exit(1)
	}
}
