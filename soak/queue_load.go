package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

const (
	queuedLive  = 24 // runs in queues that are live at a time
	orderedKeys = 3  // keys of queue ordered
	boundedKeys = 4  // keys of queue bounded
)

// queueLoad starts runs in queues with settings.
type queueLoad struct {
	controller *controller
	queued     *durable.Workflow[queuedRun, int]
	seed       uint64
	times      queueTimes

	followers
	starts           []*queueStart
	resumed          time.Time // when the last resume of queue bounded began
	open             int       // transactions that were held open and committed
	countComparisons int       // comparisons of counts and rows
}

// queueStart is one start of a run in a queue.
type queueStart struct {
	id            string
	in            queuedRun
	runID         string // set once the start was acknowledged
	isUndisturbed bool   // nothing but its place in the queue delays it
	cancelled     bool   // its cancel was requested
	startBy       bool   // it may expire
}

func newQueueLoad(c *controller, seed uint64, times queueTimes) *queueLoad {
	return &queueLoad{controller: c, queued: queued(c.ledger), seed: seed, times: times}
}

// begin creates the queues, and starts runs in them until ctx ends. The function that it returns waits for the last start.
func (l *queueLoad) begin(ctx context.Context) (done func(), err error) {
	r := rand.New(rand.NewPCG(l.seed, 7))
	for _, queue := range []string{boundedQueue, orderedQueue, ratedQueue, renewedQueue} {
		if err := l.controller.SetQueue(ctx, queue, settingsOf(queue, l.times.Lowered, r)); err != nil {
			return nil, err
		}
	}
	life := context.WithoutCancel(ctx)
	var atWork sync.WaitGroup
	atWork.Go(func() { changeQueues(ctx, l.controller.Engine, l.controller.ledger, l.times) })
	atWork.Go(func() { l.compareCounts(ctx) })
	atWork.Go(func() {
		r := rand.New(rand.NewPCG(l.seed, 8))
		for n := 0; sleepCtx(ctx, time.Duration(200+r.IntN(1500))*time.Millisecond) == nil; n++ {
			l.fail(l.holdOpen(life, n, r))
		}
	})
	atWork.Go(func() {
		free := make(chan struct{}, queuedLive)
		for n := 0; sleepCtx(ctx, time.Duration(20+r.IntN(80))*time.Millisecond) == nil; n++ {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return
			}
			s := drawQueued(n, r)
			run, err := l.start(life, s, s.options(r)...)
			if err != nil {
				l.fail(err)
				return
			}
			calls := rand.New(rand.NewPCG(l.seed, 10_000+uint64(n)))
			l.followed.Go(func() {
				defer func() { <-free }()
				if !s.isUndisturbed && s.in.Queue != ratedQueue && !s.startBy {
					l.fail(l.interrupt(life, s, calls))
				}
				l.fail(l.follow(life, s.id, run))
			})
		}
	})
	return atWork.Wait, nil
}

// drawQueued draws a run.
func drawQueued(n int, r *rand.Rand) *queueStart {
	s := &queueStart{id: fmt.Sprint("queued-", n), isUndisturbed: r.IntN(4) > 0}
	s.in = queuedRun{Ms: r.IntN(40)}
	switch i := r.IntN(10); {
	case i < 4:
		s.in.Queue, s.in.Key = boundedQueue, fmt.Sprint("b", r.IntN(boundedKeys))
	case i < 7:
		s.in.Queue, s.in.Key = orderedQueue, fmt.Sprint("o", r.IntN(orderedKeys))
	case i < 8:
		s.in.Queue, s.in.Key = renewedQueue, ""
	default:
		s.in.Queue = ratedQueue
		return s
	}
	if r.IntN(3) == 0 {
		s.in.Sleep = 50 + r.IntN(int(3*parkAfter/time.Millisecond))
	}
	s.in.Child, s.in.Undo = r.IntN(5) == 0, r.IntN(3) == 0
	s.startBy = !s.isUndisturbed && r.IntN(4) == 0
	return s
}

// options draws the options of the start.
func (s *queueStart) options(r *rand.Rand) []durable.StartOption {
	opts := []durable.StartOption{durable.ID(s.id), durable.InQueue(s.in.Queue)}
	if s.in.Key != "" {
		weight := 1
		if s.in.Queue == boundedQueue {
			weight = 1 + len(s.in.Key) + int(s.in.Key[1]-'0')
			opts = append(opts, durable.Priority(r.IntN(5)-2))
		}
		opts = append(opts, durable.GroupKey(s.in.Key, durable.KeyWeight(weight)))
	}
	if s.startBy {
		opts = append(opts, durable.StartBy(time.Duration(200+r.IntN(2000))*time.Millisecond))
	} else if !s.isUndisturbed && r.IntN(3) == 0 {
		opts = append(opts, durable.Delay(time.Duration(r.IntN(1000))*time.Millisecond))
	}
	return opts
}

// start makes a start, and records it. A repeated start leads to the same run, because it has an ID.
func (l *queueLoad) start(ctx context.Context, s *queueStart, opts ...durable.StartOption) (run *durable.Run[int], err error) {
	_, err = l.controller.retry(ctx, func() (err error) {
		run, err = l.queued.Start(ctx, l.controller.Engine, s.in, opts...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("start %s in queue %s: %w", s.id, s.in.Queue, err)
	}
	s.runID = run.RunID()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.starts = append(l.starts, s)
	return run, nil
}

// follow waits until a run has ended.
func (l *queueLoad) follow(ctx context.Context, id string, run *durable.Run[int]) error {
	_, err := l.controller.retry(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, 2*finishTimeout)
		defer cancel()
		_, err := run.Result(ctx)
		if _, ended := errors.AsType[*durable.RunError](err); ended {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("I7: result of %s (%s): %w", id, run.RunID(), err)
	}
	return nil
}

// interrupt pauses and resumes a run, or cancels it, wherever it is.
func (l *queueLoad) interrupt(ctx context.Context, s *queueStart, r *rand.Rand) error {
	verbs := []func(context.Context, string, ...durable.ControlOption) (durable.ControlResult, error){l.controller.Pause, l.controller.Resume}
	if r.IntN(2) == 0 {
		verbs = verbs[:0]
		verbs, s.cancelled = append(verbs, l.controller.Cancel), true
	}
	for _, verb := range verbs {
		_ = sleepCtx(ctx, time.Duration(r.IntN(500))*time.Millisecond) // ctx has no end
		if s.cancelled {
			l.controller.ledger.add(entry{Kind: kindVerbCalled, Step: askCancel, Run: s.runID})
		}
		_, err := l.controller.retry(ctx, func() error {
			_, err := verb(ctx, s.id, durable.Reason("soak"), durable.Actor("controller"))
			return err
		})
		if err != nil && !errors.Is(err, durable.ErrState) {
			return fmt.Errorf("interrupt %s: %w", s.id, err)
		}
	}
	return nil
}

// holdOpen starts a run of a key in a transaction that is committed when the only other run of the key has ended: nobody but the
// commit itself can make it begin. SQLite writes nothing else while a transaction is open, so there the commit does not wait for that.
func (l *queueLoad) holdOpen(ctx context.Context, n int, r *rand.Rand) error {
	key := fmt.Sprint("late-", n)
	first := &queueStart{id: key + "-first", in: queuedRun{Queue: orderedQueue, Key: key, Ms: r.IntN(30)}, isUndisturbed: true}
	second := &queueStart{id: key + "-second", in: first.in, isUndisturbed: true}
	options := func(s *queueStart) []durable.StartOption {
		return []durable.StartOption{durable.ID(s.id), durable.InQueue(orderedQueue), durable.GroupKey(key)}
	}
	run, err := l.start(ctx, first, options(first)...)
	if err != nil {
		return err
	}
	l.followed.Go(func() { l.fail(l.follow(ctx, first.id, run)) })
	tx, err := l.controller.place.beginUserTx(ctx, l.controller.store)
	if err != nil {
		return nil // the database is away
	}
	late, err := startIn(ctx, tx, l.controller.Engine, l.queued, second.in, options(second)...)
	if err != nil {
		_ = tx.rollback(ctx)
		return nil // likewise; another error shows at the next start
	}
	bounded, cancel := context.WithTimeout(ctx, longestOpen)
	if l.controller.place.servers == nil {
		_ = sleepCtx(bounded, time.Duration(r.IntN(200))*time.Millisecond)
	} else if _, err := run.Result(bounded); err == nil {
		_ = sleepCtx(bounded, time.Duration(r.IntN(100))*time.Millisecond)
	}
	cancel()
	if err := tx.commit(ctx); err != nil { // it may have been committed
		if late, err = l.start(ctx, second, options(second)...); err != nil {
			return err
		}
	} else {
		second.runID = late.RunID()
		l.mu.Lock()
		l.starts = append(l.starts, second)
		l.open++
		l.mu.Unlock()
	}
	l.followed.Go(func() { l.fail(l.follow(ctx, second.id, late)) })
	return nil
}

// finish resumes queue bounded, and waits until all runs have ended and all queues are empty.
func (l *queueLoad) finish(ctx context.Context) error {
	l.resumed = time.Now()
	ended := make(chan struct{})
	go func() {
		l.followed.Wait()
		close(ended)
	}()
	for waits := true; waits; { // a pause whose result was lost may be committed late
		_, err := l.controller.retry(ctx, func() error { return l.controller.ResumeQueue(ctx, boundedQueue) })
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("resume queue %s: %w", boundedQueue, err)
		}
		t := time.NewTimer(time.Second)
		select {
		case <-ended:
			waits = false
		case <-t.C:
		}
		t.Stop()
	}
	for {
		var queues []durable.QueueInfo
		_, err := l.controller.retry(ctx, func() (err error) {
			queues, err = l.controller.Queues(ctx)
			return err
		})
		used := durable.QueueUse{}
		for _, q := range queues {
			used.Executing, used.InProgress, used.Waiting = used.Executing+q.Executing, used.InProgress+q.InProgress, used.Waiting+q.Waiting
		}
		if err == nil && used == (durable.QueueUse{}) {
			break
		}
		if err == nil {
			err = sleepCtx(ctx, 50*time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("the queues are not empty although their runs have ended: %+v: %w", queues, err)
		}
	}
	_ = l.compareOnce(ctx) // records its error
	return l.joined()
}
