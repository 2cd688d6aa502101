// Command soak executes a workload of every feature in several worker processes, does
// faults to them and to the database all the while, and then looks whether the library has
// kept its guarantees, I1 to I12.
//
//	go run ./soak -seconds 60 -seed 1                  # four workers, a PostgreSQL of its own
//	go run ./soak -seconds 60 -seed 1 -store sqlite    # two workers on one file
//
// # What happens
//
// The parent starts runs whose inputs are plans (see plan.go), drawn by the seed: steps of
// all kinds, transactions, timers, signals, tokens, maps, branches, choices, children,
// compensations, deadlines, and what a careless user does (NaN, panics, changed code). Beside
// them, several clients start, signal, pause, resume, cancel and look at a few runs at the
// same time, and write down when they asked and what they were answered.
//
// Workers are killed (SIGKILL), stopped for longer than their leases (SIGSTOP), their
// connections are terminated, and the server is stopped in immediate mode and started again, in an
// order drawn by the seed. One more worker executes a run that kills its process each time.
//
// What steps did, what workflows were answered, and what the workers claimed and wrote,
// is in a ledger: a file outside of the database to which every process appends (see ledger.go). When
// the time is over the faults stop, everything is let end, and the checker compares plans, ledger and
// database (check_*.go). The clients' operations are given to porcupine, a checker of
// linearizability, for each run by itself (linear.go).
//
// The seed draws plans, operations and faults; how processes interleave it cannot draw.
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
	flag.StringVar(&s.store, "store", "postgres", "postgres: four workers and a server that is stopped; sqlite: two workers on one file")
	flag.IntVar(&s.seconds, "seconds", 60, "how long faults happen")
	flag.Uint64Var(&s.seed, "seed", 1, "draws plans, operations and faults")
	flag.StringVar(&s.keep, "keep", "", "a folder in which the ledger is left, to look at")
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

// settings are what the user chose.
type settings struct {
	store   string
	seconds int
	seed    uint64
	keep    string
}

func (s settings) check(rest []string) error {
	switch {
	case s.store != "postgres" && s.store != "sqlite":
		return fmt.Errorf("the store %q is not known: use -store=postgres or -store=sqlite", s.store)
	case s.seconds < minSeconds:
		return fmt.Errorf("%d seconds are too few for a fault of each kind: use -seconds=%d or more", s.seconds, minSeconds)
	case len(rest) > 0:
		return fmt.Errorf("%q is no flag: see -help", rest)
	}
	return nil
}

// minSeconds is the shortest time in which each kind of fault happens once.
const minSeconds = 10

// settle is how long everything may take to end once the faults have stopped.
const settle = 90 * time.Second

// soak is the parent process.
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
	boss, err := newBoss(ctx, place, book)
	if err != nil {
		return err
	}
	defer boss.close()

	workers := 4
	if set.store == "sqlite" {
		workers = 2
	}
	crew := newCrew(place, workers)
	defer crew.end()
	if err := crew.fill(); err != nil {
		return err
	}
	load := newLoad(boss, set.seed)
	talks := newTalks(boss, set.seed)
	strikes := newStrikes(place, crew, set.seed)

	storm, over := context.WithTimeout(ctx, time.Duration(set.seconds)*time.Second)
	defer over()
	began := load.begin(storm)
	talking := talks.begin(storm)
	if err := strikes.run(storm); err != nil {
		return fmt.Errorf("do a fault: %w", err)
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	calm, enough := context.WithTimeout(ctx, settle)
	defer enough()
	began()
	if err := talking(); err != nil {
		return err
	}
	stuck := errors.Join(load.settle(calm), talks.settle(calm), strikes.killer.settle(calm, boss))
	faults := crew.stop()

	report, err := check(ctx, boss, load, talks, strikes, errors.Join(stuck, faults))
	if err != nil {
		return err
	}
	if set.keep != "" {
		if err := book.keep(set.keep); err != nil {
			return err
		}
	}
	return report.tell(set)
}
