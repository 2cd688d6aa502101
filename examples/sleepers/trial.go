package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

const (
	// warm is the number of runs that sleep before the measurement begins. Then the pools, the
	// caches, and the stacks of runs that are in memory together have their largest size.
	warm = 5 * awake
	// awake is the number of runs that are in memory at the same time, from their start until they
	// are unloaded. Each of them waits for three commits, and for the few milliseconds after which
	// a run that only waits is unloaded. With fewer runs, the database would wait for the runs.
	awake = 1024
	// batch is the number of runs that one StartMany starts: about as many as the journal writes at
	// once.
	batch = 500
	// night is the sleep of the runs that must not wake up. It is longer than the whole
	// measurement.
	night = time.Hour
	// spread is the period in which the other runs wake up.
	spread = 5 * time.Second
	// parkAfter is far below the shortest sleep, so that all sleeping runs are unloaded from
	// memory.
	parkAfter = 500 * time.Millisecond
)

// trial holds one store, and the runs that sleep in it.
type trial struct {
	place    *place
	store    durable.Store
	engine   *durable.Engine
	beds     *dormitory
	workflow *durable.Workflow[time.Time, struct{}]
	asleep   int // number of sleeping runs
}

// sleepers measures one store and prints the figures.
func sleepers(ctx context.Context, store string, runs, due int) (err error) {
	if due < 1 || runs < due {
		return fmt.Errorf("of %d runs %d cannot wake: use -due=1 to -due=%d", runs, due, runs)
	}
	p, err := provide(ctx, store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	t, err := prepare(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.store.Close()) }()

	ctx, stop := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop(t.engine.Run(ctx))
	}()
	defer func() {
		stop(nil)
		<-ended
	}()
	f, err := t.measure(ctx, runs, due)
	if err != nil {
		return err
	}
	fmt.Println(f.line())
	return f.verdict()
}

func prepare(ctx context.Context, p *place) (*trial, error) {
	s, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	c, err := readClock(ctx, s)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	d := newDormitory(c, awake)
	t := &trial{place: p, store: s, beds: d, workflow: d.define()}
	t.engine, err = durable.New(s, durable.Config{
		Workflows: []durable.Definition{t.workflow},
		// A run's slot is released when the record of its sleep is committed, a moment after the
		// function has returned. There are twice as many slots as runs in memory, so that a start
		// finds a free slot. A run that finds no free slot would have to be claimed, which is one
		// more write.
		Concurrency: 2 * awake,
		ParkAfter:   parkAfter,
		// Poll keeps its default of one second. A worker knows when the next sleep of its own runs
		// ends, and claims then. It polls for runs that others may have started.
	})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return t, nil
}

// measure starts all runs, measures while they sleep, and has some of them wake up.
func (t *trial) measure(ctx context.Context, runs, due int) (*figures, error) {
	f := &figures{store: t.place.store, runs: runs, due: due}
	if err := t.bed(ctx, warm, t.allNight, nil); err != nil {
		return nil, err
	}
	memory, database, err := t.measureSizes(ctx)
	if err != nil {
		return nil, err
	}

	began := time.Now()
	if err := t.bed(ctx, runs-due, t.allNight, nil); err != nil {
		return nil, err
	}
	pace := time.Since(began) / time.Duration(max(1, runs-due))
	// The runs that wake up are started last. All of them must be asleep, and the measurement of
	// the sleeping runs finished, before the first of them wakes up.
	first := t.beds.now().Add(5*time.Second + 3*pace*time.Duration(due))
	morning := func(i int) time.Time { return first.Add(spread * time.Duration(i) / time.Duration(due)) }
	handles := make([]*durable.Run[struct{}], 0, due)
	if err := t.bed(ctx, due, morning, &handles); err != nil {
		return nil, err
	}
	f.rate = float64(runs) / time.Since(began).Seconds()
	moreMemory, moreDatabase, err := t.measureSizes(ctx)
	if err != nil {
		return nil, err
	}
	if t.beds.now().After(first) {
		return nil, errors.New("some woke before all were weighed: this machine is too busy to measure anything")
	}
	f.memory = float64(moreMemory-memory) / float64(runs)
	f.database = float64(moreDatabase-database) / float64(runs)
	fmt.Printf("%d runs sleep after %.1f s: memory %.1f MB and %+.1f, database %.1f MB and %+.1f\n", t.asleep, time.Since(began).Seconds(),
		megabytes(memory), megabytes(moreMemory-memory), megabytes(database), megabytes(moreDatabase-database))

	fmt.Printf("%d of them wake over %v\n", due, spread)
	c, err := readClock(ctx, t.store) // a second time, because clocks drift
	if err != nil {
		return nil, err
	}
	t.beds.set(c)
	if err := t.wake(ctx, first.Add(spread), handles); err != nil {
		return nil, err
	}
	f.late = t.beds.woken()
	return f, nil
}

func (t *trial) allNight(int) time.Time { return t.beds.now().Add(night) }

// bed starts n runs that sleep until the given times, and waits until all of them sleep. It keeps
// the handles only if keep is not nil, because a handle belongs to its caller, and costs memory
// too.
func (t *trial) bed(ctx context.Context, n int, until func(i int) time.Time, keep *[]*durable.Run[struct{}]) error {
	shown := 0
	for i := 0; i < n; {
		items := make([]durable.StartItem[time.Time], min(batch, n-i))
		for k := range items {
			items[k].Input = until(i + k)
		}
		if err := t.beds.reserve(ctx, len(items)); err != nil {
			return err
		}
		started, err := t.workflow.StartMany(ctx, t.engine, items)
		if err != nil {
			return err
		}
		if keep != nil {
			*keep = append(*keep, started...)
		}
		i += len(items)
		if fifth := i * 5 / n; fifth > shown && n > warm { // a few runs start so quickly that no progress is printed
			shown = fifth
			fmt.Printf("%d of %d runs are started\n", i, n)
		}
	}
	t.asleep += n
	return t.quiet(ctx)
}

// awakened contains the statuses of runs that do not sleep.
var awakened = []durable.Status{
	durable.StatusPending, durable.StatusRunning, durable.StatusPaused,
	durable.StatusCompleted, durable.StatusFailed, durable.StatusCancelled, durable.StatusExpired,
}

// quiet waits until all runs sleep, according to the database.
func (t *trial) quiet(ctx context.Context) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if t.beds.empty() { // until then no query is needed
			page, err := t.engine.List(ctx, durable.Filter{Status: awakened}, durable.Page{Limit: 1})
			switch {
			case err != nil:
				return err
			case len(page.Runs) == 0:
				return nil
			case !page.Runs[0].EndedAt.IsZero():
				return early(&page.Runs[0])
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// early returns the error of a run that has ended, although it should have slept until all runs
// slept.
func early(r *durable.RunInfo) error {
	if r.Err != nil {
		return r.Err
	}
	return fmt.Errorf("run %s woke before all were asleep: this machine is too busy to measure anything", r.ID)
}

// measureSizes returns the bytes of the process and of the database. It first has SQLite release its page
// cache, which may grow up to its limit and belongs to no run. A connection releases the cache at
// its first transaction after another connection has emptied the WAL, so weigh starts one more run.
func (t *trial) measureSizes(ctx context.Context) (memory, database int64, err error) {
	if database, err = t.place.size(ctx); err != nil {
		return 0, 0, err
	}
	if err := t.bed(ctx, 1, t.allNight, nil); err != nil {
		return 0, 0, err
	}
	memory, err = residentMemory()
	return memory, database, err
}

// tooLate is how late a run may continue. After that, the command assumes that it never will.
const tooLate = 20 * time.Second

// wake waits until the given runs have ended. last is the time when the last of them is due.
func (t *trial) wake(ctx context.Context, last time.Time, due []*durable.Run[struct{}]) error {
	limit := last.Sub(t.beds.now()) + tooLate
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for i, run := range due {
		_, err := run.Result(waiting)
		switch {
		case err == nil:
		case waiting.Err() != nil && ctx.Err() == nil:
			return fmt.Errorf("%d of %d runs did not go on within %v after they were due", len(due)-len(t.beds.woken()), len(due), tooLate)
		default:
			return fmt.Errorf("run %d of %d: %w", i+1, len(due), err)
		}
	}
	return nil
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }
