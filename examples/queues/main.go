// Command queues shows flow control: orders of many customers, in worker processes that are killed, and a
// payment provider that may get five requests at once and fifty a second.
//
// Each order is a durable run in the queue "orders", with its customer as the group key: one order per customer
// at a time, in the order of their starts. Half of all orders are of one customer, and some orders are urgent.
// Each order pays in a step that needs a permit of the limit "provider". The provider is an HTTP server in a
// process of its own, which counts the requests that reach it. A schedule ticks every second, and each run of it
// tells the provider its scheduled time and its own UUID. Meanwhile workers are killed with SIGKILL. The last line
// shows what the provider has counted:
//
//	queues: orders=N kills=K max_concurrent=5 max_per_second=R key_overlaps=0 charged_twice=0 … doubled=0 missed=0
//
// The workers' requests are counted by the second twice: when they are sent (max_sent_per_second), which the limit
// bounds, and when they arrive (max_per_second), which may be more by what arrives late. jitter_ms is the longest
// time between the two.
//
// If a check fails, the command prints the reason and exits with a status that is not zero.
//
//	go run ./examples/queues                  # SQLite, nothing to install
//	go run ./examples/queues -store=postgres  # DATABASE_URL, or a throwaway server
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
const patience = 90 * time.Second

func main() {
	var (
		store    = flag.String("store", "sqlite", "sqlite or postgres")
		orders   = flag.Int("orders", 1500, "how many orders are placed")
		workers  = flag.Int("workers", 3, "how many worker processes live at once")
		kills    = flag.Int("kills", 5, "how often a worker is killed")
		worker   = flag.String("worker", "", "be the worker process of this name; the command starts those itself")
		provider = flag.String("provider", "", "in a worker: the provider's URL; \"here\": be the provider")
		schema   = flag.String("schema", "", "in a worker: the schema of the tables in PostgreSQL")
	)
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *worker != "":
		err = work(ctx, fleet.Inherited(*store, *schema), *worker, *provider)
	case *provider != "":
		err = provide(ctx)
	default:
		ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %v", patience))
		err = shop(ctx, *store, *orders, *workers, *kills)
		cancel()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "queues: failed:", err)
		stop()
		os.Exit(1)
	}
}
