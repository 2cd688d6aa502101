// Command graph shows a declared graph that survives kill -9.
//
// The graph lists packages of the source tree of Go, reads each in a child run on any worker, counts its lines in five ways of which
// any three suffice, and reports. It is executed twice by two worker processes: once undisturbed, and once while workers are killed from
// its first steps to its last ones, with -store=postgres also the server of the database, unless it is that of DATABASE_URL. The reports
// must be equal, and no step, of the graph or of a child, may be executed again after its checkpoint was committed. While it runs, a picture of the graph shows the state of each node. The last line shows the result:
//
//	graph: nodes=N edges=N mapped=N kills=N rerun=0 skipped=N equal=true seconds=S
//
// If a check fails, the command prints the reason and exits with a status that is not zero.
//
//	go run ./examples/graph                  # SQLite, nothing to install
//	go run ./examples/graph -store=postgres  # DATABASE_URL, or a throwaway server
//	go run ./examples/graph -draw            # the graph as Mermaid, as in README.md
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
		store    = flag.String("store", "sqlite", "sqlite or postgres")
		kills    = flag.Int("kills", 5, "how often a worker is killed")
		packages = flag.Int("packages", 300, "how many packages are read")
		draw     = flag.Bool("draw", false, "print the graph as Mermaid, and do nothing else")
		worker   = flag.Bool("worker", false, "be a worker process; the command starts those itself")
		ledger   = flag.String("ledger", "", "in a worker: the file to which its steps append")
		schema   = flag.String("schema", "", "in a worker: the schema of the tables in PostgreSQL")
	)
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case *draw:
		fmt.Print(define(nil).index.Shape().Mermaid())
	case *worker:
		err = work(ctx, fleet.Inherited(*store, *schema), *ledger)
	default:
		ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it took longer than %v", patience))
		err = compare(ctx, *store, *kills, *packages)
		cancel()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "graph: failed:", err)
		stop()
		os.Exit(1)
	}
}
