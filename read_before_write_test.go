package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// outage is a store that fails the next calls: it is not available for reads, and loses the replies to writes.
type outage struct {
	durable.Store
	left atomic.Int32
}

func (s *outage) err(err error) error {
	if s.left.Add(-1) >= 0 {
		return store.ErrUnavailable
	}
	return err
}

func (s *outage) GetRunsSelectingPayloads(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error) {
	if err := s.err(nil); err != nil {
		return nil, err
	}
	return s.Store.GetRunsSelectingPayloads(ctx, refs, with)
}

func (s *outage) ListRuns(ctx context.Context, f store.Filter, before uuid.UUID, limit int) ([]*store.Run, error) {
	if err := s.err(nil); err != nil {
		return nil, err
	}
	return s.Store.ListRuns(ctx, f, before, limit)
}

func (s *outage) Workers(ctx context.Context) ([]store.Worker, error) {
	if err := s.err(nil); err != nil {
		return nil, err
	}
	return s.Store.Workers(ctx)
}

func (s *outage) Now(ctx context.Context) (time.Time, error) {
	if err := s.err(nil); err != nil {
		return time.Time{}, err
	}
	return s.Store.Now(ctx)
}

func (s *outage) ControlRuns(ctx context.Context, o *store.ControlRequest) error {
	return s.err(s.Store.ControlRuns(ctx, o))
}

func (s *outage) SetDeadline(ctx context.Context, d *store.DeadlineChangeRequest) error {
	return s.err(s.Store.SetDeadline(ctx, d))
}

func (s *outage) SetTags(ctx context.Context, run uuid.UUID, tags []store.Tag, epoch store.Epoch, by store.ActorAndReason) (bool, error) {
	found, err := s.Store.SetTags(ctx, run, tags, epoch, by)
	return found, s.err(err)
}

func (s *outage) ChangeLimit(ctx context.Context, c store.LimitChangeRequest) error {
	return s.err(s.Store.ChangeLimit(ctx, c))
}

func (s *outage) ChangeQueue(ctx context.Context, c store.QueueChangeRequest) error {
	return s.err(s.Store.ChangeQueue(ctx, c))
}

func (s *outage) ResetQueueSettings(ctx context.Context, c store.DeleteOrResetRequest) (bool, error) {
	found, err := s.Store.ResetQueueSettings(ctx, c)
	return found, s.err(err)
}

func (s *outage) ChangeSchedule(ctx context.Context, c *store.ScheduleChangeRequest) error {
	return s.err(s.Store.ChangeSchedule(ctx, c))
}

func (s *outage) MoveRun(ctx context.Context, m *store.MoveRunRequest) error {
	return s.err(s.Store.MoveRun(ctx, m))
}

// callsThatWrite are calls of an engine that change the run with the ID "run", or a limit, a queue or a schedule.
func callsThatWrite(ctx context.Context, e *durable.Engine, w *durable.Workflow[int, int]) map[string]func() error {
	return map[string]func() error{
		"Start":    func() error { _, err := w.Start(ctx, e, 1, durable.ID("other"), durable.Delay(time.Hour)); return err },
		"Signal":   func() error { return e.Signal(ctx, "run", "paid", 7, durable.SignalKey("k")) },
		"Pause":    func() error { _, err := e.Pause(ctx, "run"); return err },
		"PauseAll": func() error { _, err := e.PauseAll(ctx, durable.Filter{IDPrefix: "r"}); return err },
		"SetTags": func() error {
			return e.SetTags(ctx, "run", map[string]string{"shop.kind": "book"}, durable.Actor("ann"))
		},
		"SetTimeout":  func() error { return e.SetTimeout(ctx, "run", time.Hour) },
		"SetPriority": func() error { return e.SetPriority(ctx, "run", 1) },
		"SetLimit":    func() error { return e.SetLimit(ctx, "limit", durable.LimitBounds{Concurrent: 3}) },
		"SetQueue":    func() error { return e.SetQueue(ctx, "queue", durable.QueueSettings{MaxExecuting: 3}) },
		"SetSchedule": func() error {
			return e.SetSchedule(ctx, w.Schedule(1, durable.Schedule{Name: "s", Every: time.Hour}))
		},
	}
}

// A caller that writes waits for Patience while the database is not available, also for what it reads before the write, and the call takes
// effect once.
func TestCallersWaitForTheDatabase(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("paid") })
		s := &outage{Store: inner}
		e := engineOn(t, s)
		read(w.Start(ctx, e, 1, durable.ID("run"), durable.Delay(time.Hour)))(t)
		for name, call := range callsThatWrite(ctx, e, w) {
			s.left.Store(3)
			if err := call(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		s.left.Store(0)
		run := read(e.Get(ctx, "run"))(t)
		if run.Unreceived["paid"] != 1 || run.Status != durable.StatusPaused || run.Tags["shop.kind"] != "book" || run.Deadline.IsZero() {
			t.Errorf("the run is %+v", run)
		}
	})
}

// When Patience is over, the callers get a WriteError, which says that nothing was written if the read before the write failed.
func TestCallersStopWaitingForTheDatabase(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("paid") })
		s := &outage{Store: inner}
		e := engineWith(t, s, durable.Config{Patience: 20 * time.Millisecond})
		read(w.Start(ctx, e, 1, durable.ID("run"), durable.Delay(time.Hour)))(t)
		calls := callsThatWrite(ctx, e, w)
		delete(calls, "Start") // it reads nothing, and this store commits it
		s.left.Store(1 << 30)
		for name, call := range calls {
			err := call()
			if failed, is := errors.AsType[*durable.WriteError](err); !is || !errors.Is(err, durable.ErrUnavailable) || failed.MayHaveCommitted {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
