package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	sqlite "modernc.org/sqlite"

	"github.com/seed8ec063be/durable/internal/store"
)

// The user's writes and the checkpoint commit together, or not at all.
func TestCheckpointInTransaction(t *testing.T) {
	s := openTest(t)
	edit(t, s.path, "CREATE TABLE own (x TEXT)")
	run := startTestRuns(t, s, 1)[0]
	begun := newStep(run, "charge")
	begun.Step.Status, begun.Step.Output = store.StepStarted, nil
	if got := commitStep(t, s, begun); got != store.Written {
		t.Fatal(got)
	}
	count := func() (n int) {
		t.Helper()
		if err := s.readerDB.QueryRowContext(t.Context(), "SELECT count(*) FROM own").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for i, keep := range []bool{false, true} {
		tx, err := s.writer().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.ExecContext(t.Context(), "INSERT INTO own VALUES ('x')"); err != nil {
			t.Fatal(err)
		}
		w := newStep(run, "charge") // does not know of the started marker
		w.Step.Kind, w.Step.Output = store.KindTx, []byte{}
		if err := s.writeStepInTx(t.Context(), tx, w); err != nil || w.Outcome != store.Written {
			t.Fatal(w.Outcome, err)
		}
		again := newStep(run, "charge")
		again.Step.Attempt = 2
		if err := s.writeStepInTx(t.Context(), tx, again); err != nil || again.Outcome != store.AlreadyRecorded || !samePayload(again.RecordedStep.Output, []byte{}) {
			t.Fatal(again, err)
		}
		fenced := newStep(run, "other")
		fenced.Step.Epoch = epochAt(2)
		if err := s.writeStepInTx(t.Context(), tx, fenced); err != nil || fenced.Outcome != store.Fenced {
			t.Fatal(fenced, err)
		}
		fenced.Step.Epoch = store.Epoch{Count: 1, Nonce: 1}
		if err := s.writeStepInTx(t.Context(), tx, fenced); err != nil || fenced.Outcome != store.Fenced {
			t.Fatal(fenced, err)
		}
		child := newPending("child")
		if err := s.startRunsInTx(t.Context(), tx, []*store.StartWrite{child}); err != nil || child.Outcome != store.Written {
			t.Fatal(child, err)
		}
		// While it is open, no other write of this store gets in.
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		if err := s.Commit(ctx, &store.Batch{Starts: []*store.StartWrite{newStart("")}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
		if keep {
			err = tx.Commit()
		} else {
			err = tx.Rollback()
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := count(); got != i {
			t.Fatal(got, "rows of the user's")
		}
	}
	got, err := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: "child"}})
	if err != nil || got[0] == nil {
		t.Fatal(got, err)
	}
}

// OnStatementBegun is called by the SQL function durable_test_begun. An interrupt that comes before a statement begins does not end
// the statement, so a test must not interrupt it earlier.
var OnStatementBegun atomic.Pointer[context.CancelFunc]

func init() {
	sqlite.MustRegisterScalarFunction("durable_test_begun", 0, func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
		(*OnStatementBegun.Load())()
		return int64(1), nil
	})
}

// A transaction whose context ends takes its connection with it, together with
// the statements prepared on it; the next one works.
func TestCancelledTransaction(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		tx, err := s.writer().BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		OnStatementBegun.Store(&cancel)
		_, err = tx.ExecContext(ctx, `WITH RECURSIVE n(i) AS (SELECT durable_test_begun() UNION ALL SELECT i + 1 FROM n)
			INSERT INTO durable_migration SELECT i, 'x', 0 FROM n WHERE i < 0`)
		if err == nil {
			t.Fatal("an endless statement ended")
		}
		if err := s.writeStepInTx(ctx, tx, newStep(run, "x")); err == nil {
			t.Fatal("a checkpoint in a dead transaction succeeded")
		}
		_ = tx.Rollback()
		s.mustCommit(t, newStart(""))
	}
}
