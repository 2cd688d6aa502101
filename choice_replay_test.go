package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// The compensations that a loser registered are executed when the run fails, also in an execution in which the function returns
// before the loser has replayed its history.
func TestCompensationsOfALoser(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const n = 100
		var undone sync.Map
		var again atomic.Bool
		undoing := make(chan struct{}, 1)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			done := make(chan struct{})
			slow := c.Go("slow", func(c *durable.Ctx) (string, error) {
				for i := range n {
					name := fmt.Sprint(i)
					if err := c.Compensate("undo "+name, func(ctx context.Context) error {
						if !again.Load() {
							undoing <- struct{}{}
							<-ctx.Done()
							return context.Cause(ctx)
						}
						undone.Store(name, true)
						return nil
					}); err != nil {
						return "", err
					}
					if err := c.Do(name, func(context.Context) error { return nil }); err != nil {
						return "", err
					}
				}
				close(done)
				return c.Receive[string]("never")
			})
			quick := c.Go("quick", func(c *durable.Ctx) (string, error) {
				return c.Step("done", func(ctx context.Context) (string, error) {
					select {
					case <-done:
						return "quick", nil
					case <-ctx.Done():
						return "", context.Cause(ctx)
					}
				})
			})
			if _, _, err := durable.Any(c, "first", durable.CancelLosers, slow, quick); err != nil {
				return "", err
			}
			return "", errDeclined
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
		stop := running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-undoing
		stop()
		again.Store(true)
		running(t, engineOn(t, s, w))
		if _, err := run.Result(within(t)); !errors.Is(err, errDeclined) {
			t.Fatalf("got %v", err)
		}
		count := 0
		undone.Range(func(any, any) bool { count++; return true })
		if count != n {
			t.Errorf("%d of %d compensations ran", count, n)
		}
	})
}

// The same holds for a run that is cancelled while it is not in memory, and whose function made calls that write no row, or whose
// rows have no outcome yet.
func TestCompensationsOfACancelledRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var undone atomic.Int32
		leaf := durable.Define("leaf", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		undo := func(context.Context) error { undone.Add(1); return nil }
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			if _, err := c.Map("nothing", []int{}, func(context.Context, int) (int, error) { return 0, nil }); err != nil {
				return "", err
			}
			if err := c.Compensate("one", undo); err != nil {
				return "", err
			}
			kid, err := c.StartChild("kid", leaf, 0)
			if err != nil {
				return "", err
			}
			if err := c.Compensate("two", undo); err != nil {
				return "", err
			}
			_, err = kid.Wait()
			return "", err
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, leaf}, ParkAfter: time.Millisecond})
		running(t, e)
		if _, err := w.Start(within(t), e, 0, durable.ID("run")); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "run", durable.StatusWaiting)
		must(t)(e.Cancel(within(t), "run"))
		awaitStatus(t, e, "run", durable.StatusCancelled)
		if undone.Load() != 2 {
			t.Errorf("%d of 2 compensations ran", undone.Load())
		}
	})
}

// If an item of a Map has finally failed and the run continues in another process, the items that had begun finish, and no other
// item begins.
func TestFailedMapBeginsNothingMore(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const n = 40
		var again atomic.Bool
		var mu sync.Mutex
		began := make(map[int]int)
		failed, held := make(chan struct{}), make(chan struct{}, n)
		w := durable.Define("w", func(c *durable.Ctx, _ int) ([]int, error) {
			items := make([]int, n)
			for i := range items {
				items[i] = i
			}
			if again.Load() { // the items that have not begun come first now
				slices.Reverse(items)
			}
			return c.Map("m", items, func(ctx context.Context, i int) (int, error) {
				mu.Lock()
				began[i]++
				mu.Unlock()
				if i == 0 {
					for range 3 {
						<-held
					}
					close(failed)
					return 0, errDeclined
				}
				if !again.Load() {
					held <- struct{}{}
					<-ctx.Done()
					return 0, context.Cause(ctx)
				}
				return i, nil
			}, durable.Parallel(4), durable.Key(func(i int) string { return fmt.Sprint(i) }))
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
		stop := running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-failed
		for ctx := within(t); ; {
			states := make(map[durable.CheckpointStatus]int)
			for _, c := range historyOf(t, e, "run") {
				if c.Kind == "step" {
					states[c.Status]++
				}
			}
			if states["failed"] == 1 && states["started"] == 3 {
				break
			} else if ctx.Err() != nil {
				t.Fatalf("the items are %v", states)
			}
		}
		stop()
		again.Store(true)
		running(t, engineOn(t, s, w))
		if _, err := run.Result(within(t)); !errors.Is(err, errDeclined) {
			t.Fatalf("got %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(began) != 4 || began[0] != 1 || began[1] != 2 || began[2] != 2 || began[3] != 2 {
			t.Errorf("the items began as often as %v says; want four of them, the failed one once, the others twice", began)
		}
	})
}

// A choice whose record has no losers, as old versions wrote it, is replayed as before: the losers end when the function reaches
// the choice.
func TestChoiceOfBefore(t *testing.T) {
	s := openStore(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		slow := c.Go("slow", func(c *durable.Ctx) (string, error) {
			<-c.Done()
			return "", context.Cause(c)
		})
		_, got, err := durable.Any(c, "first", durable.CancelLosers, slow, c.Go("quick", soon))
		if err != nil {
			return "", err
		}
		_, err = slow.Wait()
		return fmt.Sprint(got, " ", errors.Is(err, durable.ErrCancelled)), nil
	})
	e := engineOn(t, s, w)
	if got, err := w.Call(within(t), e, 0, durable.ID("run")); got != "quick true" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	export, err := e.Export(within(t), "run", durable.DecodePayloads())
	if err != nil {
		t.Fatal(err)
	}
	history := historyOf(t, e, "run")
	i := slices.IndexFunc(history, func(c durable.Checkpoint) bool { return c.Name == "first" })
	if got := string(history[i].Output); got != `{"won":[1],"of":["slow","quick"],"wanted":1,"ended":["slow"]}` {
		t.Fatalf("the choice is recorded as %s", got)
	}
	text := string(export)
	from := strings.Index(text, `"won"`)
	from = strings.LastIndex(text[:from], "{")
	to := from + strings.Index(text[from:], "}") + 1
	before := text[:from] + "[1]" + text[to:]
	for name, x := range map[string]string{"now": text, "before": before} {
		if v := durabletest.Replay(t, w, []byte(x)); v.Diverged {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
