// Command operations shows the dashboard on a shop that is never idle.
//
// It executes orders, a graph, schedules and limits on an SQLite file of its own, with what people of operations meet: runs that
// failed, wait for a signal, are paused, back off, expired or are held because the code no longer fits them. It writes the address of
// the dashboard, where all acts are permitted, and ends when it is interrupted:
//
//	go run ./examples/operations
//
// What to try: retry the run "order-declined" (the bank has changed its mind), send the signal "approve" to "refund-7" with the payload
// true, open "catalogue" with its 400 calls, and resume the queue "mail".
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durablecli"
	"github.com/seed8ec063be/durable/sqlite"
)

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "the loopback address and port of the dashboard; port 0: any that is free")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := operate(ctx, os.Stdout, *listen); err != nil {
		fmt.Fprintln(os.Stderr, "operations: failed:", err)
		stop()
		os.Exit(1)
	}
}

// operate executes the shop and serves its dashboard until ctx ends.
func operate(ctx context.Context, out io.Writer, listen string) (err error) {
	folder, err := os.MkdirTemp("", "durable-operations-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	store, err := sqlite.Open(filepath.Join(folder, "shop.db"), sqlite.Synchronous(sqlite.Normal))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	s := new(shop)
	if err := s.leaveOldRun(ctx, store); err != nil {
		return err
	}
	engine, err := durable.New(store, durable.Config{
		Workflows: s.workflows(), Name: "worker-1", Version: "v2", Concurrency: 32, Grace: 100 * time.Millisecond, ParkAfter: time.Second,
		QueueSettings: queues, Schedules: s.schedules(),
	})
	if err != nil {
		return err
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	parts := []func(context.Context) error{
		engine.Run,
		func(ctx context.Context) error { return s.trade(ctx, engine) },
		func(ctx context.Context) error {
			cmd := durablecli.Command(engine)
			cmd.SetArgs([]string{"ui", "--listen", listen})
			cmd.SetOut(out)
			return cmd.ExecuteContext(ctx)
		},
	}
	ended := make(chan error, len(parts))
	for _, part := range parts {
		go func() {
			err := part(ctx)
			end(err) // the first one that ends is the end of all
			ended <- err
		}()
	}
	for range parts {
		if partErr := <-ended; !errors.Is(partErr, context.Canceled) {
			err = errors.Join(err, partErr)
		}
	}
	return err
}
