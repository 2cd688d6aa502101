package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	random "math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

const (
	repairedLive  = 8 // runs of workflow repaired that are live at a time
	repairedName  = "repaired"
	keySeparator  = "|" // what separates the idempotency key from the rest of a value
	maxRounds     = 2   // generations of a run that continues as new
	continueEvery = 4   // one run of so many continues as new
	retryEvery    = 3   // one run of so many retries itself
)

// repairedRun is the input of a run that is repaired.
type repairedRun struct{ N, Round int }

// repaired returns the workflows of the runs that are repaired: the second one retries itself. Their steps fail by chance, and return
// their idempotency keys. The ledger says when a function is called, and when its value is recorded.
func repaired(book *ledger) []*durable.Workflow[repairedRun, string] {
	define := func(name string, opts ...durable.WorkflowOption) *durable.Workflow[repairedRun, string] {
		return durable.Define(name, func(c *durable.Ctx, in repairedRun) (string, error) {
			exec := rand.Text()
			book.add(entry{Kind: kindRepairedBegun, Run: c.RunID(), Exec: exec})
			var all []string
			for _, step := range []string{"a", "b", "c"} {
				v, err := c.Step(step, func(ctx context.Context) (string, error) {
					key := durable.IdempotencyKey(ctx)
					book.add(entry{Kind: kindRepairedStep, Run: c.RunID(), Step: key, Exec: exec, Attempt: durable.Attempt(ctx)})
					if random.IntN(4) == 0 {
						return "", errors.New("it fails by chance")
					}
					return key + keySeparator + rand.Text(), nil
				})
				if err != nil {
					return "", err
				}
				book.add(entry{Kind: kindRepairedReturned, Run: c.RunID(), Step: step, Exec: exec, Value: v})
				if err := c.Sleep("after "+step, time.Duration(10+in.N%30)*time.Millisecond); err != nil {
					return "", err
				}
				all = append(all, v)
			}
			if in.N%continueEvery == 0 && in.Round < maxRounds {
				return "", c.ContinueAsNew(repairedRun{in.N, in.Round + 1})
			}
			return strings.Join(all, " "), nil
		}, opts...)
	}
	return []*durable.Workflow[repairedRun, string]{define(repairedName), define(repairedName+" by itself", durable.RetryRun(durable.Fixed(30*time.Millisecond, 4)))}
}

// repairLoad starts runs of the workflows repaired, and repairs them at random while they are executed, and after they have ended.
type repairLoad struct {
	controller *controller
	workflows  []*durable.Workflow[repairedRun, string]
	seed       uint64

	followers
	ids     []string
	repairs int // that were acknowledged
}

func newRepairLoad(c *controller, seed uint64) *repairLoad {
	return &repairLoad{controller: c, workflows: repaired(c.ledger), seed: seed}
}

// begin starts runs until ctx ends. The function that it returns waits for the last start.
func (l *repairLoad) begin(ctx context.Context) (done func()) {
	var atWork sync.WaitGroup
	atWork.Go(func() {
		l.followers.begin(ctx, 150*time.Millisecond, repairedLive, func(ctx context.Context, n int) error { return l.follow(ctx, n+1) })
	})
	return atWork.Wait
}

// follow starts a run, repairs it several times, and then retries it until it has completed.
func (l *repairLoad) follow(ctx context.Context, n int) error {
	id, r := fmt.Sprint(repairedName, "-", n), random.New(random.NewPCG(l.seed, uint64(n)))
	w := l.workflows[0]
	if n%retryEvery == 0 {
		w = l.workflows[1]
	}
	if _, err := l.controller.retry(ctx, func() error {
		_, err := w.Start(ctx, l.controller.Engine, repairedRun{N: n}, durable.ID(id))
		return err
	}); err != nil {
		return fmt.Errorf("start %s: %w", id, err)
	}
	l.add(id)
	for range r.IntN(4) {
		if err := sleepCtx(ctx, time.Duration(r.IntN(200))*time.Millisecond); err != nil {
			return err
		}
		if err := l.repair(ctx, r, id); err != nil {
			return fmt.Errorf("repair %s: %w", id, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*finishTimeout)
	defer cancel()
	for {
		if err := l.controller.awaitRun(ctx, id, func(info *durable.RunInfo) bool { return ended(info.Status) }); err != nil {
			return fmt.Errorf("I7: %w", err)
		}
		info, err := l.controller.getReplicated(ctx, id)
		switch {
		case errors.Is(err, durable.ErrUnavailable):
			continue
		case err != nil:
			return err
		case info.Status == durable.StatusCompleted:
			return nil
		case info.Status != durable.StatusFailed:
			return fmt.Errorf("run %s is %s", id, info.Status)
		}
		if err := l.call(ctx, func(ctx context.Context) error {
			_, err := l.controller.Retry(ctx, id)
			return err
		}); err != nil {
			return fmt.Errorf("retry %s: %w", id, err)
		}
	}
}

func (l *repairLoad) add(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids = append(l.ids, id)
}

// repair makes one repair that is chosen at random. It may be refused, because the run is not in a state for it.
func (l *repairLoad) repair(ctx context.Context, r *random.Rand, id string) error {
	step, value := string(rune('a'+r.IntN(3))), "set by hand "+fmt.Sprint(r.IntN(1000))
	verb, other := r.IntN(6), fmt.Sprint(id, "-fork-", r.IntN(1000000))
	return l.call(ctx, func(ctx context.Context) (err error) {
		switch verb {
		case 0:
			_, err = l.controller.Retry(ctx, id)
		case 1:
			_, err = l.controller.Retry(ctx, id, durable.From(step))
		case 2:
			_, err = l.controller.Override(ctx, id, step, value)
		case 3:
			_, err = l.controller.Skip(ctx, id, step, value)
		case 4:
			_, err = l.controller.Rerun(ctx, id, step)
		default:
			_, err = l.controller.Fork(ctx, id, durable.From(step), durable.NewID(other))
		}
		return err
	})
}

// call makes a repair. It returns no error if the repair was refused, or could not be made within some seconds.
func (l *repairLoad) call(ctx context.Context, repair func(context.Context) error) error {
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := l.controller.retry(within, func() error { return repair(within) })
	switch {
	case err == nil:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.repairs++
		return nil
	case errors.Is(err, durable.ErrState), errors.Is(err, durable.ErrNoStep), errors.Is(err, durable.ErrFromRequired), errors.Is(err, durable.ErrIDConflict),
		within.Err() != nil, errors.Is(err, durable.ErrUnavailable), errors.Is(err, durable.ErrLocked):
		return ctx.Err()
	}
	return err
}

// finish waits until all runs have completed, and their forks have ended.
func (l *repairLoad) finish(ctx context.Context) error {
	l.followed.Wait()
	for _, w := range l.workflows {
		l.fail(l.controller.awaitAll(ctx, w.Name()))
	}
	return l.joined()
}
