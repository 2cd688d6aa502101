package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

const (
	queueBusy  = "busy"  // executes one run at once
	queueOther = "other" // has a bound that is not reached

	lineUpPace = time.Second // between two looks at how many runs of the backlog are in line
)

// occupying returns a workflow that says when it is entered, and executes until the release.
func occupying(release <-chan struct{}) *durable.Workflow[int, int] {
	return durable.Define("occupying", func(_ *durable.Ctx, in int) (int, error) {
		say("entered", in, time.Now().UnixNano())
		<-release
		say("left", in, time.Now().UnixNano())
		return in, nil
	})
}

// serveQueues is the role of the process that executes greeting and occupying. Each line of its input
// releases one run of occupying.
func serveQueues(ctx context.Context, _ *job, s durable.Store, said <-chan string) error {
	release := make(chan struct{})
	go func() {
		defer close(release)
		for range said {
			release <- struct{}{}
		}
	}()
	return serve(ctx, s, durable.Config{Workflows: []durable.Definition{greeting(), occupying(release)}})
}

// backlogTest is a database with a busy queue, the process that executes its runs, and a client.
type backlogTest struct {
	*bench
	client       *worker
	queueProcess *process
	number       int // of the run that was started last
	holder       int // number of the run that executes in the busy queue
}

// openDesk starts the process, and a run that takes the only place of the busy queue.
func (b *bench) openDesk(at *site) (_ *backlogTest, err error) {
	d := &backlogTest{bench: b}
	if d.client, err = b.queueClient(at); err != nil {
		return nil, err
	}
	err = d.client.engine.SetQueue(b.ctx, queueBusy, durable.QueueSettings{MaxExecuting: 1})
	if err == nil {
		err = d.client.engine.SetQueue(b.ctx, queueOther, durable.QueueSettings{MaxExecuting: 1000})
	}
	if err == nil {
		d.queueProcess, err = at.spawn(job{Role: "queued"})
	}
	if err == nil {
		_, err = d.queueProcess.expect(b.ctx, "ready")
	}
	if err == nil {
		d.holder, err = d.start(occupying(nil), durable.InQueue(queueBusy), durable.Priority(durable.HighestPriority))
	}
	if err == nil {
		_, err = enteredAt(b.ctx, d.queueProcess, d.holder)
	}
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

func (d *backlogTest) close() (err error) {
	if d.queueProcess != nil {
		err = d.queueProcess.stop()
	}
	return errors.Join(err, d.client.store.Close())
}

func (d *backlogTest) start(w *durable.Workflow[int, int], opts ...durable.StartOption) (int, error) {
	d.number++
	_, err := w.Start(d.ctx, d.client.engine, d.number, opts...)
	return d.number, err
}

// dispatchToOther measures the dispatch of a run of another queue: from the call of Start to the call of the function.
func (d *backlogTest) dispatchToOther(queue string) (time.Duration, error) {
	began := time.Now()
	n, err := d.start(greeting(), durable.InQueue(queue))
	if err != nil {
		return 0, err
	}
	when, err := enteredAt(d.ctx, d.queueProcess, n)
	return when.Sub(began), err
}

// dispatchUrgent measures the dispatch of an urgent run of the busy queue: from the return of the function that had the
// place until its own function is called.
func (d *backlogTest) dispatchUrgent() (time.Duration, error) {
	n, err := d.start(occupying(nil), durable.InQueue(queueBusy), durable.Priority(durable.HighestPriority), durable.GroupKey("urgent"))
	if err != nil {
		return 0, err
	}
	if err := d.pause(20*time.Millisecond + rand.N(d.loadPause()/8)); err != nil { // it enters the line
		return 0, err
	}
	if err := d.queueProcess.tell("release"); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(d.ctx, stallTimeout, fmt.Errorf("the urgent run was not executed within %v", stallTimeout))
	defer cancel()
	text, err := d.queueProcess.expect(ctx, "left ")
	if err != nil {
		return 0, err
	}
	_, text, _ = strings.Cut(text, " ")
	left, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, err
	}
	when, err := enteredAt(ctx, d.queueProcess, n)
	return when.Sub(time.Unix(0, left)), err
}

// fill starts the backlog of the busy queue, and returns when all of it is in line. It prints how long that took.
func (d *backlogTest) fill(store string) error {
	began := time.Now()
	failed := newFailure()
	var callers sync.WaitGroup
	slots := make(chan struct{}, 16)
	for key := range d.keys {
		slots <- struct{}{}
		callers.Go(func() {
			defer func() { <-slots }()
			n := d.backlog / d.keys
			if key < d.backlog%d.keys {
				n++
			}
			for ; n > 0 && failed.get() == nil; n -= min(n, 1000) {
				_, err := greeting().StartMany(d.ctx, d.client.engine, make([]durable.StartItem[int], min(n, 1000)),
					durable.InQueue(queueBusy), durable.GroupKey("key-"+strconv.Itoa(key)))
				failed.set(err)
			}
		})
	}
	callers.Wait()
	if err := failed.get(); err != nil {
		return err
	}
	started := time.Since(began)
	waiting, moved := -1, time.Now()
	for waiting < d.backlog {
		queues, err := d.client.engine.Queues(d.ctx)
		if err != nil {
			return err
		}
		for _, q := range queues {
			if q.Name == queueBusy && q.Waiting != waiting {
				waiting, moved = q.Waiting, time.Now()
			}
		}
		if time.Since(moved) > stallTimeout {
			return fmt.Errorf("%d of %d runs are in line, and no more for %v", waiting, d.backlog, stallTimeout)
		}
		if err := d.pause(min(lineUpPace, d.window)); err != nil {
			return err
		}
	}
	lined := time.Since(began)
	d.say("%s: %d runs of %d keys started in %.1f s, all in line after %.1f s", store, d.backlog, d.keys, started.Seconds(), lined.Seconds())
	return nil
}

// queuesBacklog measures the dispatch of runs while many due runs wait behind the bound of a queue, in turns with a
// database without them.
func (b *bench) queuesBacklog(at *site) (err error) {
	other, err := at.site(b.ctx, modeQueues+"_empty")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, other.remove()) }()
	if err := b.makeTables(other); err != nil {
		return err
	}
	full, err := b.openDesk(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, full.close()) }()
	if err := full.fill(at.store); err != nil {
		return err
	}
	if err := b.maintain(at); err != nil {
		return err
	}
	empty, err := b.openDesk(other)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, empty.close()) }()
	paths := []struct {
		name    string
		measure func(*backlogTest) (time.Duration, error)
	}{
		{"other-queue", func(d *backlogTest) (time.Duration, error) { return d.dispatchToOther(durable.DefaultQueue) }},
		{"other-bound", func(d *backlogTest) (time.Duration, error) { return d.dispatchToOther(queueOther) }},
		{"urgent", (*backlogTest).dispatchUrgent},
	}
	unmeasured := 3 // connections are made and statements prepared
	if b.tight {
		unmeasured = 0
	}
	times := make(map[string][2][]time.Duration)
	for i := range unmeasured + b.samples {
		for _, p := range paths {
			of := times[p.name]
			for k, d := range []*backlogTest{full, empty} {
				if err := b.pause(b.loadPause()/10 + rand.N(b.loadPause()/4)); err != nil {
					return err
				}
				took, err := p.measure(d)
				if err != nil {
					return fmt.Errorf("path %s: %w", p.name, err)
				}
				if i >= unmeasured {
					of[k] = append(of[k], took)
				}
			}
			times[p.name] = of
		}
	}
	for _, p := range paths {
		mine, theirs := milliseconds(times[p.name][0]), milliseconds(times[p.name][1])
		b.add(&result.Row{Mode: modeQueues, Store: at.store, Path: p.name, Figures: []result.Figure{
			{Name: "backlog", Value: result.Number(b.backlog)},
			{Name: "runs", Value: result.Number(len(mine))},
			{Name: "p50_ms", Value: quantile(mine, 0.5)},
			{Name: "p99_ms", Value: quantile(mine, 0.99)},
			{Name: "empty_p50_ms", Value: quantile(theirs, 0.5)},
			{Name: "empty_p99_ms", Value: quantile(theirs, 0.99)},
			{Name: "p50_ratio", Value: quantile(mine, 0.5) / quantile(theirs, 0.5)},
			{Name: "p99_ratio", Value: quantile(mine, 0.99) / quantile(theirs, 0.99)},
		}})
	}
	return nil
}

// maintain updates the database's statistics.
func (b *bench) maintain(at *site) error {
	_, tidy, done, err := at.filler(b.ctx)
	if err != nil {
		return err
	}
	return errors.Join(tidy(), done())
}
