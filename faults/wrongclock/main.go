//go:build unix

// Command wrongclock is a worker for the test of wrong process clocks (row 19). That test
// builds it with a package time whose Now is off, which is why it is no part of the test
// binary: it has to be small, so that this is quick. It knows PostgreSQL only.
//
// It does what the lines on its standard input say, one after the other, and says so.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
)

// stamp is a moment in a step's function.
type stamp struct {
	True time.Time // by the machine's clock, which is the database's
	Wall time.Time // by this process's
	Who  string
}

var who = os.Getenv("WRONGCLOCK_NAME")

func now() stamp {
	var tv syscall.Timeval
	if err := syscall.Gettimeofday(&tv); err != nil {
		panic(err)
	}
	return stamp{True: time.Unix(tv.Unix()).UTC(), Wall: time.Now().UTC(), Who: who}
}

// marking is a step that returns when it ran.
func marking(c *durable.Ctx, name string) (stamp, error) {
	return c.Step(name, func(context.Context) (stamp, error) { return now(), nil })
}

// timers waits in each way that there is, for d each time, and returns the moments
// before and after each wait.
var timers = durable.Define("timers", func(c *durable.Ctx, d time.Duration) (all []stamp, err error) {
	waits := []func() error{
		func() error { return c.Sleep("sleep", d) },
		func() error { return c.SleepUntil("until", all[1].True.Add(d)) },
		func() error {
			_, err := c.Receive[int]("nothing", durable.Within(d), durable.Else(0))
			return err
		},
		func() error {
			return c.Do("retried", func(ctx context.Context) error {
				if durable.Attempt(ctx) == 1 {
					return errors.New("once more")
				}
				return nil
			}, durable.Retry(durable.Fixed(d, 2)))
		},
	}
	for i := range len(waits) + 1 {
		at, err := marking(c, fmt.Sprint("moment ", i))
		if err != nil {
			return nil, err
		}
		if all = append(all, at); i == len(waits) {
			break
		}
		if err := waits[i](); err != nil {
			return nil, err
		}
	}
	return all, nil
})

// long holds one step for longer than several leases.
var long = durable.Define("long", func(c *durable.Ctx, d time.Duration) (stamp, error) {
	return c.Step("long", func(ctx context.Context) (stamp, error) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
			return now(), nil
		case <-ctx.Done():
			return stamp{}, context.Cause(ctx)
		}
	})
})

// bounded is started with a timeout, and works or waits until that is over.
var bounded = durable.Define("bounded", func(c *durable.Ctx, wait bool) (int, error) {
	if err := c.Compensate("over", func(context.Context) error {
		say("over", c.ID(), now().True.UnixNano())
		return nil
	}); err != nil {
		return 0, err
	}
	if wait {
		return c.Receive[int]("nothing")
	}
	return c.Step("work", func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
})

// inbox returns the signals in the order in which they are received.
var inbox = durable.Define("inbox", func(c *durable.Ctx, n int) (all []int, err error) {
	for i := range n {
		v, err := c.Receive[int](fmt.Sprint(i), durable.OnSignal("m"))
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
})

// The limit of limited.
var calls = durable.NewLimit("calls", durable.Rate(20, time.Second), durable.Burst(2))

// limited returns when it began, and when its step had a permit.
var limited = durable.Define("limited", func(c *durable.Ctx, _ int) ([]stamp, error) {
	began, err := marking(c, "began")
	if err != nil {
		return nil, err
	}
	called, err := c.Step("called", func(context.Context) (stamp, error) { return now(), nil }, calls.Permit())
	return []stamp{began, called}, err
})

// tick is started by a schedule, and returns when it ran.
var tick = durable.Define("tick", func(c *durable.Ctx, _ int) (stamp, error) { return marking(c, "ran") })

// numbered is the input of a run, and when it ran.
type numbered struct {
	N  int
	At stamp
}

// The workflows of starts with a start key.
var debounced, single = folding("debounced"), folding("single")

func folding(name string) *durable.Workflow[int, numbered] {
	return durable.Define(name, func(c *durable.Ctx, n int) (numbered, error) {
		at, err := marking(c, "ran")
		return numbered{n, at}, err
	})
}

func main() {
	if err := work(); err != nil {
		say("error", err)
		os.Exit(1)
	}
}

func say(words ...any) { fmt.Println(words...) }

func work() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := postgres.Open(ctx, os.Getenv("WRONGCLOCK_URL"), postgres.Schema(os.Getenv("WRONGCLOCK_SCHEMA")))
	if err != nil {
		return err
	}
	defer s.Close()
	lease, err := time.ParseDuration(os.Getenv("WRONGCLOCK_LEASE"))
	if err != nil {
		return err
	}
	e, err := durable.New(s, durable.Config{
		Workflows: []durable.Definition{timers, long, bounded, inbox, limited, tick, debounced, single}, Name: who,
		Lease: lease, Concurrency: 6, ParkAfter: 100 * time.Millisecond, Poll: 200 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	lines := make(chan string)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- in.Text()
		}
	}()
	off := time.NewTicker(50 * time.Millisecond)
	defer off.Stop()
	last := time.Duration(1)
	for {
		select {
		case <-off.C: // how wrong the clock is, each time that it jumps
			at := now()
			if by := at.Wall.Sub(at.True).Round(time.Second); by != last {
				last = by
				say("off", int(by.Seconds()))
			}
		case err := <-ended:
			return err
		case line, more := <-lines:
			if !more {
				cancel()
				return <-ended
			}
			if err := obey(ctx, e, line); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			say("done", line)
		}
	}
}

// obey does what a line says: a verb, the run's ID, and a number or a duration.
func obey(ctx context.Context, e *durable.Engine, line string) error {
	var verb, id string
	var n time.Duration
	if _, err := fmt.Sscan(line, &verb, &id, &n); err != nil {
		return err
	}
	var err error
	switch verb {
	case "timers":
		_, err = timers.Start(ctx, e, n, durable.ID(id))
	case "long":
		_, err = long.Start(ctx, e, n, durable.ID(id))
	case "work", "wait":
		_, err = bounded.Start(ctx, e, verb == "wait", durable.ID(id), durable.Timeout(n))
	case "delay":
		_, err = long.Start(ctx, e, 1, durable.ID(id), durable.Delay(n))
	case "signal":
		err = e.Signal(ctx, id, "m", int(n))
	case "inbox":
		_, err = inbox.Start(ctx, e, int(n), durable.ID(id))
	case "limited":
		_, err = limited.Start(ctx, e, int(n), durable.ID(id), durable.InQueue("rated"))
	case "expire":
		_, err = limited.Start(ctx, e, 0, durable.ID(id), durable.InQueue("closed"), durable.StartBy(n))
	case "debounce":
		_, err = debounced.Start(ctx, e, int(n), durable.Debounce("k", 500*time.Millisecond, time.Minute))
	case "singleton":
		_, err = single.Start(ctx, e, int(n), durable.Singleton("k", durable.SingletonReplace))
	case "pause":
		_, err = e.Pause(ctx, id)
	case "thaw":
		_, err = e.Resume(ctx, id, durable.FreezeTimers())
	case "cancel":
		_, err = e.Cancel(ctx, id)
	default:
		err = errors.New("no such verb")
	}
	return err
}
