package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

func TestConfigIsChecked(t *testing.T) {
	s := openStore(t)
	w := durable.Define("w", double)
	for name, cfg := range map[string]durable.Config{
		"concurrency":   {Concurrency: -1},
		"short lease":   {Lease: time.Millisecond},
		"poll":          {Poll: -1},
		"park":          {ParkAfter: -1},
		"crashes":       {MaxCrashes: -1},
		"payload":       {MaxPayload: -1},
		"patience":      {Patience: -1},
		"nil workflow":  {Workflows: []durable.Definition{nil}},
		"twice":         {Workflows: []durable.Definition{w, w}},
		"no function":   {Workflows: []durable.Definition{durable.Define[int, int]("x", nil)}},
		"bad queue":     {Workflows: []durable.Definition{durable.Define("x", double, durable.Queue(""))}},
		"unnamed":       {Workflows: []durable.Definition{durable.Define("", double)}},
		"control chars": {Workflows: []durable.Definition{durable.Define("a\tb", double)}},
	} {
		if _, err := durable.New(s, cfg); !errors.Is(err, durable.ErrInvalidConfig) && !errors.Is(err, durable.ErrInvalidName) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := durable.New(nil, durable.Config{}); !errors.Is(err, durable.ErrInvalidConfig) {
		t.Errorf("no store: %v", err)
	}
}

func TestRunTwice(t *testing.T) {
	s := openStore(t)
	w := durable.Define("double", double)
	e := engineOn(t, s, w)
	running(t, e)
	if _, err := w.Start(within(t), e, 1, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Call(within(t), e, 1, durable.ID("a")); got != 2 || err != nil { // when Call returns, Run is active
		t.Fatal(got, err)
	}
	if err := e.Run(within(t)); !errors.Is(err, durable.ErrRunning) {
		t.Errorf("got %v, want ErrRunning", err)
	}
}

// A thousand engines start and stop, and leave no goroutine: goleak checks that at the end.
func TestEnginesComeAndGo(t *testing.T) {
	s := openStore(t)
	w := durable.Define("double", double)
	e := engineOn(t, s, w)
	cycles := testsize.Of(1000, 60)
	for i := range cycles {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		if i%(cycles/10) == 0 {
			if _, err := w.Call(within(t), e, i); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if workers, err := e.Workers(within(t)); err != nil || len(workers) != 0 {
		t.Errorf("workers left behind: %v, %v", workers, err)
	}
}

// slowClaims is a store whose claims return only when the gate opens.
type slowClaims struct {
	durable.Store
	asked chan struct{} // receives a value at each claim
	gate  chan struct{}
}

func (s slowClaims) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	<-s.gate
	return s.Store.Claim(ctx, q)
}

// A claim under way leaves slots free for runs that are started in this process.
func TestStartDuringAClaim(t *testing.T) {
	for _, slots := range []int{2, 3, 256} {
		t.Run(fmt.Sprint(slots, " slots"), func(t *testing.T) {
			s := slowClaims{openStore(t), make(chan struct{}, 1), make(chan struct{})}
			w := durable.Define("double", double)
			e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Concurrency: slots})
			running(t, e)
			t.Cleanup(func() { close(s.gate) })
			<-s.asked
			run, err := w.Start(within(t), e, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := run.Result(within(t)); got != 2 || err != nil {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

// A drain lets running steps finish and records them, and then releases the run.
func TestDrain(t *testing.T) {
	s := openStore(t)
	entered := make(chan struct{})
	executions := 0
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		a, err := c.Step("a", func(ctx context.Context) (string, error) {
			executions++
			close(entered)
			<-c.Done() // the drain has begun, and the step's own context has not ended
			return "done", ctx.Err()
		})
		if err != nil {
			return "", err
		}
		return c.Step("b", func(context.Context) (string, error) { return a + " and b", nil })
	})
	e := engineOn(t, s, w)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	run, err := w.Start(within(t), e, 0, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	info, err := e.Get(within(t), "a")
	if err != nil || info.Status != durable.StatusPending || info.Owner != "" {
		t.Fatalf("after the drain: %+v, %v; want it pending and nobody's", info, err)
	}
	history, err := e.History(within(t), "a")
	if err != nil || len(history) != 1 || history[0].Status != "completed" {
		t.Fatalf("history %+v, %v; want the step that finished, and only it", history, err)
	}
	running(t, engineOn(t, s, w))
	if got, err := run.Result(within(t)); got != "done and b" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if executions != 1 {
		t.Errorf("step a ran %d times", executions)
	}
}

// An attempt that a shutdown ends does not count as one whose process died: it does not use up the last attempt.
func TestInterruptedAttemptDoesNotCount(t *testing.T) {
	s := openStore(t)
	entered := make(chan struct{}, 3)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		return c.Step("a", func(ctx context.Context) (int, error) {
			entered <- struct{}{}
			if n := durable.Attempt(ctx); n > 2 {
				return n, nil
			} else if n == 1 {
				return 0, errDeclined
			}
			<-ctx.Done()
			return 0, ctx.Err()
		}, durable.Retry(durable.Fixed(0, 2)))
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
	stop := running(t, e)
	if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	<-entered
	<-entered
	awaitCheckpoint(t, e, "a", "a", "started")
	stop()
	if got, err := w.Call(within(t), engineOn(t, s, w), 0, durable.ID("a")); got != 3 || err != nil {
		t.Errorf("got %d, %v; want the attempt after the interrupted one", got, err)
	}
}

// A function that ignores the end of its context does not delay the drain, and another process can claim its run.
func TestDrainLeavesFunctionsThatIgnoreTheirContext(t *testing.T) {
	s := openStore(t)
	entered, release := make(chan struct{}), make(chan struct{})
	deaf := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("a", func(context.Context) (string, error) {
			close(entered)
			<-release
			return "late", nil
		})
	})
	log := new(lines)
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{deaf}, Grace: -1, Logger: slog.New(slog.NewTextHandler(log, nil))})
	stop := running(t, e)
	if _, err := deaf.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	<-entered
	stop()
	if !strings.Contains(log.String(), "did not return") {
		t.Errorf("nothing was reported: %s", log)
	}
	quick := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("a", func(context.Context) (string, error) { return "in time", nil })
	})
	if got, err := quick.Call(within(t), engineOn(t, s, quick), 0, durable.ID("a")); got != "in time" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	close(release)
}

// A run with a long backoff leaves memory, and continues when the backoff is over.
func TestLongBackoffParks(t *testing.T) {
	s := openStore(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		return c.Step("flaky", func(ctx context.Context) (int, error) {
			if n := durable.Attempt(ctx); n < 3 {
				return 0, errDeclined
			}
			return durable.Attempt(ctx), nil
		}, durable.Retry(durable.Fixed(400*time.Millisecond, 5)))
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 10 * time.Millisecond})
	running(t, e)
	run, err := w.Start(within(t), e, 0, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	parked := false
	for ctx := within(t); ctx.Err() == nil && !parked; {
		info, err := e.Get(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		parked = info.Status == durable.StatusWaiting && info.Owner == "" && !info.WakeAt.IsZero()
		if info.Status == durable.StatusCompleted {
			t.Fatal("it never left memory")
		}
	}
	if got, err := run.Result(within(t)); got != 3 || err != nil {
		t.Errorf("got %d, %v; want the third attempt", got, err)
	}
	info, err := e.Get(within(t), "a")
	if err != nil || info.Epoch < 2 || info.Crashes != 0 {
		t.Errorf("got %+v, %v; want it claimed again, and no crash counted", info, err)
	}
}

// Log lines of a replay are dropped, and lines after the replay are kept.
func TestLoggerDropsReplayedLines(t *testing.T) {
	s := openStore(t)
	log := new(lines)
	cfg := durable.Config{Grace: -1, Logger: slog.New(slog.NewTextHandler(log, nil))}
	blocked := make(chan struct{})
	first := true
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		c.Logger().Info("line one")
		if _, err := c.Step("a", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return 0, err
		}
		c.Logger().With("k", "v").Info("line two")
		return c.Step("b", func(ctx context.Context) (int, error) {
			if first {
				first = false
				close(blocked)
				<-ctx.Done()
			}
			return 2, ctx.Err()
		})
	})
	cfg.Workflows = []durable.Definition{w}
	e := engineWith(t, s, cfg)
	stop := running(t, e)
	if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	<-blocked
	stop()
	if _, err := w.Call(within(t), engineWith(t, s, cfg), 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	if n := strings.Count(text, "line one"); n != 1 {
		t.Errorf("line one stands %d times in:\n%s", n, text)
	}
	if !strings.Contains(text, "k=v") || !strings.Contains(text, "workflow=w") {
		t.Errorf("attributes are missing in:\n%s", text)
	}
}

// lines is a log that a test can read.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
