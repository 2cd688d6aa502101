package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/postgres"
)

// counting is a store that counts the statements of waiting receives.
type counting struct {
	durable.Store
	looks, counts atomic.Int64
	waits         chan struct{} // receives a value for each query that found no signal
	parks         chan struct{} // receives a value for each run that parks
}

func countingOn(s durable.Store) *counting {
	return &counting{Store: s, waits: make(chan struct{}, 1<<20), parks: make(chan struct{}, 1<<20)}
}

func (s *counting) Commit(ctx context.Context, b *store.Batch) error {
	if err := s.Store.Commit(ctx, b); err != nil {
		return err
	}
	for _, r := range b.Receives {
		s.looks.Add(1)
		if r.Outcome == store.Written && r.RecordedStep.Status == store.StepStarted {
			s.waits <- struct{}{}
		}
	}
	for _, w := range b.OwnershipEnds {
		if w.Outcome == store.Written && w.Status == store.Waiting {
			s.parks <- struct{}{}
		}
	}
	return nil
}

func (s *counting) CountUnreceivedSignals(ctx context.Context, runs []uuid.UUID) ([]store.SignalCount, error) {
	s.counts.Add(1)
	return s.Store.CountUnreceivedSignals(ctx, runs)
}

// manyReceives is a workflow in which n branches receive one signal each.
func manyReceives(n int, signal func(int) string) *durable.Workflow[int, int] {
	return durable.Define("many", func(c *durable.Ctx, _ int) (int, error) {
		futures := make([]*durable.Future[int], n)
		for i := range futures {
			futures[i] = c.Go(fmt.Sprint("branch-", i), func(c *durable.Ctx) (int, error) {
				return c.Receive[int]("wait", durable.OnSignal(signal(i)))
			})
		}
		sum := 0
		for _, f := range futures {
			got, err := f.Wait()
			if err != nil {
				return 0, err
			}
			sum += got
		}
		return sum, nil
	})
}

var signalNames = map[string]func(int) string{
	"a name each": func(i int) string { return fmt.Sprint("signal-", i) },
	"one name":    func(int) string { return "signal" },
}

// When a run in which many receives wait is woken, the receives do not each query for a signal: the numbers of queries and counts
// grow with the signals, not with the receives.
func TestAWakeDoesNotMakeEveryReceiveQuery(t *testing.T) {
	const n = 200
	for name, signal := range signalNames {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, open durable.Store) {
				s := countingOn(open)
				w := manyReceives(n, signal)
				e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Hour})
				running(t, e)
				run, err := w.Start(within(t), e, 0, durable.ID("many"))
				if err != nil {
					t.Fatal(err)
				}
				for range n {
					<-s.waits
				}
				before, want := s.looks.Load(), 0
				for i := range n {
					want += i
					if err := e.Signal(within(t), "many", signal(i), i); err != nil {
						t.Fatal(err)
					}
				}
				if got, err := run.Result(within(t)); got != want || err != nil {
					t.Fatalf("%d, %v; want %d", got, err, want)
				}
				if looks := s.looks.Load() - before; looks > 3*n {
					t.Errorf("%d receives looked %d times for %d signals", n, looks, n)
				}
				if counts := s.counts.Load(); counts > 4*n {
					t.Errorf("the signals were counted %d times for %d signals", counts, n)
				}
			})
		})
	}
}

// A signal to a parked run makes the run replay. There too, only receives for which there is a signal query for it.
func TestAReplayDoesNotMakeEveryReceiveQuery(t *testing.T) {
	const n, signals = 100, 10
	for name, signal := range signalNames {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, open durable.Store) {
				s := countingOn(open)
				w := manyReceives(n, signal)
				e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 10 * time.Millisecond})
				running(t, e)
				run, err := w.Start(within(t), e, 0, durable.ID("many"))
				if err != nil {
					t.Fatal(err)
				}
				for range n {
					<-s.waits
				}
				before := s.looks.Load()
				for i := range signals {
					<-s.parks
					if err := e.Signal(within(t), "many", signal(i), i); err != nil {
						t.Fatal(err)
					}
				}
				for i := signals; i < n; i++ {
					if err := e.Signal(within(t), "many", signal(i), i); err != nil {
						t.Fatal(err)
					}
				}
				if got, err := run.Result(within(t)); got != n*(n-1)/2 || err != nil {
					t.Fatalf("%d, %v; want %d", got, err, n*(n-1)/2)
				}
				if looks := s.looks.Load() - before; looks > 6*n {
					t.Errorf("%d receives looked %d times for %d signals", n, looks, n)
				}
			})
		})
	}
}

// No signal is lost if several receives wait for the same signal, of which some time out, some are ended by a choice, and some
// begin while others query.
func TestManyReceivesLoseNoSignal(t *testing.T) {
	const branches, rounds = 16, 5
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		futures := make([]*durable.Future[int], 3*branches)
		for i := range futures {
			futures[i] = c.Go(fmt.Sprint("branch-", i), func(c *durable.Ctx) (taken int, err error) {
				for j := range rounds {
					name, one := fmt.Sprint("wait-", j), 0
					switch i % 3 {
					case 0:
						one, err = c.Receive[int](name, durable.OnSignal("x"))
					case 1:
						one, err = c.Receive[int](name, durable.OnSignal("x"), durable.Within(time.Duration(1+i+j)*time.Millisecond), durable.Else(0))
					default:
						sleep := c.Go(name+"-sleep", func(c *durable.Ctx) (int, error) { return 0, c.Sleep("nap", time.Duration(1+i+j)*time.Millisecond) })
						wait := c.Go(name, func(c *durable.Ctx) (int, error) { return c.Receive[int]("wait", durable.OnSignal("x")) })
						_, one, err = durable.Any(c, name+"-any", durable.CancelLosers, sleep, wait)
					}
					if taken += one; err != nil {
						return taken, err
					}
				}
				return taken, nil
			})
		}
		sum := 0
		for _, f := range futures {
			got, err := f.Wait()
			if err != nil {
				return 0, err
			}
			sum += got
		}
		return sum, nil
	})
	for where, park := range map[string]time.Duration{"in memory": time.Hour, "parked": time.Millisecond} {
		t.Run(where, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: park})
				running(t, e)
				run, err := w.Start(within(t), e, 0, durable.ID("many"))
				if err != nil {
					t.Fatal(err)
				}
				for range 3 * branches * rounds {
					var state *durable.StateError
					if err := e.Signal(within(t), "many", "x", 1); errors.As(err, &state) {
						break // the run has ended: the other receives timed out
					} else if err != nil {
						t.Fatal(err)
					}
				}
				if got, err := run.Result(within(t)); got < branches*rounds || err != nil {
					t.Fatalf("%d signals were received, %v; want %d at least", got, err, branches*rounds)
				}
			})
		})
	}
}

func openKind(t testing.TB, kind string) durable.Store {
	if kind == "sqlite" {
		return openFile(t)
	}
	s := orFail(postgres.Open(within(t), pgtest.ServerURL(t), postgres.Schema(pgtest.LendSchema(t, "migration", "secret"))))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// BenchmarkManyReceives measures a run in which many receives wait, each for a signal of its own name. It reports the time until all
// wait, and the time from the first signal until the run has ended. Each is divided by the number of receives.
func BenchmarkManyReceives(b *testing.B) {
	for _, kind := range []string{"sqlite", "postgres"} {
		for _, n := range []int{1000, 2000, 4000} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				s := countingOn(openKind(b, kind))
				w := manyReceives(n, signalNames["a name each"])
				e := engineWith(b, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Hour})
				running(b, e)
				var waiting, receiving time.Duration
				for i := 0; b.Loop(); i++ {
					began, id := time.Now(), fmt.Sprint("many-", i)
					run, err := w.Start(b.Context(), e, 0, durable.ID(id))
					if err != nil {
						b.Fatal(err)
					}
					for range n {
						<-s.waits
					}
					all := time.Now()
					var sent atomic.Int64
					var senders sync.WaitGroup
					for range 64 {
						senders.Go(func() {
							for j := int(sent.Add(1)) - 1; j < n; j = int(sent.Add(1)) - 1 {
								if err := e.Signal(b.Context(), id, signalNames["a name each"](j), 1); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					if senders.Wait(); b.Failed() {
						return
					}
					if got, err := run.Result(b.Context()); err != nil || got != n {
						b.Fatal(got, err)
					}
					waiting, receiving = waiting+all.Sub(began), receiving+time.Since(all)
				}
				per := float64(b.N) * float64(n) * float64(time.Microsecond)
				b.ReportMetric(float64(waiting)/per, "µs/wait")
				b.ReportMetric(float64(receiving)/per, "µs/receive")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
