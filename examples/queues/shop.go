package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/examples/internal/fleet"
)

// session holds what lives in the parent process.
type session struct {
	began    time.Time
	where    fleet.Place
	engine   *durable.Engine // a client: it executes nothing
	provider string          // its URL
	fail     func(error)     // ends the session
	workers  []*fleet.Process
	hired    int
	kills    int
}

// shop is the main function of the parent process. It places orders, and kills workers.
func shop(ctx context.Context, store string, orders, workers, kills int) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	folder, err := os.MkdirTemp("", "durable-queues-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	where, done, err := fleet.Provide("queues", store, folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	database, err := where.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Close()) }()
	s := &session{began: time.Now(), where: where, fail: fail}
	if s.engine, err = durable.New(database, durable.Config{}); err != nil {
		return err
	}
	stop, err := s.startProvider()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	defer func() {
		if ctx.Err() != nil {
			err = context.Cause(ctx) // the first failure, in any goroutine
		}
		err = errors.Join(err, s.stopWorkers())
	}()
	fmt.Printf("%d orders of %d customers, %d worker processes, on %s\n\n", orders, customers, workers, store)
	return s.execute(ctx, plan(orders), workers, kills)
}

// startProvider starts the provider's process, and reads its URL.
func (s *session) startProvider() (stop func() error, err error) {
	out, in := io.Pipe()
	p, err := s.where.Start("the provider", in, s.fail, "-provider=here")
	if err != nil {
		return nil, err
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	s.provider = strings.TrimSpace(url)
	return p.Stop, err
}

// execute runs the example from the first order to the last line.
func (s *session) execute(ctx context.Context, all []placed, workers, kills int) error {
	if err := s.engine.SetQueue(ctx, ordersQueue, durable.QueueSettings{MaxInProgressPerKey: 1}); err != nil {
		return err
	}
	ticks := defineTick(client{}).Schedule("", durable.Schedule{
		Name: "tick", Every: time.Second,
		Overlap: durable.OverlapAllow, // every second starts a run, however long the one before takes
	})
	if err := s.engine.SetSchedule(ctx, ticks); err != nil {
		return err
	}
	scheduled := time.Now()
	for len(s.workers) < workers {
		if err := s.startWorker(); err != nil {
			return err
		}
	}
	runs, err := place(ctx, s.engine, all)
	if err != nil {
		return err
	}
	if err := s.killSome(ctx, len(all), kills); err != nil {
		return err
	}
	for _, run := range runs {
		if _, err := run.Result(ctx); err != nil {
			return fmt.Errorf("order %s: %w", run.ID(), err)
		}
	}
	if err := s.awaitTick(ctx, time.Now().Truncate(time.Second)); err != nil {
		return err
	}
	if err := s.engine.PauseSchedule(ctx, ticks.Name); err != nil {
		return err
	}
	if err := s.drainTicks(ctx); err != nil {
		return err
	}
	c, err := s.count(ctx)
	if err != nil {
		return err
	}
	if late := c.FirstTick.Sub(scheduled); late > time.Second {
		c.Missed += int(late / time.Second)
	}
	r, err := s.report(ctx, all, c)
	if err != nil {
		return err
	}
	fmt.Printf("\n%v\n", r)
	return r.verdict()
}

// killSome kills workers while orders are charged, evenly spread, and starts others instead.
func (s *session) killSome(ctx context.Context, orders, kills int) error {
	look := time.NewTicker(250 * time.Millisecond)
	defer look.Stop()
	for round := 1; ; round++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
		c, err := s.count(ctx)
		if err != nil {
			return err
		}
		if round%8 == 0 {
			s.say("%d of %d orders are charged, at most %d requests at once, %d in a second", c.Charged, orders, c.MaxConcurrent, c.MaxPerSecond)
		}
		switch {
		case s.kills < kills && c.Charged >= orders*(s.kills+1)/(kills+1):
			victim := s.workers[0]
			if !victim.Kill() {
				return fmt.Errorf("%s ended before it was killed", victim.Name)
			}
			s.workers = s.workers[1:]
			s.kills++
			s.say("kill -9 of %s", victim.Name)
			if err := s.startWorker(); err != nil {
				return err
			}
		case c.Charged >= orders:
			return nil
		}
	}
}

// startWorker starts a worker.
func (s *session) startWorker() error {
	s.hired++
	name := fmt.Sprintf("worker-%d", s.hired)
	p, err := s.where.Start(name, os.Stdout, s.fail, "-worker="+name, "-provider="+s.provider)
	if err != nil {
		return err
	}
	s.workers = append(s.workers, p)
	return nil
}

func (s *session) stopWorkers() (err error) {
	for _, p := range s.workers {
		if end := p.Stop(); end != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", p.Name, end))
		}
	}
	return err
}

// awaitTick waits until the provider has been told of this scheduled time or of a later one.
func (s *session) awaitTick(ctx context.Context, at time.Time) error {
	for {
		c, err := s.count(ctx)
		if err != nil || !c.LastTick.Before(at) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// drainTicks waits until every run of the schedule has ended.
func (s *session) drainTicks(ctx context.Context) error {
	page, err := s.engine.List(ctx, durable.Filter{Workflow: "tick"}, durable.Page{Limit: 1000})
	if err != nil {
		return err
	}
	for _, info := range page.Runs {
		run, err := defineTick(client{}).Handle(ctx, s.engine, info.ID)
		if err == nil {
			_, err = run.Result(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// count returns what the provider has counted.
func (s *session) count(ctx context.Context) (c counts, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.provider+pathCounts, http.NoBody)
	if err != nil {
		return c, err
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return c, err
	}
	defer response.Body.Close()
	return c, json.NewDecoder(response.Body).Decode(&c)
}

// say prints a line with the time since the beginning.
func (s *session) say(format string, args ...any) {
	fmt.Printf("%5.1f s  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}
