package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// failures keeps what went wrong in a load. Its mutex also guards what the load itself keeps.
type failures struct {
	mu   sync.Mutex
	errs []error
}

// fail keeps the error, unless it is nil.
func (f *failures) fail(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// joined returns all errors as one.
func (f *failures) joined() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.errs...)
}

// followers are goroutines that each start a run and follow it to its end.
type followers struct {
	failures
	followed sync.WaitGroup
}

// begin calls follow in a goroutine of its own after each pause, for 0, 1, 2, …, until ctx ends, and has at most so many goroutines at a
// time. The context of follow does not end with ctx.
func (f *followers) begin(ctx context.Context, pause time.Duration, atOnce int, follow func(ctx context.Context, n int) error) {
	free := make(chan struct{}, atOnce)
	for n := 0; sleepCtx(ctx, pause) == nil; n++ {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		f.followed.Go(func() {
			defer func() { <-free }()
			f.fail(follow(context.WithoutCancel(ctx), n))
		})
	}
}
