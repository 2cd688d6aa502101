package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func commit(t *testing.T, s *database, b *store.Batch) {
	t.Helper()
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func commitStep(t *testing.T, s *database, w *store.StepWrite) store.WriteOutcome {
	t.Helper()
	commit(t, s, &store.Batch{Steps: []*store.StepWrite{w}})
	return w.Outcome
}

func TestStartsAdoptAndReplay(t *testing.T) {
	s := openTest(t)
	first, second := newStart("order-42"), newStart("order-42")
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{first, second}})
	if first.Outcome != store.Written || second.Outcome != store.AlreadyRecorded {
		t.Fatal(first.Outcome, second.Outcome)
	}
	if second.ExistingRun == nil || second.ExistingRun.UUID != first.Run.UUID || !second.ExistingRun.CreatedAt.Equal(truncateTime(first.Run.CreatedAt)) {
		t.Fatalf("adopted %+v", second.ExistingRun)
	}
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{first}})
	if first.Outcome != store.Written {
		t.Fatal("a replay returned", first.Outcome)
	}
	taken := newStart("order-42-b")
	taken.Run.UUID = first.Run.UUID
	if err := s.Commit(t.Context(), &store.Batch{Starts: []*store.StartWrite{taken}}); !errors.Is(err, store.ErrBadData) {
		t.Fatal("a taken ID returned", err)
	}
}

func TestStepRules(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	state := func(status store.StepStatus, attempt, epoch int32, exists bool) *store.StepWrite {
		w := newStep(run, "send")
		w.Step.Status, w.Step.Attempt, w.Step.Epoch, w.RowExists = status, attempt, epochAt(epoch), exists
		if !status.IsTerminal() {
			w.Step.Output = nil
		}
		return w
	}
	for i, c := range []struct {
		write *store.StepWrite
		want  store.WriteOutcome
	}{
		{state(store.StepStarted, 1, 2, false), store.Fenced},
		{state(store.StepStarted, 1, 1, false), store.Written},
		{state(store.StepStarted, 1, 1, false), store.Written}, // replayed
		{state(store.StepBackoff, 1, 1, true), store.Written},
		{state(store.StepStarted, 1, 1, true), store.Written}, // late: changes nothing, see below
		{state(store.StepStarted, 2, 1, true), store.Written},
		{state(store.StepCompleted, 2, 0, true), store.Fenced},
		{state(store.StepCompleted, 2, 1, true), store.Written},
		{state(store.StepCompleted, 2, 1, true), store.Written}, // replayed
		{state(store.StepCompleted, 3, 1, true), store.AlreadyRecorded},
		{state(store.StepFailed, 1, 1, false), store.AlreadyRecorded},
		{state(store.StepStarted, 4, 1, true), store.AlreadyRecorded},
	} {
		if got := commitStep(t, s, c.write); got != c.want {
			t.Fatalf("case %d: %d, want %d", i, got, c.want)
		}
		if c.want == store.AlreadyRecorded && c.write.RecordedStep == nil {
			t.Fatalf("case %d: nothing recorded", i)
		}
		if c.want == store.Fenced && (!c.write.RunState.Found || c.write.RunState.Epoch != epochAt(1) || c.write.RunState.Status != store.Running) {
			t.Fatalf("case %d: state %+v", i, c.write.RunState)
		}
	}
	late := openTest(t)
	other := startTestRuns(t, late, 1)[0]
	for _, status := range []store.StepStatus{store.StepBackoff, store.StepStarted} {
		w := newStep(other, "late")
		w.Step.Status, w.Step.Attempt = status, 1
		if got := commitStep(t, late, w); got != store.Written {
			t.Fatal(got)
		}
	}
	if rows, err := late.History(t.Context(), other); err != nil || len(rows) != 1 || rows[0].Status != store.StepBackoff {
		t.Fatal("a late marker took:", rows, err)
	}
	missing := newStep(run, "never seen")
	missing.RowExists = true // the writer thinks so; its marker was lost
	if got := commitStep(t, s, missing); got != store.Written {
		t.Fatal(got)
	}
	unknown := newStep(store.NewUUID(3), "send")
	if got := commitStep(t, s, unknown); got != store.Fenced || unknown.RunState.Found {
		t.Fatal(got, unknown.RunState)
	}
}

func TestRunWriteRules(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	finish := func(status store.Status, epoch store.Epoch) *store.OwnershipEnd {
		w := &store.OwnershipEnd{UUID: run, Epoch: epoch, Status: status, EndedAt: time.Now(), Output: []byte{}}
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{w}})
		return w
	}
	if w := finish(store.Completed, epochAt(2)); w.Outcome != store.Fenced || w.RunState.Epoch != epochAt(1) {
		t.Fatalf("%+v", w)
	}
	done := finish(store.Completed, epochAt(1))
	if done.Outcome != store.Written {
		t.Fatalf("%+v", done)
	}
	commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{done}})
	if done.Outcome != store.Written {
		t.Fatal("a replay returned", done.Outcome)
	}
	if w := finish(store.Failed, epochAt(1)); w.Outcome != store.Fenced || w.RunState.Status != store.Completed {
		t.Fatalf("%+v", w)
	}
	late := newStep(run, "late")
	if got := commitStep(t, s, late); got != store.Fenced || late.RunState.Status != store.Completed {
		t.Fatal(got, late.RunState)
	}
}

// Names and payloads come back byte for byte, nil apart from empty.
func TestBytesAreKept(t *testing.T) {
	s := openTest(t)
	names := []string{"", "a", "a ", "A", "a\x00b", "a\x00", "\xff\xfe", "\xc3\x28", "'; DROP TABLE durable_run; --", "%s", "🙂", "?1"}
	payloads := [][]byte{nil, {}, {0}, []byte("\xff\x00x"), bytes.Repeat([]byte("x"), 1<<20)}
	batch := &store.Batch{}
	for i, name := range names {
		if name == "" {
			continue // a root without a name is named by its ID
		}
		w := newStart(name)
		w.Run.Input = payloads[i%len(payloads)]
		batch.Starts = append(batch.Starts, w)
	}
	run := batch.Starts[0].Run.UUID
	for i, name := range names {
		w := newStep(run, name)
		w.Step.Output, w.Step.Error = payloads[i%len(payloads)], payloads[(i+1)%len(payloads)]
		batch.Steps = append(batch.Steps, w)
	}
	commit(t, s, batch)
	for _, w := range batch.Starts {
		got, err := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: w.Run.Name}, {UUIDOrName: w.Run.UUID.String()}, {UUIDOrName: w.Run.Name + "\x00"}})
		if err != nil || got[0] == nil || got[1] == nil {
			t.Fatalf("%q: %v %v", w.Run.Name, got, err)
		}
		if got[0].UUID != w.Run.UUID || got[1].Name != w.Run.Name || !samePayload(got[0].Input, w.Run.Input) {
			t.Errorf("%q came back as %q", w.Run.Name, got[1].Name)
		}
	}
	history, err := s.History(t.Context(), run)
	if err != nil || len(history) != len(names) {
		t.Fatal(len(history), err)
	}
	wanted := map[string]*store.Step{}
	for _, w := range batch.Steps {
		wanted[w.Step.Name] = &w.Step
	}
	for i, p := range history {
		if i > 0 && history[i-1].Name >= p.Name {
			t.Errorf("%q stands before %q", history[i-1].Name, p.Name)
		}
		if w := wanted[p.Name]; w == nil || !samePayload(p.Output, w.Output) || !samePayload(p.Error, w.Error) {
			t.Errorf("step %q came back otherwise", p.Name)
		}
	}
}

// A step without a start time breaks a constraint; its neighbours are not written
// either, and the writer stays usable.
func TestRejectedRowUndoesTheBatch(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	bad := newStep(run, "bad")
	bad.Step.StartedAt = time.Time{}
	err := s.Commit(t.Context(), &store.Batch{Steps: []*store.StepWrite{newStep(run, "a"), bad, newStep(run, "c")}})
	if !errors.Is(err, store.ErrRejected) {
		t.Fatal(err)
	}
	if history, err := s.History(t.Context(), run); err != nil || len(history) > 0 {
		t.Fatal(history, err)
	}
	if got := commitStep(t, s, newStep(run, "c")); got != store.Written {
		t.Fatal(got)
	}
}

// cancelAfter is a context that ends at the nth look at it.
type cancelAfter struct {
	context.Context
	looks int
}

func (c *cancelAfter) Err() error {
	if c.looks--; c.looks < 0 {
		return context.Canceled
	}
	return nil
}

func TestCancelledCommitLeavesTheWriterUsable(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	for looks := range 12 {
		batch := &store.Batch{}
		for i := range 300 {
			batch.Steps = append(batch.Steps, newStep(run, fmt.Sprintf("%d-%d", looks, i)))
		}
		err := s.Commit(&cancelAfter{t.Context(), looks}, batch)
		history, herr := s.History(t.Context(), run)
		if herr != nil {
			t.Fatal(herr)
		}
		if err == nil {
			if looks < 3 || len(history) != 300 {
				t.Fatal(looks, len(history))
			}
			return
		}
		if !errors.Is(err, context.Canceled) || len(history) != 0 {
			t.Fatal(looks, err, len(history))
		}
		// Another process could take the lock: the writer is out of its transaction.
		openAt(t, s.path).mustCommit(t, newStart(""))
	}
	t.Fatal("no commit got through")
}

func (s *database) mustCommit(t *testing.T, w *store.StartWrite) {
	t.Helper()
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{w}})
}

// A deadline bounds the wait for a lock of another process, and for this store's
// own writer.
func TestDeadlineBoundsTheWait(t *testing.T) {
	s := openTest(t)
	other := openAt(t, s.path, BusyTimeout(time.Millisecond))
	tx, err := s.writer().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, waiting := range []*database{s, openAt(t, s.path)} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		err := waiting.Commit(ctx, &store.Batch{Starts: []*store.StartWrite{newStart("x")}})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	if err := other.Commit(t.Context(), &store.Batch{Starts: []*store.StartWrite{newStart("x")}}); !errors.Is(err, store.ErrUnavailable) {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	s.mustCommit(t, newStart("x"))
	other.mustCommit(t, newStart("y"))
}

func TestDiskFull(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	limit := func(pages int) {
		if _, err := s.writer().ExecContext(t.Context(), fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(40)
	big := newStep(run, "big")
	big.Step.Output = bytes.Repeat([]byte("x"), 1<<20)
	for _, steps := range [][]*store.StepWrite{{newStep(run, "small"), big}, {big}} { // a transaction of several statements, and one statement alone
		err := s.Commit(t.Context(), &store.Batch{Steps: steps})
		if !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
		if history, err := s.History(t.Context(), run); err != nil || len(history) != 0 {
			t.Fatal(history, err)
		}
	}
	limit(1 << 20)
	if got := commitStep(t, s, big); got != store.Written {
		t.Fatal(got)
	}
}

func TestClosed(t *testing.T) {
	s := openTest(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, errNow := s.Now(t.Context())
	_, errGet := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: "x"}})
	_, errClaim := s.Claim(t.Context(), store.ClaimQuery{Filter: served(), Limit: 1})
	_, errRenew := s.RenewLeases(t.Context(), store.Heartbeat{Worker: store.Worker{ID: uuid.New()}})
	errCommit := s.Commit(t.Context(), &store.Batch{Starts: []*store.StartWrite{newStart("x")}})
	errAttend := s.Listen(t.Context(), uuid.New(), func(store.WakeHint) {})
	for i, err := range []error{errNow, errGet, errClaim, errRenew, errCommit, errAttend} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}
