package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/bridge"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// lonely is a store on a server of its own that can be made to wait for an absent standby.
type lonely struct {
	*testing.T
	s      *database
	server *pgtest.Server
	look   *pgx.Conn
	at     time.Time
}

func newLonely(t *testing.T) *lonely {
	besideOthers(t)
	server, err := pgtest.Start(t.Context(), pgtest.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	look, err := pgx.Connect(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = look.Close(context.Background()) })
	l := &lonely{T: t, s: openAt(t, server.URL()), server: server, look: look}
	l.at = now(t, l.s)
	return l
}

// standby requires a standby that is absent, or, with an empty name, none.
func (l *lonely) standby(names ...string) {
	l.Helper()
	if err := l.server.RequireSynchronous(l.Context(), names...); err != nil {
		l.Fatal(err)
	}
	for _, pool := range []*pgxpool.Pool{l.s.enginePool, l.s.heartbeatPool, l.s.userPool} { // each session reloads its settings by itself
		for _, conn := range pool.AcquireAllIdle(l.Context()) {
			for now := "?"; now != strings.Join(names, ","); {
				if err := conn.QueryRow(l.Context(), "SHOW synchronous_standby_names", pgx.QueryExecModeExec).Scan(&now); err != nil {
					l.Fatal(err)
				}
			}
			conn.Release()
		}
	}
}

// waits reports whether a commit waits for the standby.
func (l *lonely) waits() (yes bool) {
	l.Helper()
	if err := l.look.QueryRow(l.Context(), "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'").Scan(&yes); err != nil {
		l.Fatal(err)
	}
	return yes
}

// cutOff calls act until one of its commits waits for the standby, and cancels that commit by interrupt.
// It returns the error of act.
func (l *lonely) cutOff(act func(context.Context) error, interrupt func(cancel context.CancelFunc)) error {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), time.Minute)
	defer cancel()
	ctx = bridge.WithOutlast(ctx, func(ctx context.Context) (context.Context, context.CancelFunc) { // the standby stays away
		return context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	})
	done := make(chan error, 1)
	go func() { done <- act(ctx) }()
	for !l.waits() {
		select {
		case err := <-done:
			if err == nil {
				l.Fatal("it was acknowledged, and nobody waited for the standby")
			}
			l.Fatal(err)
		default: // waits queries the server, which takes a round trip
		}
	}
	interrupt(cancel)
	err := <-done
	for l.waits() {
		if l.Context().Err() != nil {
			l.Fatal("the wait was not cancelled")
		}
	}
	return err
}

// lonelyCase is one kind of call. act is repeated until it is acknowledged.
type lonelyCase struct {
	name string
	act  func(l *lonely) func(context.Context) error // begins when no commit waits for the standby
}

func committed(b func(l *lonely) *store.Batch, check func() bool) func(*lonely) func(context.Context) error {
	return func(l *lonely) func(context.Context) error {
		batch := b(l)
		return func(ctx context.Context) error {
			if err := l.s.Commit(ctx, batch); err != nil {
				return err
			}
			if check != nil && !check() {
				return errors.New("it had another outcome")
			}
			return nil
		}
	}
}

func (l *lonely) run() store.Run {
	l.Helper()
	r := running(uuid.New(), l.at)
	begin(l, l.s, &store.StartWrite{Run: r})
	return r
}

// Rows that exist already are acknowledged only when they are as durable as acknowledged writes.
func TestWhatIsReadBackWaitsForTheStandby(t *testing.T) {
	l := newLonely(t)
	var start *store.StartWrite
	var step *store.StepWrite
	var taken *store.ReceiveWrite
	var sent *store.SignalWrite
	var end *store.OwnershipEnd
	ordered := func(verb store.ControlVerb) func(l *lonely) func(context.Context) error {
		return func(l *lonely) func(context.Context) error {
			r := l.run()
			if verb == store.VerbResume {
				order(l, l.s, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{r.UUID}})
			}
			return func(ctx context.Context) error {
				return l.s.ControlRuns(ctx, &store.ControlRequest{Verb: verb, Runs: []uuid.UUID{r.UUID}, Now: l.at})
			}
		}
	}
	for _, c := range []lonelyCase{
		{"start", committed(func(l *lonely) *store.Batch {
			start = &store.StartWrite{Run: running(uuid.New(), l.at)}
			return &store.Batch{Starts: []*store.StartWrite{start}}
		}, func() bool { return start.Outcome == store.Written })},
		{"start of a name", committed(func(l *lonely) *store.Batch {
			first, again := pending(l.at), pending(l.at)
			first.UUID, first.Name = store.NewRootIdentity("order-1")
			again.UUID, again.Name = store.NewRootIdentity("order-1")
			l.standby("away")
			_ = l.cutOff(func(ctx context.Context) error {
				return l.s.Commit(ctx, &store.Batch{Starts: []*store.StartWrite{{Run: first}}})
			}, func(cancel context.CancelFunc) { cancel() })
			start = &store.StartWrite{Run: again}
			return &store.Batch{Starts: []*store.StartWrite{start}}
		}, func() bool { return start.Outcome == store.AlreadyRecorded })},
		{"child", committed(func(l *lonely) *store.Batch {
			start = childOf(l.run().UUID, "kid", l.at)
			return &store.Batch{Starts: []*store.StartWrite{start}}
		}, func() bool { return start.Outcome == store.Written })},
		{"step", committed(func(l *lonely) *store.Batch {
			step = done(l.run().UUID, "charge", l.at)
			return &store.Batch{Steps: []*store.StepWrite{step}}
		}, func() bool { return step.Outcome == store.Written })},
		{"step over its marker", committed(func(l *lonely) *store.Batch {
			r := l.run()
			marker := done(r.UUID, "charge", l.at)
			marker.Step.Status, marker.Step.Output = store.StepStarted, nil
			commit(l, l.s, &store.Batch{Steps: []*store.StepWrite{marker}})
			step = done(r.UUID, "charge", l.at)
			step.RowExists = true
			return &store.Batch{Steps: []*store.StepWrite{step}}
		}, func() bool { return step.Outcome == store.Written })},
		{"receive", committed(func(l *lonely) *store.Batch {
			r := l.run()
			commit(l, l.s, &store.Batch{Signals: []*store.SignalWrite{signal(r.UUID, "paid", "1", l.at)}})
			taken = receive(r.UUID, "wait", "paid", l.at)
			return &store.Batch{Receives: []*store.ReceiveWrite{taken}}
		}, func() bool { return taken.Outcome == store.AlreadyRecorded || taken.Outcome == store.Written })},
		{"signal", committed(func(l *lonely) *store.Batch {
			sent = signal(l.run().UUID, "paid", "1", l.at)
			return &store.Batch{Signals: []*store.SignalWrite{sent}}
		}, func() bool { return sent.Outcome == store.Written })},
		{"end", committed(func(l *lonely) *store.Batch {
			end = finish(l.run().UUID, l.at)
			return &store.Batch{OwnershipEnds: []*store.OwnershipEnd{end}}
		}, func() bool { return end.Outcome == store.Written })},
		{"leave", committed(func(l *lonely) *store.Batch {
			end = &store.OwnershipEnd{UUID: l.run().UUID, Epoch: epochAt(1), Status: store.Waiting, WakeAt: l.at.Add(time.Hour), Now: l.at}
			return &store.Batch{OwnershipEnds: []*store.OwnershipEnd{end}}
		}, func() bool { return end.Outcome == store.Written })},
		{"pause", ordered(store.VerbPause)},
		{"resume", ordered(store.VerbResume)},
		{"cancel", ordered(store.VerbCancel)},
		{"tag", func(l *lonely) func(context.Context) error {
			r := l.run()
			return func(ctx context.Context) error {
				_, err := l.s.SetTags(ctx, r.UUID, []store.Tag{{Key: "team", Value: "a"}}, store.Epoch{}, store.ActorAndReason{})
				return err
			}
		}},
		{"tag removed", func(l *lonely) func(context.Context) error {
			r := l.run()
			if _, err := l.s.SetTags(l.Context(), r.UUID, []store.Tag{{Key: "team", Value: "a"}}, store.Epoch{}, store.ActorAndReason{}); err != nil {
				l.Fatal(err)
			}
			return func(ctx context.Context) error {
				_, err := l.s.SetTags(ctx, r.UUID, []store.Tag{{Key: "team"}}, store.Epoch{}, store.ActorAndReason{})
				return err
			}
		}},
		{"transaction", func(l *lonely) func(context.Context) error {
			w := done(l.run().UUID, "pay", l.at)
			w.Step.Kind = store.KindTx
			return func(ctx context.Context) error {
				return executeTxStep(ctx, l.s, w, func(context.Context) error { return nil })
			}
		}},
		{"blind transaction", func(l *lonely) func(context.Context) error { // does not check the checkpoint before it begins
			w := done(l.run().UUID, "pay", l.at)
			w.Step.Kind = store.KindTx
			return func(ctx context.Context) error {
				return l.s.executeTxStepOnce(ctx, w, func(context.Context, pgx.Tx) error { return nil }, nil)
			}
		}},
		{"history of a run that is taken over", func(l *lonely) func(context.Context) error {
			r := running(uuid.New(), l.at.Add(-time.Hour))
			r.WakeAt = l.at.Add(-time.Second)
			begin(l, l.s, &store.StartWrite{Run: r})
			claims := []store.ClaimedRun{{Run: r}}
			return func(ctx context.Context) error { return l.s.readTakenOverHistories(ctx, claims, []int{0}, 1<<20) }
		}},
		{"start in the caller's transaction", func(l *lonely) func(context.Context) error {
			r := pending(l.at)
			return func(ctx context.Context) error {
				return pgx.BeginFunc(ctx, l.s.userPool, func(tx pgx.Tx) error {
					return l.s.startRunsInTx(ctx, tx, []*store.StartWrite{{Run: r}})
				})
			}
		}},
		{"signal in the caller's transaction", func(l *lonely) func(context.Context) error {
			r := l.run()
			word := signal(r.UUID, "paid", "1", l.at)
			return func(ctx context.Context) error {
				return pgx.BeginFunc(ctx, l.s.userPool, func(tx pgx.Tx) error {
					return l.s.signalInTx(ctx, tx, store.RunRef{UUIDOrName: r.UUID.String()}, word)
				})
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := *l
			l.T = t
			l.standby()
			act := c.act(&l)
			l.standby("away")
			for range 2 { // a write, and a call that finds the written row
				if err := l.cutOff(act, func(cancel context.CancelFunc) { cancel() }); err == nil {
					t.Error("it was acknowledged although its wait was cancelled")
				}
			}
			l.standby()
			if err := act(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// An operator may cancel a commit's wait (pg_cancel_backend). The commit then returns, but its writes are
// not acknowledged.
func TestACancelledWaitAcknowledgesNothing(t *testing.T) {
	l := newLonely(t)
	cancelled := 0
	for name, act := range map[string]func() func(context.Context) error{
		"step": func() func(context.Context) error {
			w := done(l.run().UUID, "charge", l.at)
			return func(ctx context.Context) error { return l.s.Commit(ctx, &store.Batch{Steps: []*store.StepWrite{w}}) }
		},
		"transaction": func() func(context.Context) error {
			w := done(l.run().UUID, "pay", l.at)
			return func(ctx context.Context) error {
				return l.s.executeTxStepOnce(ctx, w, func(context.Context, pgx.Tx) error { return nil }, nil)
			}
		},
		"order": func() func(context.Context) error {
			r := l.run()
			return func(ctx context.Context) error {
				return l.s.tryTransaction(ctx, "order", controlLockTimeout, func(ask roundTripFunc) error {
					return l.s.tryControlRuns(ask, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{r.UUID}, Now: l.at})
				})
			}
		},
	} {
		l.standby()
		do := act()
		l.standby("away")
		err := l.cutOff(do, func(context.CancelFunc) {
			if _, err := l.look.Exec(t.Context(), "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"); err != nil {
				t.Fatal(err)
			}
			cancelled++
		})
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: got %v, want %v", name, err, store.ErrUnavailable)
		}
	}
	l.standby()
	t.Logf("cancelled=%d", cancelled)
}
