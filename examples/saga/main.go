// Command saga shows an order checkout that undoes itself, in worker processes that are
// killed at every stage of it.
//
// Each order is a durable run: it charges a card, reserves the goods, asks a human, and
// ships if the human says yes. If not, or if the customer withdraws, what was done is
// undone. The shop that takes these requests is an HTTP server whose books are outside the
// database. It is slow, it fails now and then, and it holds a request while the worker that
// sent it gets signal 9: before the request takes effect, or after, so that only the
// answer is lost. Meanwhile orders are paused, resumed and cancelled. The last line says
// what the books show:
//
//	saga: orders=N approved=A refused=R kills=K charges_doubled=0 refunds_missing=0 stuck=0
//
// Anything that is not as it should be ends with a status that is not zero, and the reason.
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
)

// patience bounds the whole command: a saga that hangs has failed.
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
		where := place{Store: *store, Address: os.Getenv(addressVariable), Schema: *schema}
		err = work(ctx, where, client{url: *shop, worker: *worker})
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
