package durable_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// lateReply is a store whose first reply to a request for a permit comes long after the grant. It records when each request says that
// its step has arrived in the line.
type lateReply struct {
	durable.Store
	mu      sync.Mutex
	arrived []time.Time
	places  []time.Time // that the store has returned
}

func (s *lateReply) GrantAndReturnPermits(ctx context.Context, b *store.PermitBatch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range b.Requests {
		s.arrived = append(s.arrived, a.ArrivedAt)
	}
	err := s.Store.GrantAndReturnPermits(ctx, b)
	for _, a := range b.Requests {
		if s.places = append(s.places, a.ArrivedAt); len(s.places) == 1 {
			a.GrantedAt = a.GrantedAt.Add(-time.Second)
		}
	}
	return err
}

// A step whose grant is too old to be used requests a permit again for its old place in the line.
func TestAStepThatRetakesItsPermitKeepsItsPlace(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := briefly(durable.NewLimit("rated", durable.Rate(1000, time.Second), durable.Burst(10)))
		late := &lateReply{Store: s}
		e := engineWith(t, late, durable.Config{Workflows: []durable.Definition{w}})
		running(t, e)
		run, err := w.Start(within(t), e, 1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Result(within(t)); err != nil {
			t.Fatal(err)
		}
		late.mu.Lock()
		defer late.mu.Unlock()
		if len(late.arrived) < 2 || !late.arrived[0].IsZero() || late.places[0].IsZero() || !late.arrived[1].Equal(late.places[0]) {
			t.Errorf("the step arrived at %v by its requests, and at %v by the store, want the second request with the first place", late.arrived, late.places)
		}
	})
}

// A step whose process has no slot for its function does not keep its permit meanwhile: another process can use it.
func TestAStepWithoutASlotGivesItsPermitBack(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		release, taken := make(chan struct{}), make(chan struct{})
		limit := durable.NewLimit("one", durable.Concurrent(1))
		busy := durable.Define("busy", func(c *durable.Ctx, _ int) (int, error) {
			return 0, c.Do("hold the slot", func(ctx context.Context) error {
				close(taken)
				select {
				case <-release:
				case <-ctx.Done():
				}
				return ctx.Err()
			})
		})
		here := durable.Define("here", func(c *durable.Ctx, n int) (int, error) {
			return n, c.Do("call", func(context.Context) error { return nil }, limit.Permit())
		})
		there := durable.Define("there", func(c *durable.Ctx, n int) (int, error) {
			return n, c.Do("call", func(context.Context) error { return nil }, limit.Permit())
		})
		one := engineWith(t, s, durable.Config{Workflows: []durable.Definition{busy, here}, StepConcurrency: 1})
		other := engineWith(t, s, durable.Config{Workflows: []durable.Definition{there}})
		running(t, one)
		running(t, other)
		if _, err := busy.Start(within(t), one, 0, durable.ID("busy")); err != nil {
			t.Fatal(err)
		}
		select {
		case <-taken:
		case <-within(t).Done():
			t.Fatal("the slot is never taken")
		}
		waits, err := here.Start(within(t), one, 1)
		if err != nil {
			t.Fatal(err)
		}
		await(t, "the step to have had a permit", func() bool {
			limits, err := one.Limits(within(t))
			return err == nil && len(limits) == 1
		})
		run, err := there.Start(within(t), other, 2)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Result(within(t)); err != nil {
			t.Errorf("a step of another process, while a step without a slot could hold the permit: %v", err)
		}
		close(release)
		if _, err := waits.Result(within(t)); err != nil {
			t.Errorf("the step that got its slot late: %v", err)
		}
	})
}

// An operator's change of a limit or a queue applies within a second to what waits already, in a process other than the operator's, and
// whatever its lease is.
func TestSettingsApplyWithinASecond(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		release := make(chan struct{})
		began := make(chan string, 10)
		limit := durable.NewLimit("one", durable.Concurrent(1))
		hold := func(name string) func(context.Context) error {
			return func(ctx context.Context) error {
				began <- name
				select {
				case <-release:
				case <-ctx.Done():
				}
				return ctx.Err()
			}
		}
		limited := durable.Define("limited", func(c *durable.Ctx, _ int) (int, error) { return 0, c.Do("call", hold("limit"), limit.Permit()) })
		queued := durable.Define("queued", func(c *durable.Ctx, _ int) (int, error) { return 0, c.Do("call", hold("queue")) })
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{limited, queued}, Lease: time.Minute})
		client := engineWith(t, s, durable.Config{})
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(client.SetQueue(within(t), "q", durable.QueueSettings{MaxExecuting: 1}))
		running(t, e)
		next := func(want string) time.Time {
			t.Helper()
			select {
			case got := <-began:
				if got != want {
					t.Fatalf("a step of the %s began, want one of the %s", got, want)
				}
			case <-within(t).Done():
				t.Fatalf("no further step of the %s began", want)
			}
			return time.Now()
		}
		for n := range 2 {
			_, err := limited.Start(within(t), client, n)
			must(err)
			_, err = queued.Start(within(t), client, n, durable.InQueue("q"))
			must(err)
			if n == 0 {
				if first, second := <-began, <-began; first == second {
					t.Fatalf("two steps of the %s began", first)
				}
			}
		}
		await(t, "a step and a run to wait", func() bool {
			limits, err := client.Limits(within(t))
			queues, qerr := client.Queues(within(t))
			return err == nil && qerr == nil && limits[0].Waiting == 1 && queues[0].Waiting == 1
		})
		const atMost = 2 * time.Second // a second, and as much for a machine that is busy
		set := time.Now()
		must(client.SetLimit(within(t), "one", durable.LimitBounds{Concurrent: 2}))
		if took := next("limit").Sub(set); took > atMost {
			t.Errorf("SetLimit applied after %v", took)
		} else {
			t.Logf("SetLimit applied after %v", took)
		}
		set = time.Now()
		must(client.SetQueue(within(t), "q", durable.QueueSettings{MaxExecuting: 2}))
		if took := next("queue").Sub(set); took > atMost {
			t.Errorf("SetQueue applied after %v", took)
		} else {
			t.Logf("SetQueue applied after %v", took)
		}
		close(release)
	})
}
