package faults

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/internal/testsize"
)

func init() {
	// cycles starts and stops an engine many times in a process where nothing else is.
	scenarios["cycles"] = func(ctx context.Context, j *job, s durable.Store) error {
		w := calm(j.Ledger)
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
		if err != nil {
			return err
		}
		executed := 0
		cycle := func(n int) error {
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- e.Run(ctx) }()
			if n%10 == 0 { // some of them do work
				v, err := w.Call(ctx, e, n, durable.ID(fmt.Sprint("r", n)))
				if err != nil || v != 4*n {
					return fmt.Errorf("run %d: %d, %w", n, v, err)
				}
				executed++
			}
			if n%3 == 0 { // some stop at once, some when they are up
				realtime.Pass(5*time.Millisecond, "some engines stop at once, some when they are up")
			}
			stop()
			return <-ended
		}
		if err := cycle(0); err != nil { // pools and caches fill
			return err
		}
		goroutines, files, calm := runtime.NumGoroutine(), openFiles(), goleak.IgnoreCurrent()
		for n := range j.Runs {
			if err := cycle(n + 1); err != nil {
				return err
			}
		}
		if err := goleak.Find(calm, goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgxpool.(*Pool).backgroundHealthCheck")); err != nil {
			return err
		}
		workers, err := e.Workers(ctx)
		if err != nil {
			return err
		}
		say("figures", j.Runs, executed, runtime.NumGoroutine()-goroutines, openFiles()-files, len(workers))
		return nil
	}
}

// openFiles counts this process's descriptors: files and connections.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(entries)
}

// Row 10: a thousand starts and stops of an engine leave no goroutine, no connection, no
// descriptor and no worker in the registry behind.
func TestRow10_ThousandStartsAndStops(t *testing.T) {
	onBothAlone(t, func(t *testing.T, db database) {
		cycles := testsize.Of(1000, 150)
		p := spawn(t, job{Scenario: "cycles", DB: db, Ledger: newLedger(t), Runs: cycles})
		began := time.Now()
		figures := p.expect("figures")
		took := time.Since(began)
		p.mustEndWell()
		var n, executed, goroutines, files, workers int
		if _, err := fmt.Sscan(figures, &n, &executed, &goroutines, &files, &workers); err != nil {
			t.Fatal(figures, err)
		}
		// The database pool may have opened a connection or two more, within its bound.
		if n != cycles || goroutines > 12 || files > 6 || workers != 0 {
			t.Errorf("goroutines %+d, descriptors %+d, workers %d", goroutines, files, workers)
		}
		t.Logf("cycles=%d runs=%d goroutines=%+d descriptors=%+d registered=%d seconds=%.1f", n, executed, goroutines, files, workers, took.Seconds())
	})
}
