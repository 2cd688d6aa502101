package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

const (
	briefName    = "brief" // the workflow, its queue and its limit
	briefLive    = 8       // runs that are live at a time
	briefKeys    = 3
	briefAtOnce  = 6
	briefSignals = 3 // sent to each run, which receives one at most
	lastStep     = "last"
)

// briefRun is the input of a run that is deleted some time after its end.
type briefRun struct {
	N        int
	Root     string // of a child: the UUID of its parent
	Detached bool
}

var briefLimit = durable.NewLimit(briefName, durable.Concurrent(4))

// brief returns the workflow whose runs are deleted. They have all that is deleted with a run: steps, signals, permits, places in a queue,
// children, and generations, because a step fails by chance. The ledger says which runs were executed.
func brief(book *ledger) (w *durable.Workflow[briefRun, int]) {
	w = durable.Define(briefName, func(c *durable.Ctx, in briefRun) (int, error) {
		book.add(entry{Kind: kindBriefBegun, Run: c.RunID(), Value: in.Root})
		err := c.Do("first", func(ctx context.Context) error {
			if in.Root == "" && rand.IntN(4) == 0 {
				return errors.New("it fails by chance")
			}
			return sleepCtx(ctx, time.Duration(in.N%20)*time.Millisecond)
		}, briefLimit.Permit())
		switch {
		case err != nil:
			return 0, err
		case in.Detached: // it ends before its parent, or long after it
			if err := c.Sleep("sleep", time.Duration(in.N*101%5000)*time.Millisecond); err != nil {
				return 0, err
			}
		case in.Root == "":
			if in.N%3 == 0 {
				if _, err := c.StartChild("detached", w, briefRun{in.N, c.RunID(), true}, durable.Detached()); err != nil {
					return 0, err
				}
			}
			if in.N%2 == 0 {
				if _, err := c.Child("child", w, briefRun{in.N, c.RunID(), false}); err != nil {
					return 0, err
				}
			}
			if _, err := c.Receive[string]("word", durable.Within(200*time.Millisecond)); err != nil && !errors.Is(err, durable.ErrTimeout) {
				return 0, err
			}
		}
		return in.N, c.Do(lastStep, func(context.Context) error { return nil })
	})
	return w
}

// briefKeep is the retention of the workers. The archive records whether it gets whole runs.
func briefKeep(book *ledger) durable.Retention {
	return durable.Retention{
		Workflows: map[string]durable.RetentionByStatus{briefName: durable.KeepFor(time.Minute)},
		Archive: func(_ context.Context, x *durable.Exported) error {
			e := entry{Kind: kindArchived, Run: x.Run.RunID, Attempt: x.Generation}
			if x.Generation == 0 && (!ended(x.Run.Status) || x.Run.Status == durable.StatusCompleted && !slices.ContainsFunc(x.History, func(s durable.ExportedStep) bool { return s.Name == lastStep })) {
				e.Err = fmt.Sprintf("it is %s, with %d steps", x.Run.Status, len(x.History))
			}
			book.add(e)
			return nil
		},
	}
}

// briefLoad starts runs of workflow brief, and deletes some of them. The workers' retention deletes the others.
type briefLoad struct {
	controller *controller
	brief      *durable.Workflow[briefRun, int]
	seed       uint64

	followers
	started  []string        // the UUIDs of the runs whose starts were acknowledged
	deleting map[string]bool // UUIDs of runs that Delete was called for; the value is whether it was acknowledged
}

func newBriefLoad(c *controller, seed uint64) *briefLoad {
	return &briefLoad{controller: c, brief: brief(c.ledger), seed: seed, deleting: make(map[string]bool)}
}

// begin creates the queue, and starts runs until ctx ends. The function that it returns waits for the last start.
func (l *briefLoad) begin(ctx context.Context) (done func(), err error) {
	if err := l.controller.SetQueue(ctx, briefName, durable.QueueSettings{MaxExecuting: briefAtOnce}); err != nil {
		return nil, err
	}
	var atWork sync.WaitGroup
	atWork.Go(func() { l.followers.begin(ctx, 100*time.Millisecond, briefLive, l.follow) })
	return atWork.Wait, nil
}

// follow starts a run, sends it signals, retries it if it has failed, and may delete it. After that its ID may have another run.
func (l *briefLoad) follow(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*finishTimeout)
	defer cancel()
	r := rand.New(rand.NewPCG(l.seed, 50_000+uint64(n)))
	id := fmt.Sprint(briefName, "-", n)
	for round := range 2 {
		opts := []durable.StartOption{durable.ID(id), durable.Tag("soak.kind", briefName)}
		if r.IntN(2) == 0 {
			opts = append(opts, durable.InQueue(briefName), durable.GroupKey(fmt.Sprint("k", r.IntN(briefKeys))))
		}
		var run *durable.Run[int]
		_, err := l.controller.retry(ctx, func() (err error) {
			run, err = l.brief.Start(ctx, l.controller.Engine, briefRun{N: 1000*round + n}, opts...)
			return err
		})
		if err != nil {
			return fmt.Errorf("start %s: %w", id, err)
		}
		l.mu.Lock()
		l.started = append(l.started, run.RunID())
		l.mu.Unlock()
		if err := l.use(ctx, run, r); err != nil {
			return err
		}
		if r.IntN(2) == 0 {
			return nil // the retention deletes it
		}
		if gone, err := l.deleteRun(ctx, run.RunID(), r); err != nil || !gone {
			return err
		}
	}
	return nil
}

// use sends signals to a run, and waits until it has ended. It may retry a run that has failed.
func (l *briefLoad) use(ctx context.Context, run *durable.Run[int], r *rand.Rand) error {
	var sending sync.WaitGroup
	defer sending.Wait()
	for i := range briefSignals {
		after := time.Duration(r.IntN(300)) * time.Millisecond
		if i == 0 {
			after = time.Duration(r.IntN(4000)) * time.Millisecond // probably to a run that has ended, or is deleted
		}
		sending.Go(func() {
			_ = sleepCtx(ctx, after)
			_, err := l.controller.retry(ctx, func() error {
				return l.controller.Signal(ctx, run.RunID(), "word", "hello", durable.SignalKey(fmt.Sprint(i)))
			})
			if err != nil && ctx.Err() == nil && !errors.Is(err, durable.ErrState) && !errors.Is(err, durable.ErrNotFound) {
				l.controller.addViolation("signal "+briefName+" run "+run.RunID(), err)
			}
		})
	}
	for {
		_, err := l.controller.retry(ctx, func() error {
			_, err := run.Result(ctx)
			return err
		})
		failed, isEnd := errors.AsType[*durable.RunError](err)
		switch {
		case err == nil, errors.Is(err, durable.ErrNotFound), isEnd && r.IntN(2) == 0:
			return nil
		case !isEnd:
			return fmt.Errorf("I7: result of run %s: %w", run.RunID(), err)
		}
		_, err = l.controller.retry(ctx, func() error {
			_, err := l.controller.Retry(ctx, run.RunID())
			return err
		})
		switch {
		case errors.Is(err, durable.ErrNotFound):
			return nil
		case err != nil && !errors.Is(err, durable.ErrState): // an earlier try was made
			return fmt.Errorf("retry run %s, which has failed with %w: %w", run.RunID(), failed, err)
		}
	}
}

// deleteRun deletes a run that has ended, from two clients at once, and reports whether it is gone.
func (l *briefLoad) deleteRun(ctx context.Context, run string, r *rand.Rand) (gone bool, err error) {
	if err := sleepCtx(ctx, time.Duration(r.IntN(2500))*time.Millisecond); err != nil {
		return false, err
	}
	l.mu.Lock()
	l.deleting[run] = false
	l.mu.Unlock()
	var errs [2]error
	var calls sync.WaitGroup
	for i := range errs {
		calls.Go(func() {
			_, errs[i] = l.controller.retry(ctx, func() error {
				_, err := l.controller.Delete(ctx, run, durable.Actor("controller"))
				return err
			})
		})
	}
	calls.Wait()
	for _, err := range errs {
		switch {
		case err == nil, errors.Is(err, durable.ErrNotFound):
			gone = true
		case !errors.Is(err, durable.ErrState): // its place in the queue was not taken back yet, for example
			return false, fmt.Errorf("delete run %s: %w", run, err)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleting[run] = gone
	return gone, nil
}

// finish waits until all runs have ended.
func (l *briefLoad) finish(ctx context.Context) error {
	l.followed.Wait()
	l.fail(l.controller.awaitAll(ctx, briefName))
	return l.joined()
}
