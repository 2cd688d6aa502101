// Command saga shows an order checkout with compensations, in worker processes that are killed at every
// stage of it.
//
// Each order is a durable run: it charges a card, reserves the goods, waits for the approval of a
// human, and ships. If the human refuses, or the customer cancels the order, its compensations are
// executed. The shop is an HTTP server whose ledger is outside the database. It is slow and sometimes
// fails. It holds a request while the worker that sent it is killed with SIGKILL, either before the
// request takes effect or after, so that only the response is lost. Meanwhile orders are paused,
// resumed and cancelled. The last line shows the result of the ledger:
//
//	saga: orders=N approved=A refused=R kills=K charges_doubled=0 refunds_missing=0 stuck=0
//
// If a check fails, the command prints the reason and exits with a status that is not zero.
//
//	go run ./examples/saga                  # SQLite, nothing to install
//	go run ./examples/saga -store=postgres  # DATABASE_URL, or a throwaway server
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

// patience limits the duration of the command.
const patience = 2 * time.Minute

func main() {
	var (
		store   = flag.String("store", "sqlite", "sqlite or postgres")
		orders  = flag.Int("orders", 40, "how many orders are placed")
		workers = flag.Int("workers", 2, "how many worker processes live at once")
		seed    = flag.Uint64("seed", 0, "of all chances that are taken; zero: another one each time")
		worker  = flag.String("worker", "", "be the worker process of this name; the saga starts those itself")
		shop    = flag.String("shop", "", "in a worker: the shop's URL")
		schema  = flag.String("schema", "", "in a worker: the schema of the tables in PostgreSQL")
	)
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if *worker != "" {
		err = work(ctx, fleet.Inherited(*store, *schema), client{url: *shop, worker: *worker})
	} else {
		for *seed == 0 {
			*seed = rand.Uint64()
		}
		ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %v", patience))
		err = saga(ctx, *store, *orders, *workers, *seed)
		cancel()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "saga: failed:", err)
		stop()
		os.Exit(1)
	}
}
