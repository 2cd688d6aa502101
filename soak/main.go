// Command soak executes a workload of every feature in several worker processes while it injects
// faults into them and into the database. It then checks the guarantees I1 to I12.
//
//	go run ./soak -seconds 60 -seed 1                  # four workers, a PostgreSQL with a standby of its own
//	go run ./soak -seconds 60 -seed 1 -store sqlite    # two workers on one file
//
// # Workload
//
// The parent process, the controller, starts runs whose inputs are plans (plan.go), drawn by the seed: steps of
// all kinds, transactions, timers, signals, tokens, maps, branches, choices, children,
// compensations, deadlines, and common mistakes (NaN, panics, changed code). At the same time
// several clients start, signal, pause, resume, cancel and read a few runs, and record each call
// with its times and its result (clients.go). Another client starts and signals these runs in
// transactions that it holds open for up to three seconds (open_transactions.go). More runs have steps with limits, also by key,
// while the bounds are changed (limit_changes.go), and
// a schedule starts a run each second (flow.go). Schedules with other overlap policies start runs that often take longer than the time
// to the next one, and are paused, triggered and backfilled (scheduled.go, schedule_load.go). Runs are started in queues whose settings
// several processes change, and which they pause, resume and delete (queued.go, queue_load.go). Starts with keys fold, also in steps and in transactions that stay open
// (folds.go, fold_load.go). Runs whose steps fail by chance are retried, corrected step by step and forked while they are executed and after
// they have ended; some retry themselves, and some continue as new (repaired.go). Runs with children, signals and places in a queue are
// deleted by clients, and by the retention of the workers, soon after their end (brief.go, aging.go). The workers have two versions of
// the code, which differ in one workflow, so that its runs are held and continued (revised.go).
//
// # Faults
//
// Workers are killed (SIGKILL) and stopped for longer than their leases (SIGSTOP). One more worker executes a run that
// kills its process each time. On PostgreSQL there are a primary and a synchronous standby (servers.go). The connections
// of all workers are terminated, the primary is stopped in immediate mode and started again, the standby is
// stopped and started again, and the standby is promoted after the primary was killed or frozen. The seed draws the
// order.
//
// # Checks
//
// Every process appends to the ledger, a file outside of the database (ledger.go): the
// functions that steps called, the values that durable calls returned, and what the workers claimed and wrote.
// After the given time the faults stop, and the controller waits until every run has ended. The checker then compares
// plans, ledger and database (check_*.go). Porcupine, a checker of linearizability, checks the clients'
// operations on each run (linear.go).
//
// The seed determines plans, operations and faults, but not how the processes interleave.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if job, ok := os.LookupEnv(jobVariable); ok {
		os.Exit(work(job))
	}
	s := settings{}
	flag.StringVar(&s.store, "store", "postgres", "postgres: four workers, and two servers that fail over; sqlite: two workers on one file")
	flag.IntVar(&s.seconds, "seconds", 60, "for how many seconds faults are injected")
	flag.Uint64Var(&s.seed, "seed", 1, "the seed of plans, operations and faults")
	flag.StringVar(&s.keep, "keep", "", "a folder that exists, into which the ledger is copied")
	flag.Parse()
	if err := s.check(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := soak(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

// settings holds the values of the flags.
type settings struct {
	store   string
	seconds int
	seed    uint64
	keep    string
}

func (s settings) check(rest []string) error {
	switch {
	case s.store != "postgres" && s.store != "sqlite":
		return fmt.Errorf("the store %q is unknown: use -store=postgres or -store=sqlite", s.store)
	case s.seconds < minSeconds:
		return fmt.Errorf("%d seconds are too few for a fault of each kind: use -seconds=%d or more", s.seconds, minSeconds)
	case len(rest) > 0:
		return fmt.Errorf("unexpected arguments %q: see -help", rest)
	case s.keep != "": // the ledger is copied at the end: a folder that is missing must not cost the run
		if at, err := os.Stat(s.keep); err != nil || !at.IsDir() {
			return fmt.Errorf("-keep=%s is no folder: create it", s.keep)
		}
	}
	return nil
}

// minSeconds is the shortest time in which each kind of fault occurs once.
const minSeconds = 20

// finishTimeout is how long the runs may take to end after the last fault.
const finishTimeout = 90 * time.Second

// soak is the main function of the parent process.
func soak(ctx context.Context, set settings) (err error) {
	place, err := provide(ctx, set)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.remove()) }()
	book, err := place.ledger()
	if err != nil {
		return err
	}
	defer book.close()
	controller, err := newController(ctx, place, book)
	if err != nil {
		return err
	}
	defer controller.close()

	count := 4
	if set.store == "sqlite" {
		count = 2
	}
	begun := time.Now()
	whole := time.Duration(set.seconds) * time.Second
	queues := queueTimes{Lowered: begun.Add(whole / 4), End: begun.Add(whole)}
	workers := newWorkers(place, count, queues)
	defer workers.end()
	if err := workers.startMissing(); err != nil {
		return err
	}
	load := newLoad(controller, set.seed)
	clients := newClients(controller, set.seed)
	faults := newFaults(place, workers, set.seed)

	underFaults, over := context.WithTimeout(ctx, whole)
	defer over()
	started := load.begin(underFaults)
	flow := newFlow(controller)
	limited, err := flow.begin(underFaults)
	if err != nil {
		return err
	}
	queueLoad, folds := newQueueLoad(controller, set.seed, queues), newFoldLoad(controller, set.seed)
	queued, err := queueLoad.begin(underFaults)
	if err != nil {
		return err
	}
	folded := folds.begin(underFaults)
	repairs := newRepairLoad(controller, set.seed)
	repaired := repairs.begin(underFaults)
	schedules := newScheduleLoad(controller, set.seed)
	scheduled, err := schedules.begin(underFaults)
	if err != nil {
		return err
	}
	briefs := newBriefLoad(controller, set.seed)
	deleted, err := briefs.begin(underFaults)
	if err != nil {
		return err
	}
	revisions := newRevisedLoad(controller)
	held := revisions.begin(underFaults)
	operated := clients.begin(underFaults)
	if err := faults.injectFaults(underFaults); err != nil {
		return fmt.Errorf("inject a fault: %w", err)
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	settling, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	started()
	limited()
	queued()
	folded()
	repaired()
	scheduled()
	deleted()
	held()
	if err := operated(); err != nil {
		return err
	}
	stuck := errors.Join(load.finish(settling), flow.finish(settling), queueLoad.finish(settling), folds.finish(settling), repairs.finish(settling), schedules.finish(settling), briefs.finish(settling), revisions.finish(settling), clients.finish(settling), faults.killer.finish(settling, controller))
	failed := workers.stop()

	report, err := check(ctx, controller, load, clients, queueLoad, repairs, schedules, briefs, revisions, faults, errors.Join(stuck, failed))
	if err != nil {
		return err
	}
	if set.keep != "" {
		if err := book.keep(set.keep); err != nil {
			return err
		}
	}
	return report.print(set)
}
