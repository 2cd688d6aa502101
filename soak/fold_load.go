package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	random "math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable"
)

const (
	foldKeys    = 2 // keys of each kind
	foldClients = 2 // clients that make starts of each kind
)

// foldLoad makes starts that fold, in transactions of their own, in transactions of a user that stay open, and in steps.
type foldLoad struct {
	*foldStarter
	controller *controller
	seed       uint64
	next       atomic.Int64 // inputs differ

	failures
	open int // transactions that were held open and committed
}

func newFoldLoad(c *controller, seed uint64) *foldLoad {
	l := &foldLoad{foldStarter: newFolder(c.ledger), controller: c, seed: seed}
	l.engine = c.Engine
	return l
}

// begin makes starts until ctx ends. The function that it returns waits for the last.
func (l *foldLoad) begin(ctx context.Context) (done func()) {
	var atWork sync.WaitGroup
	life := context.WithoutCancel(ctx)
	work := func(n uint64, longest time.Duration, do func(context.Context, *random.Rand) error) {
		r := random.New(random.NewPCG(l.seed, 500+n))
		atWork.Go(func() {
			for sleepCtx(ctx, r.N(longest)) == nil {
				if err := do(life, r); err != nil {
					l.fail(err)
					return
				}
			}
		})
	}
	for i, kind := range []string{foldSingleton, foldDebounce, foldThrottle} {
		for k := range foldClients {
			work(uint64(10*i+k), 400*time.Millisecond, func(ctx context.Context, r *random.Rand) error { return l.makeStart(ctx, l.drawStart(kind, r)) })
		}
	}
	work(100, 500*time.Millisecond, l.inStep)
	work(101, 2*time.Second, l.inTransaction)
	return atWork.Wait
}

// drawStart draws a start.
func (l *foldLoad) drawStart(kind string, r *random.Rand) feedingInput {
	in := feedingInput{Kind: kind, foldInput: foldInput{Key: fmt.Sprint("k", r.IntN(foldKeys)), N: int(l.next.Add(1))}}
	if kind == foldSingleton {
		modes := []durable.SingletonPolicy{durable.SingletonJoin, durable.SingletonRefuse, durable.SingletonReplace}
		in.Mode = string(modes[r.IntN(len(modes))])
	}
	return in
}

// makeStart makes a start, and repeats it until the database is available.
func (l *foldLoad) makeStart(ctx context.Context, in feedingInput) error {
	id := rand.Text()
	_, err := l.controller.retry(ctx, func() error {
		_, err := l.start(ctx, in, id, l.startWith)
		return err
	})
	return err
}

// inStep starts a run whose step makes a start: a worker that dies in between makes it again.
func (l *foldLoad) inStep(ctx context.Context, r *random.Rand) error {
	in := l.drawStart([]string{foldSingleton, foldDebounce, foldDebounce}[r.IntN(3)], r)
	if in.Mode == string(durable.SingletonRefuse) {
		in.Mode = string(durable.SingletonJoin)
	}
	id := fmt.Sprint("feeding-", in.N)
	_, err := l.controller.retry(ctx, func() error {
		_, err := l.feeding.Start(ctx, l.controller.Engine, in, durable.ID(id))
		return err
	})
	return err
}

// inTransaction makes a start in a transaction that stays open for a while, and is then committed or rolled back.
func (l *foldLoad) inTransaction(ctx context.Context, r *random.Rand) error {
	in := l.drawStart([]string{foldSingleton, foldDebounce}[r.IntN(2)], r)
	longest := longestOpen
	if l.controller.place.servers == nil {
		longest = longestOpenSQLite
	}
	open, commits := r.N(longest), r.IntN(4) > 0
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tx, err := l.controller.place.beginUserTx(ctx, l.controller.store)
	if err != nil {
		return nil // the database is away
	}
	x := entry{Kind: kindFoldBegun, Exec: rand.Text(), Step: in.Kind + "/" + in.Key, Value: in.Mode, Attempt: in.N}
	l.ledger.add(x)
	run, err := l.startWithKind(ctx, in, func(ctx context.Context, w *durable.Workflow[foldInput, int], in foldInput, opts ...durable.StartOption) (*durable.Run[int], error) {
		return startIn(ctx, tx, l.controller.Engine, w, in, opts...)
	})
	if err != nil {
		lost := tx.lost()
		_ = tx.rollback(ctx)
		for _, expected := range []error{durable.ErrLive, durable.ErrUnavailable, durable.ErrLocked} {
			lost = lost || errors.Is(err, expected)
		}
		if lost {
			return nil
		}
		return fmt.Errorf("start %s in an open transaction: %w", x.Step, err)
	}
	_ = sleepCtx(ctx, open)
	if !commits {
		if tx.rollback(ctx) == nil {
			x.Kind, x.Err = kindFoldEnded, "rolled back"
			l.ledger.add(x)
		}
		return nil
	}
	if tx.commit(ctx) != nil {
		return nil // it may have been committed
	}
	l.mu.Lock()
	l.open++
	l.mu.Unlock()
	return l.recordOutcome(x, run, nil)
}

// finish waits until the runs of all starts have ended.
func (l *foldLoad) finish(ctx context.Context) error {
	for _, d := range []string{l.feeding.Name(), l.latest.Name(), l.single.Name(), l.some.Name()} {
		if err := l.controller.awaitAll(ctx, d); err != nil {
			return err
		}
	}
	return l.joined()
}
