package main

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed8ec063be/durable"
)

const (
	wantedSignals      = 6  // that a target receives before it completes
	clientCount        = 4  // clients at work at the same time
	targetCount        = 3  // targets at the same time
	maxOperations      = 40 // on a target, after which another takes its place
	operationsAfterEnd = 5  // likewise, once its end was seen
)

// collect is the workflow of the targets. It receives signals, and returns their payloads in order.
var collect = durable.Define("collect", func(c *durable.Ctx, _ int) ([]string, error) {
	var all []string
	for i := range wantedSignals {
		payload, err := c.Receive[string](fmt.Sprintf("word-%d", i), durable.OnSignal("word"))
		if err != nil {
			return nil, err
		}
		all = append(all, payload)
	}
	return all, nil
})

// clients start, signal, control and read the same few runs at the same time, and record each operation
// with its result.
type clients struct {
	controller *controller
	seed       uint64
	began      time.Time

	mu          sync.Mutex
	liveTargets []*target
	all         []*target
	open        int // transactions that were held open; see holdOpen
	atWork      sync.WaitGroup
}

// target is one run with all operations on it.
type target struct {
	id         string
	mu         sync.Mutex
	operations []porcupine.Operation
	words      int
	exists     bool // a start was acknowledged
	ended      int  // operations since its end was seen
}

func newClients(c *controller, seed uint64) *clients {
	return &clients{controller: c, seed: seed, began: time.Now()}
}

// begin starts the clients, which work until ctx ends. The function that it returns waits for their last
// operations.
func (t *clients) begin(ctx context.Context) (done func() error) {
	for range targetCount {
		t.replace(nil)
	}
	errs := make([]error, clientCount+1)
	life := context.WithoutCancel(ctx)
	for i := range clientCount {
		t.atWork.Go(func() {
			r := rand.New(rand.NewPCG(t.seed, 100+uint64(i)))
			for errs[i] == nil && sleepCtx(ctx, time.Duration(r.IntN(40))*time.Millisecond) == nil {
				errs[i] = t.operate(life, i, r)
			}
		})
	}
	t.atWork.Go(func() { errs[clientCount] = t.holdOpen(ctx) })
	return func() error {
		t.atWork.Wait()
		return errors.Join(errs...)
	}
}

// replace puts a new target in the place of old, or adds it if old is nil.
func (t *clients) replace(old *target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := &target{id: fmt.Sprintf("collect-%d", len(t.all))}
	t.all = append(t.all, fresh)
	if old == nil {
		t.liveTargets = append(t.liveTargets, fresh)
		return
	}
	for i, l := range t.liveTargets {
		if l == old {
			t.liveTargets[i] = fresh
		}
	}
}

// operate executes one operation, drawn by r, on one of the live targets.
func (t *clients) operate(ctx context.Context, client int, r *rand.Rand) error {
	to := t.pickTarget(r)
	var q request
	switch n := r.IntN(100); {
	case n < 10:
		q.Verb = verbStart
	case n < 45:
		q.Verb, q.Word = verbSignal, to.signal(r)
	case n < 70:
		q.Verb = verbGet
	case n < 82:
		q.Verb = verbPause
	case n < 98:
		q.Verb = verbResume
	default:
		q.Verb = verbCancel
	}
	if _, err := t.callUntilAvailable(ctx, to, client, q); err != nil {
		return err
	}
	to.mu.Lock()
	enough := len(to.operations) >= maxOperations || to.ended >= operationsAfterEnd
	to.mu.Unlock()
	if enough {
		t.mu.Lock()
		current := false
		for _, l := range t.liveTargets {
			current = current || l == to
		}
		t.mu.Unlock()
		if current {
			t.replace(to)
		}
	}
	return nil
}

// pickTarget returns one of the live targets.
func (t *clients) pickTarget(r *rand.Rand) *target {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.liveTargets[r.IntN(len(t.liveTargets))]
}

// signal returns the payload of a signal, which is also its key: mostly a new one, sometimes an earlier one.
func (t *target) signal(r *rand.Rand) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.words > 0 && r.IntN(8) == 0 {
		return fmt.Sprintf("w%d", r.IntN(t.words))
	}
	t.words++
	return fmt.Sprintf("w%d", t.words-1)
}

// callUntilAvailable executes an operation, repeats it until the database is available, and records it with its
// result.
func (t *clients) callUntilAvailable(ctx context.Context, to *target, client int, q request) (response, error) {
	return t.callSince(ctx, to, client, q, time.Now(), false)
}

// callSince is like call for an operation that was first tried at the time called. again reports
// whether that first try may have taken effect.
func (t *clients) callSince(ctx context.Context, to *target, client int, q request, called time.Time, again bool) (response, error) {
	var a response
	tries, err := t.controller.retry(ctx, func() (err error) {
		a, err = t.executeOnce(ctx, to.id, q)
		return err
	})
	if err != nil {
		return a, fmt.Errorf("%s %s: %w", q.Verb, to.id, err)
	}
	a.Again = again || tries > 1
	t.record(to, client, q, a, called)
	return a, nil
}

// record adds an operation that was called at the given time and returns now.
func (t *clients) record(to *target, client int, q request, a response, called time.Time) {
	to.mu.Lock()
	defer to.mu.Unlock()
	to.operations = append(to.operations, porcupine.Operation{
		ClientId: client, Input: q, Call: int64(called.Sub(t.began)), Output: a, Return: int64(time.Since(t.began)),
	})
	to.exists = to.exists || a.Result == resultOK
	if a.Status.ended() {
		to.ended++
	}
}

// executeOnce executes an operation once.
func (t *clients) executeOnce(ctx context.Context, id string, q request) (a response, err error) {
	switch q.Verb {
	case verbStart:
		_, err = collect.Start(ctx, t.controller.Engine, 0, durable.ID(id))
	case verbSignal:
		err = t.controller.Signal(ctx, id, "word", q.Word, durable.SignalKey(q.Word))
	case verbPause:
		_, err = t.controller.Pause(ctx, id)
	case verbResume:
		_, err = t.controller.Resume(ctx, id)
	case verbCancel:
		_, err = t.controller.Cancel(ctx, id)
	case verbGet:
		var info *durable.RunInfo
		if info, err = t.controller.getReplicated(ctx, id); err == nil {
			a.Status = state(info.Status)
			if info.Status == durable.StatusCompleted {
				var out []string
				if err := json.Unmarshal(info.Output, &out); err != nil {
					return a, err
				}
				a.Words = fmt.Sprint(out)
			}
		}
	}
	var refused *durable.StateError
	switch {
	case errors.Is(err, durable.ErrNotFound):
		return response{Result: resultNotFound}, nil
	case errors.As(err, &refused):
		return response{Result: resultRefused, Status: state(refused.Status)}, nil
	}
	a.Result = resultOK
	return a, err
}

// finish resumes each target, and sends it the signals that it still needs to complete.
func (t *clients) finish(ctx context.Context) error {
	const last = clientCount // the client of these operations
	for _, to := range t.all {
		if !to.exists {
			continue
		}
		for n := 0; ; n++ {
			a, err := t.callUntilAvailable(ctx, to, last, request{Verb: verbGet})
			if err != nil {
				return fmt.Errorf("I7: %w", err)
			}
			if a.Status.ended() {
				break
			}
			if a.Status == state(durable.StatusPaused) {
				_, err = t.callUntilAvailable(ctx, to, last, request{Verb: verbResume})
			} else if n <= wantedSignals+to.words {
				_, err = t.callUntilAvailable(ctx, to, last, request{Verb: verbSignal, Word: fmt.Sprintf("last%d", n)})
			}
			if err == nil {
				err = sleepCtx(ctx, 20*time.Millisecond)
			}
			if err != nil {
				return fmt.Errorf("I7: %s is still %s: %w", to.id, a.Status, err)
			}
		}
	}
	return nil
}
