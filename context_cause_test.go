package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// Calls that end with their context return an error that wraps the context's own error too, also if the context has a cause, such as the
// signal of signal.NotifyContext. A caller finds out by errors.Is that it was only cancelled.
func TestEndedCallsWrapTheContextsErrorAndItsCause(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("waits", func(c *durable.Ctx, _ int) (int, error) { return 0, nil })
		client := engineOn(t, s)
		run, err := w.Start(within(t), client, 0, durable.ID("a"))
		if err != nil {
			t.Fatal(err)
		}
		cause := errors.New("interrupt signal received")
		cancelled, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		late, cancelLate := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), cause)
		defer cancelLate()
		for want, ctx := range map[error]context.Context{context.Canceled: cancelled, context.DeadlineExceeded: late} {
			for name, call := range map[string]func() error{
				"Result": func() error { _, err := run.Result(ctx); return err },
				"Start":  func() error { _, err := w.Start(ctx, client, 0, durable.ID("b")); return err },
				"StartMany": func() error {
					_, err := w.StartMany(ctx, client, []durable.StartItem[int]{{Input: 1}})
					return err
				},
				"WatchEvents": func() (last error) {
					for _, err := range client.WatchEvents(ctx, "") {
						last = err
					}
					return last
				},
			} {
				err := call()
				if !errors.Is(err, want) || !errors.Is(err, cause) || strings.Count(err.Error(), cause.Error()) != 1 {
					t.Errorf("%s: %v, want %v and, once, %v", name, err, want, cause)
				}
			}
		}
		if _, err := client.Get(within(t), "b"); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("the run of a start with an ended context: %v, want ErrNotFound", err)
		}
	})
}

// backfillEndingStore is a store that ends the context of the caller when it has changed a schedule.
type backfillEndingStore struct {
	durable.Store
	end func()
}

func (s *backfillEndingStore) ChangeSchedule(ctx context.Context, u *store.ScheduleChangeRequest) error {
	defer s.end()
	return s.Store.ChangeSchedule(ctx, u)
}

// The same holds for a call whose context ends between two of its transactions.
func TestACallEndedBetweenTransactionsWrapsTheContextsError(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
		if err := engineOn(t, s).SetSchedule(within(t), w.Schedule(1, durable.Schedule{Name: "daily", Cron: "@daily"})); err != nil {
			t.Fatal(err)
		}
		cause := errors.New("interrupt signal received")
		ctx, cancel := context.WithCancelCause(within(t))
		e := engineOn(t, &backfillEndingStore{s, func() { cancel(cause) }})
		to := read(e.Now(within(t)))(t)
		done, err := e.Backfill(ctx, "daily", to.AddDate(-1, 0, 0), to)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || done.Started == 0 {
			t.Errorf("got %+v, %v, want %v and %v after the first transaction", done, err, context.Canceled, cause)
		}
	})
}
