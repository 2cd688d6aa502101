package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// changingBank is a bank that accepts all charges until it is changed.
type changingBank struct {
	charge atomic.Pointer[func(ctx context.Context) error]
}

func (b *changingBank) change(charge func(ctx context.Context) error) { b.charge.Store(&charge) }

// hang lets the next charge wait until its context ends. The returned channel is closed when it waits.
func (b *changingBank) hang() <-chan struct{} {
	began := make(chan struct{})
	begin := sync.OnceFunc(func() { close(began) })
	b.change(func(ctx context.Context) error {
		begin()
		<-ctx.Done()
		return ctx.Err()
	})
	return began
}

// saleThatShips is a workflow that charges and ships, each with its compensation.
func saleThatShips(l *keyLedger, bank *changingBank) *durable.Workflow[string, string] {
	return durable.Define("sale", func(c *durable.Ctx, _ string) (string, error) {
		note := func(ctx context.Context) error { l.note(ctx); return nil }
		if err := c.Do("charge", func(ctx context.Context) error {
			l.note(ctx)
			if charge := bank.charge.Load(); charge != nil {
				return (*charge)(ctx)
			}
			return nil
		}); err != nil {
			return "", err
		}
		if err := c.Compensate("refund", note); err != nil {
			return "", err
		}
		if err := l.do(c, "ship", nil); err != nil {
			return "", err
		}
		if err := c.Compensate("call back", note); err != nil {
			return "", err
		}
		return "sold", nil
	})
}

// wantNotUndone fails the test unless the run's error says that the effects of the calls were not undone.
func wantNotUndone(t *testing.T, err error, calls string) {
	t.Helper()
	if !errors.Is(err, durable.ErrCompensation) || !strings.Contains(err.Error(), "nothing has undone the effects of ["+calls+"]") {
		t.Errorf("the run ended with %v, want ErrCompensation for %s", err, calls)
	}
}

// If a repeated call fails, its function does not reach the calls that the repair has kept, nor their compensations. The error of the run
// names these calls.
func TestARunThatEndsBeforeKeptCallsNamesThem(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keyLedger
		var bank changingBank
		w := saleThatShips(&l, &bank)
		e := engineOn(t, s, w)
		running(t, e)
		start := func(id string) *durable.Run[string] {
			run := orFail(w.Start(within(t), e, "", durable.ID(id)))(t)
			wantResult(t, w, e, id, "sold")
			return run
		}
		failing, cancelled := start("failing"), start("cancelled")

		bank.change(func(context.Context) error { return errDeclined })
		orFail(e.Rerun(within(t), "failing", "charge"))(t)
		_, err := failing.Result(within(t))
		wantNotUndone(t, err, `"ship"`)
		if !errors.Is(err, errDeclined) {
			t.Errorf("the run failed with %v, want %v", err, errDeclined)
		}

		began := bank.hang()
		orFail(e.Rerun(within(t), "cancelled", "charge"))(t)
		<-began
		orFail(e.Cancel(within(t), "cancelled"))(t)
		_, err = cancelled.Result(within(t))
		wantNotUndone(t, err, `"ship"`)
		if !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("the run ended with %v, want %v", err, durable.ErrCancelled)
		}
	})
}

// The error of a run that reached all kept calls before it failed does not mention them: their compensations were executed.
func TestARunThatReachesItsKeptCallsUndoesThem(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keyLedger
		sale := saleThatShips(&l, new(changingBank))
		var late atomic.Bool
		w := durable.Define("w", func(c *durable.Ctx, in string) (string, error) {
			if err := l.do(c, "look", nil); err != nil {
				return "", err
			}
			if err := c.Compensate("forget", func(ctx context.Context) error { l.note(ctx); return nil }); err != nil {
				return "", err
			}
			_, err := c.Child("sale", sale, in)
			if late.Load() {
				return "", errDeclined
			}
			return "done", err
		})
		e := engineOn(t, s, w, sale)
		running(t, e)
		run := orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
		wantResult(t, w, e, "r", "done")
		late.Store(true)
		orFail(e.Rerun(within(t), "r", "look"))(t)
		if _, err := run.Result(within(t)); !errors.Is(err, errDeclined) || errors.Is(err, durable.ErrCompensation) {
			t.Errorf("the run ended with %v, want only %v", err, errDeclined)
		}
		l.want(t, "in sum", "look", "charge", "ship", "look#2", "forget")
	})
}

// A run that expires before its kept calls names them as well.
func TestARunThatExpiresBeforeKeptCallsNamesThem(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keyLedger
		var bank changingBank
		w := saleThatShips(&l, &bank)
		e := engineOn(t, s, w)
		running(t, e)
		run := orFail(w.Start(within(t), e, "", durable.ID("r"), durable.Timeout(time.Hour)))(t)
		wantResult(t, w, e, "r", "sold")
		bank.hang()
		orFail(e.Rerun(within(t), "r", "charge"))(t)
		if err := e.SetTimeout(within(t), "r", time.Millisecond); err != nil {
			t.Fatal(err)
		}
		_, err := run.Result(within(t))
		wantNotUndone(t, err, `"ship"`)
		if !errors.Is(err, durable.ErrTimeout) {
			t.Errorf("the run ended with %v, want %v", err, durable.ErrTimeout)
		}
	})
}
