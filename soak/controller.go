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

// controller is the client engine of the parent process. It executes no runs.
type controller struct {
	*durable.Engine
	place  place
	store  durable.Store
	ledger *ledger
	plans  *interpreter

	mu         sync.Mutex
	sent       map[string]signalTimes // signals, by run and step
	violations []error                // errors that no call may return

	stop    context.CancelFunc
	senders sync.WaitGroup // the goroutine of sendLoop and those that it starts
}

// signalTimes holds the times of one signal: when it was first sent, and when it was first
// acknowledged.
type signalTimes struct{ began, acked time.Time }

func newController(ctx context.Context, p place, book *ledger) (*controller, error) {
	s, _, err := p.open(ctx)
	if err != nil {
		return nil, err
	}
	e, err := durable.New(s, durable.Config{Patience: 2 * time.Second})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	c := &controller{Engine: e, place: p, store: s, ledger: book, sent: make(map[string]signalTimes), plans: newInterpreter(book, p.Folder)}
	t, err := book.tail()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if _, err := killer(book).Start(ctx, e, 0, durable.ID(killerID)); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	ctx, c.stop = context.WithCancel(ctx)
	c.senders.Go(func() { c.sendLoop(ctx, t) })
	return c, nil
}

// stopSending ends sendLoop, and waits for the signals that are being sent.
func (c *controller) stopSending() {
	c.stop()
	c.senders.Wait()
}

func (c *controller) close() {
	c.stopSending()
	_ = c.store.Close() // the checker has read everything
}

// retry calls do until its error is neither ErrUnavailable nor ErrLocked, and returns the number of calls.
func (c *controller) retry(ctx context.Context, do func() error) (tries int, err error) {
	for tries = 1; ; tries++ {
		err = do()
		if !errors.Is(err, durable.ErrUnavailable) && !errors.Is(err, durable.ErrLocked) || ctx.Err() != nil {
			return tries, err
		}
		if sleepCtx(ctx, 20*time.Millisecond) != nil {
			return tries, err
		}
	}
}

// getReplicated is like Get, but returns only a state that no failover can take back.
func (c *controller) getReplicated(ctx context.Context, id string) (info *durable.RunInfo, err error) {
	err = c.place.readReplicated(ctx, func() (err error) {
		info, err = c.Get(ctx, id)
		return err
	})
	return info, err
}

// awaitRun waits until holds returns true for the run.
func (c *controller) awaitRun(ctx context.Context, id string, holds func(*durable.RunInfo) bool) error {
	for {
		var info *durable.RunInfo
		_, err := c.retry(ctx, func() (err error) {
			info, err = c.Get(ctx, id)
			return err
		})
		if err != nil {
			return err
		}
		if holds(info) {
			return nil
		}
		if sleepCtx(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("run %s is still %s (%s)", id, info.Status, info.Reason)
		}
	}
}

// awaitAll waits until all runs of the workflow have ended.
func (c *controller) awaitAll(ctx context.Context, workflow string) error {
	for {
		var page durable.RunPage
		_, err := c.retry(ctx, func() (err error) {
			page, err = c.List(ctx, durable.Filter{
				Workflow: workflow, Status: []durable.Status{durable.StatusPending, durable.StatusRunning, durable.StatusWaiting, durable.StatusPaused},
			}, durable.Page{Limit: 5})
			return err
		})
		if err == nil && len(page.Runs) == 0 {
			return nil
		}
		if err == nil {
			err = sleepCtx(ctx, 50*time.Millisecond)
		}
		if err != nil {
			return fmt.Errorf("I7: runs of workflow %s have not ended: %w: %+v", workflow, err, page.Runs)
		}
	}
}

// addViolation records an error that no call may return.
func (c *controller) addViolation(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, fmt.Errorf("%s: %w", what, err))
}

// sendLoop reads the ledger, and sends each run the signals and token results that it waits for, after
// a random delay of less than 300 ms. Of the waits that have a deadline, a third are sent nothing, and a third
// are sent their signal within 20 ms of the deadline.
func (c *controller) sendLoop(ctx context.Context, t *ledgerReader) {
	defer t.close()
	known := make(map[string]bool)
	r := rand.New(rand.NewPCG(1, 1))
	for sleepCtx(ctx, 10*time.Millisecond) == nil {
		entries, err := t.readNew()
		if err != nil {
			c.addViolation("read the ledger", err)
			return
		}
		for _, e := range entries {
			key := e.Run + "/" + e.Step
			if e.Kind != kindAwaitsSignal || known[key] {
				continue
			}
			known[key] = true
			delay := time.Duration(r.IntN(300)) * time.Millisecond
			if e.Do == doWithin {
				switch r.IntN(3) {
				case 0:
					continue
				case 1:
					within, _ := time.ParseDuration(e.Value) // written by the interpreter
					delay = max(0, within-20*time.Millisecond+time.Duration(r.IntN(40))*time.Millisecond)
				}
			}
			c.senders.Go(func() {
				if sleepCtx(ctx, delay) == nil {
					c.send(ctx, e)
				}
			})
		}
	}
}

// send sends the signal, or the result of the token, that the entry names.
func (c *controller) send(ctx context.Context, e entry) {
	payload, key := payloadFor(e.Run, e.Step), e.Run+"/"+e.Step
	c.mu.Lock()
	if c.sent[key].began.IsZero() {
		c.sent[key] = signalTimes{began: time.Now()}
	}
	c.mu.Unlock()
	_, err := c.retry(ctx, func() error {
		if e.Do == doAwait {
			return c.Complete(ctx, e.Value, payload)
		}
		return c.Signal(ctx, e.Run, e.Step, payload, durable.SignalKey(e.Step))
	})
	switch {
	case err == nil:
		c.mu.Lock()
		if s := c.sent[key]; s.acked.IsZero() { // a repeated signal has the same key, and is not kept
			c.sent[key] = signalTimes{s.began, time.Now()}
		}
		c.mu.Unlock()
	case errors.Is(err, durable.ErrState), ctx.Err() != nil: // the run has ended
	default:
		c.addViolation("signal "+e.Run+"/"+e.Step, err)
	}
}

// payloadFor returns the payload of the only signal that is sent to a step of a run.
func payloadFor(run, step string) string { return "to " + run + "/" + step }
