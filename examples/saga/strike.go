package main

import (
	"context"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

// killWorker starts orders, kills the worker that executes one of them, and waits until another worker
// continues that order.
func (s *session) killWorker(ctx context.Context, k plannedKill) error {
	if k.twist == closes {
		return s.killAllWorkers(ctx, k)
	}
	t := newTrap(k)
	s.stub.set(t)
	if err := s.start(ctx, k.place); err != nil {
		return err
	}
	victim, err := await(ctx, t.caught, fmt.Sprintf("%s never came to %s", k.order, k.at))
	if err != nil {
		return err
	}
	replace := func() error {
		if err := s.crew.kill(victim.worker); err != nil {
			return err
		}
		if k.twist == withdraws {
			if err := s.operator.withdraw(ctx, k.order); err != nil {
				return err
			}
		}
		return s.crew.fill()
	}
	killed := time.Now()
	if k.twist == stocktakes {
		err = s.operator.freeze(ctx, replace)
	} else {
		err = replace()
	}
	if err != nil {
		return err
	}
	heir, err := await(ctx, t.back, fmt.Sprintf("%s never came to %s again", k.order, k.then))
	if err != nil {
		return err
	}
	if k.at == k.then && heir.key != victim.key {
		return fmt.Errorf("%s came to %s with key %q, and now with %q", k.order, k.at, victim.key, heir.key)
	}
	side := "before"
	if k.lost {
		side = "after"
	}
	also := map[twist]string{withdraws: ", and the customer withdraws it", stocktakes: ", and all orders are paused for a while"}[k.twist]
	s.say("%s: kill -9 of %s %s %s took effect%s", k.order, victim.worker, side, k.at, also)
	s.say("%s: %s came with %s after %s", k.order, heir.worker, k.then, time.Since(killed).Round(time.Millisecond))
	return nil
}

// killAllWorkers kills all workers when an order waits for its approval, and approves the order while no
// worker lives.
func (s *session) killAllWorkers(ctx context.Context, k plannedKill) error {
	if err := s.start(ctx, k.place); err != nil {
		return err
	}
	token, err := await(ctx, s.desk.absent, k.order+" never asked")
	if err != nil {
		return err
	}
	_, err = s.operator.until(ctx, k.order, "waiting for its approval", func(run *durable.RunInfo) bool {
		return run.Status == durable.StatusWaiting && len(run.OpenCalls) == 1 && run.OpenCalls[0].Name == "approval"
	})
	if err != nil {
		return err
	}
	names := s.crew.names()
	if err := s.crew.kill(names...); err != nil {
		return err
	}
	t := newTrap(k)
	s.stub.set(t)
	if err := s.desk.answer(token, Decision{Approved: true, By: "carol"}); err != nil {
		return err
	}
	begun := time.Now()
	if err := s.crew.fill(); err != nil {
		return err
	}
	heir, err := await(ctx, t.back, fmt.Sprintf("%s never came to %s", k.order, k.then))
	if err != nil {
		return err
	}
	s.say("%s: kill -9 of %v while it waits for its approval, which comes while no worker lives", k.order, names)
	s.say("%s: %s came with %s after %s", k.order, heir.worker, k.then, time.Since(begun).Round(time.Millisecond))
	return nil
}

// withoutKill does everything that a strike does, except for the kill.
func (s *session) withoutKill(ctx context.Context, k plannedKill) error {
	if err := s.start(ctx, k.place); err != nil {
		return err
	}
	switch k.twist {
	case closes:
		token, err := await(ctx, s.desk.absent, k.order+" never asked")
		if err != nil {
			return err
		}
		return s.desk.answer(token, Decision{Approved: true, By: "carol"})
	case withdraws:
		return s.operator.withdraw(ctx, k.order)
	}
	return nil
}

// await receives a value, or returns an error if none arrives within the time limit (soon).
func await[T any](ctx context.Context, from <-chan T, never string) (v T, err error) {
	t := time.NewTimer(soon)
	defer t.Stop()
	select {
	case v = <-from:
	case <-t.C:
		err = fmt.Errorf("%s within %v", never, soon)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return v, err
}
