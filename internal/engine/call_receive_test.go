package engine

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// mailbox is a store with the signals and the receives of one run.
type mailbox struct {
	slate
	mu      sync.Mutex
	signals []*store.SignalWrite
	rows    map[string]*store.Step // as recorded, by name
	queries int
	fenced  bool
	orders  []*store.ControlRequest
}

// send stores a signal that has just arrived. It wakes nobody.
func (s *mailbox) send(name, payload string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.signals = append(s.signals, &store.SignalWrite{Name: name, Payload: []byte(payload), ArrivedAt: time.Now()})
}

// recorded returns the row with the name, as it is recorded now.
func (s *mailbox) recorded(name string) store.Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.rows[name]
}

func (s *mailbox) Commit(ctx context.Context, b *store.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range b.Receives {
		s.receive(w)
	}
	return s.slate.Commit(ctx, b)
}

// receive does what store.ReceiveWrite demands of a store. s.mu is held.
func (s *mailbox) receive(w *store.ReceiveWrite) {
	s.queries++
	if s.fenced {
		w.Outcome = store.Fenced
		return
	}
	row, bound := w.Step, time.Time{}
	if had := s.rows[row.Name]; had != nil {
		if had.Status.IsTerminal() {
			w.Outcome, w.RecordedStep = store.AlreadyRecorded, had
			return
		}
		bound = had.NextAt
		if had.Attempt == row.Attempt {
			row.StartedAt, row.NextAt = had.StartedAt, had.NextAt
		}
	}
	for i, signal := range s.signals {
		if signal.Name == w.Signal && (bound.IsZero() || !signal.ArrivedAt.After(bound)) {
			row.Status, row.Output, row.Error = store.StepCompleted, signal.Payload, nil
			s.signals = append(s.signals[:i:i], s.signals[i+1:]...)
			break
		}
	}
	s.rows[row.Name] = &row
	w.Outcome, w.RecordedStep = store.Written, &row
}

func (s *mailbox) ControlRuns(_ context.Context, o *store.ControlRequest) error {
	s.orders = append(s.orders, o)
	return nil
}

// newMailbox returns a run with the history, and its store.
func newMailbox(t *testing.T, history ...store.Step) (*run, *mailbox) {
	t.Helper()
	s := &mailbox{rows: make(map[string]*store.Step)}
	for i := range history {
		own := history[i]
		s.rows[own.Name] = &own
	}
	return newLoneRun(t, s, store.ClaimedRun{History: history}), s
}

// within is the time limit of the receives in these tests. It is so short that they keep the run in memory.
const within = 500 * time.Millisecond

// atReceive is a receive of the signal "go" within the time limit.
func atReceive(otherwise TimeoutAction) *ReceiveSpec {
	return &ReceiveSpec{Name: "wait", Signal: "go", TimeLimit: within, HasTimeLimit: true, OnTimeout: otherwise, TimeoutValue: []byte("nobody")}
}

// rests fails the test unless the run has nothing in progress.
func (r *run) rests(t *testing.T) {
	t.Helper()
	if r.idleTracker.activeCalls != 0 || len(r.idleTracker.waits) != 0 || len(r.waitingReceives.receives) != 0 {
		t.Errorf("%d calls are active, %d wait, %d receives are left", r.idleTracker.activeCalls, len(r.idleTracker.waits), len(r.waitingReceives.receives))
	}
}

// A signal that waits is taken by the first query. The others remain for other receives.
func TestReceiveTakesASignalThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newMailbox(t)
		s.send("other", "0")
		s.send("go", "1")
		s.send("go", "2")
		for i, want := range []string{"1", "2"} {
			spec := atReceive(TimeoutFails)
			spec.Name = "wait " + want
			res, err := r.scope().Receive(spec)
			if err != nil || string(res.Output) != want || res.Failure != nil || s.queries != i+1 {
				t.Errorf("received %q, %v, %v with %d queries", res.Output, res.Failure, err, s.queries)
			}
		}
		r.rests(t)
	})
}

// A receive without a signal records until when it waits, queries again whenever the run is woken, and takes
// the signal when it comes.
func TestReceiveWaitsForItsSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newMailbox(t)
		began := r.e.clock.Now()
		time.AfterFunc(100*time.Millisecond, r.recheckWaits) // a wake for another signal
		time.AfterFunc(200*time.Millisecond, func() {
			if row := s.recorded("wait"); row.Status != store.StepStarted || !row.StartedAt.Equal(began) || !row.NextAt.Equal(began.Add(within)) {
				t.Errorf("recorded while it waits: %+v", row)
			}
			s.send("go", "now")
			r.recheckWaits()
		})
		res, err := r.scope().Receive(atReceive(TimeoutFails))
		if took := r.e.clock.Now().Sub(began); err != nil || string(res.Output) != "now" || took != 200*time.Millisecond {
			t.Errorf("received %q, %v after %v", res.Output, err, took)
		}
		if s.queries != 3 {
			t.Errorf("%d queries were sent", s.queries)
		}
		r.rests(t)
	})
}

// When the time of a receive is over, what its OnTimeout says happens, and is recorded. It is never early. A
// signal that arrived in time is taken all the same, even if nobody told the run; one that came later is not.
func TestReceiveTimesOut(t *testing.T) {
	for name, c := range map[string]struct {
		otherwise TimeoutAction
		sent      time.Duration // when the signal arrives, without a wake; zero: never
		output    string
		failed    bool
		err       error
		status    store.Status // of the run's early end; zero: the run goes on
	}{
		"fails":                     {otherwise: TimeoutFails, failed: true},
		"goes on":                   {otherwise: TimeoutReturnsValue, output: "nobody"},
		"cancels":                   {otherwise: TimeoutCancels, err: ErrCancelled, status: store.Cancelled},
		"expires":                   {otherwise: TimeoutExpires, err: ErrTimeout, status: store.Expired},
		"fails, signal in time":     {otherwise: TimeoutFails, sent: within - time.Millisecond, output: "go"},
		"goes on, signal in time":   {otherwise: TimeoutReturnsValue, sent: within, output: "go"},
		"cancels, signal in time":   {otherwise: TimeoutCancels, sent: within, output: "go"},
		"escalates, signal in time": {otherwise: TimeoutEscalates, sent: within, output: "go"},
		"goes on, signal too late":  {otherwise: TimeoutReturnsValue, sent: within + time.Microsecond, output: "nobody"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, s := newMailbox(t)
				if c.sent > 0 {
					time.AfterFunc(c.sent, func() { s.send("go", "go") })
				}
				began := time.Now()
				spec := atReceive(c.otherwise)
				spec.Escalate = func(*EscalationWriter, string) error { t.Error("it escalates"); return nil }
				res, err := r.scope().Receive(spec)
				if took := time.Since(began); took < within || took > within+time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if !errors.Is(err, c.err) || string(res.Output) != c.output || (res.Failure != nil) != c.failed {
					t.Errorf("received %q, %+v, %v", res.Output, res.Failure, err)
				}
				if c.failed && res.Failure.Codes[0] != record.CodeTimeout {
					t.Errorf("the failure has the codes %v", res.Failure.Codes)
				}
				if end := r.forcedEnd; (end != nil) != (c.status != 0) || end != nil && end.status != c.status {
					t.Errorf("the run must end: %+v", end)
				}
				if cancels := c.status == store.Cancelled; (len(s.orders) == 1) != cancels || cancels && s.orders[0].Verb != store.VerbCancel {
					t.Errorf("ordered: %+v", s.orders)
				}
				if row := s.recorded("wait"); !row.Status.IsTerminal() || (row.Status == store.StepFailed) != (c.failed || c.status != 0) {
					t.Errorf("recorded: %+v", row)
				}
				r.rests(t)
			})
		})
	}
}

// An escalation is called once, when the time is over. Then the receive waits without a limit.
func TestReceiveEscalatesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := newMailbox(t)
		escalated := 0
		spec := atReceive(TimeoutEscalates)
		spec.Escalate = func(_ *EscalationWriter, id string) error {
			escalated++
			if want := r.row.UUID.String() + ":wait"; id != want {
				t.Errorf("escalated as %q, want %q", id, want)
			}
			time.AfterFunc(sequentialRunIdleTime/2, func() {
				if row := s.recorded("wait"); row.Attempt != 2 || !row.NextAt.IsZero() {
					t.Errorf("recorded after the escalation: %+v", row)
				}
				s.send("go", "late")
				r.recheckWaits()
			})
			return nil
		}
		res, err := r.scope().Receive(spec)
		if err != nil || string(res.Output) != "late" || escalated != 1 {
			t.Errorf("received %q, %v after %d escalations", res.Output, err, escalated)
		}
		r.rests(t)
	})
}

// A receive that history holds returns its outcome without a query. An open one keeps its time limit, which
// counts from the first execution.
func TestReceiveContinuesItsHistory(t *testing.T) {
	began := time.Now().UTC().Truncate(time.Microsecond)
	timeout := (&record.Failure{Message: "too late", Codes: []string{record.CodeTimeout}}).Encode()
	row := store.Step{Name: "wait", Kind: store.KindReceive, Seq: 1, Attempt: 1, StartedAt: began}
	for name, c := range map[string]struct {
		status    store.StepStatus
		otherwise TimeoutAction
		output    string
		failed    bool
		err       error
	}{
		"completed":          {status: store.StepCompleted, output: "then"},
		"failed":             {status: store.StepFailed, failed: true},
		"expired at the end": {status: store.StepFailed, otherwise: TimeoutExpires, err: ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				row := row
				if row.Status = c.status; c.status == store.StepFailed {
					row.Error = timeout
				} else {
					row.Output = []byte(c.output)
				}
				r, s := newMailbox(t, row)
				res, err := r.scope().Receive(atReceive(c.otherwise))
				if !errors.Is(err, c.err) || string(res.Output) != c.output || (res.Failure != nil) != c.failed || s.queries != 0 {
					t.Errorf("received %q, %v, %v with %d queries", res.Output, res.Failure, err, s.queries)
				}
			})
		})
	}
	t.Run("open", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now().UTC()
			row := row
			row.Status, row.StartedAt, row.NextAt = store.StepStarted, now.Add(-400*time.Millisecond), now.Add(100*time.Millisecond)
			r, s := newMailbox(t, row)
			res, err := r.scope().Receive(atReceive(TimeoutFails))
			if took := time.Since(now); err != nil || res.Failure == nil || took < 100*time.Millisecond || took > 101*time.Millisecond {
				t.Errorf("received %q, %v, %v after %v", res.Output, res.Failure, err, took)
			}
			if had := s.recorded("wait"); !had.StartedAt.Equal(row.StartedAt) || had.Seq != row.Seq {
				t.Errorf("recorded: %+v", had)
			}
		})
	})
}

// A receive whose time was over while no process executed the run takes a signal that arrived in time, and
// does not escalate.
func TestReceiveTakesAnOldSignalBeforeItTimesOut(t *testing.T) {
	for _, otherwise := range []TimeoutAction{TimeoutFails, TimeoutEscalates} {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now().UTC()
			r, s := newMailbox(t, store.Step{
				Name: "wait", Kind: store.KindReceive, Seq: 1, Attempt: 1, Status: store.StepStarted,
				StartedAt: now.Add(-time.Minute), NextAt: now,
			})
			s.send("go", "in time")
			time.Sleep(time.Minute)
			spec := atReceive(otherwise)
			spec.Escalate = func(*EscalationWriter, string) error { t.Error("it escalates"); return nil }
			if res, err := r.scope().Receive(spec); err != nil || string(res.Output) != "in time" {
				t.Errorf("received %q, %v, %v", res.Output, res.Failure, err)
			}
		})
	}
}

// A receive that may not take a signal takes none, and says why.
func TestReceiveTakesNothing(t *testing.T) {
	taken := store.Step{Name: "wait", Kind: store.KindStep, Status: store.StepCompleted, Attempt: 1}
	for name, c := range map[string]struct {
		history []store.Step
		act     func(r *run, s *mailbox, spec *ReceiveSpec) *Scope
		queries int
		want    error
		gone    bool
	}{
		"an invalid name": {act: func(r *run, _ *mailbox, spec *ReceiveSpec) *Scope { spec.Name = "a\x00"; return r.scope() }, want: naming.ErrInvalid},
		"inside a step": {act: func(r *run, _ *mailbox, _ *ReceiveSpec) *Scope {
			s := r.scope()
			s.isInsideStep = true
			return s
		}, want: ErrNestedStep},
		"another kind is recorded": {history: []store.Step{taken}, want: ErrDiverged, gone: true},
		"a suspended run":          {act: func(r *run, _ *mailbox, _ *ReceiveSpec) *Scope { r.loseOwnership(); return r.scope() }, want: ErrSuspended, gone: true},
		"a cancelled run":          {act: func(r *run, _ *mailbox, _ *ReceiveSpec) *Scope { r.forceEnd(newCancelledEnd()); return r.scope() }, want: ErrCancelled},
		"a run of another process": {act: func(r *run, s *mailbox, _ *ReceiveSpec) *Scope { s.fenced = true; return r.scope() }, queries: 1, want: ErrSuspended, gone: true},
		"a branch that ends while it waits": {act: func(r *run, s *mailbox, _ *ReceiveSpec) *Scope {
			b, err := r.scope().OpenBranch("branch", 0)
			if err != nil {
				panic(err)
			}
			time.AfterFunc(time.Millisecond, func() { // the choice is recorded, and the contexts of the branch have not ended yet
				r.mu.Lock()
				b.endByChoice = &branchEndedByChoice{choice: "first", endedAt: time.Now(), branch: b}
				r.mu.Unlock()
				s.send("go", "too late")
				r.recheckWaits()
			})
			return b.Scope()
		}, queries: 1, want: ErrCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, s := newMailbox(t, c.history...)
				spec, scope := atReceive(TimeoutFails), r.scope()
				if c.act != nil {
					scope = c.act(r, s, spec)
				}
				if res, err := scope.Receive(spec); !errors.Is(err, c.want) || res.Output != nil || res.Failure != nil {
					t.Errorf("received %q, %v, %v, want the error %v", res.Output, res.Failure, err, c.want)
				}
				if s.queries != c.queries || r.isSuspended() != c.gone {
					t.Errorf("%d queries, want %d; the run is suspended: %v", s.queries, c.queries, r.isSuspended())
				}
				r.rests(t)
			})
		})
	}
}
