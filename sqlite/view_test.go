package sqlite

import (
	"database/sql"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// The view of steps shows what calls are doing, in words: a sleep until it is over, and what an ended run has left.
func TestViewShowsWhatCallsDo(t *testing.T) {
	s := openTest(t)
	at := now()
	for name, want := range map[string][]string{
		"live":  {"first completed", "nap started", "over completed", "wait started", "again backoff"},
		"ended": {"first completed", "nap cancelled", "over completed", "wait cancelled", "again cancelled"},
	} {
		r := startTestRuns(t, s, 1)[0]
		epoch := row(t, s, r).Epoch
		var b store.Batch
		for i, step := range []store.Step{
			{Name: "first", Kind: store.KindStep, Status: store.StepCompleted},
			{Name: "nap", Kind: store.KindSleep, Status: store.StepCompleted, NextAt: at.Add(time.Hour)},
			{Name: "over", Kind: store.KindSleep, Status: store.StepCompleted, NextAt: at.Add(-time.Second)},
			{Name: "wait", Kind: store.KindReceive, Status: store.StepStarted},
			{Name: "again", Kind: store.KindStep, Status: store.StepBackoff, Failures: []byte(`{"first":{"attempt":1}}`)},
		} {
			step.Run, step.Seq, step.Attempt, step.Epoch, step.StartedAt = r, int32(i+1), 1, epoch, at.Add(-time.Minute)
			b.Steps = append(b.Steps, &store.StepWrite{Step: step})
		}
		if err := s.Commit(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if name == "ended" {
			end := &store.OwnershipEnd{UUID: r, Now: at, EndedAt: at, Epoch: epoch, Status: store.Completed}
			if err := s.Commit(t.Context(), &store.Batch{OwnershipEnds: []*store.OwnershipEnd{end}}); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := s.Writer().QueryContext(t.Context(), `SELECT name, status, ended_at, failures FROM durable_steps WHERE run_id = hex(?) ORDER BY seq`, r[:])
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for rows.Next() {
			var name, status string
			var ended, failures sql.NullString
			if err := rows.Scan(&name, &status, &ended, &failures); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(name, " ", status))
			if ended.Valid != (status == "cancelled" || name == "over") {
				t.Errorf("%s is %s, and ended at %v", name, status, ended)
			}
			if failures.Valid != (name == "again") {
				t.Errorf("%s has the failures %v", name, failures)
			}
		}
		if err := rows.Err(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
		_ = rows.Close()
	}
}

// The views show the size of payloads that a codec has encoded.
func TestViewsShowEncodedPayloads(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	encoded := []byte{0xc0, 1, 0xff, 0}
	sent := newSignal(run, "s", now())
	sent.Payload = encoded
	sendSignals(t, s, sent)
	commitStep(t, s, &store.StepWrite{Step: store.Step{
		Run: run, Name: "a", Kind: store.KindStep, Status: store.StepCompleted, Seq: 1, Attempt: 1, Epoch: epochAt(1), StartedAt: now(),
		Output: encoded, Error: []byte(`{"message":"no"}`), Failures: encoded,
	}})
	var got string
	err := s.writer().QueryRowContext(t.Context(), `SELECT s.output || s.error || s.failures || m.payload
		FROM durable_steps s JOIN durable_signals m ON m.run_id = s.run_id WHERE s.run_id = hex(?)`, run[:]).Scan(&got)
	if want := `{"encoded":4}{"message":"no"}{"encoded":4}{"encoded":4}`; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// The view of signals shows the call that has received a signal as people see its name.
func TestTheViewOfSignalsShowsNames(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	sendSignals(t, s, newSignal(run, "s", now()))
	if _, err := s.writer().ExecContext(t.Context(), `UPDATE durable_signal SET step = ? WHERE run_id = ?`, "b"+naming.Separator+"go/on", run[:]); err != nil {
		t.Fatal(err)
	}
	var got string
	err := s.writer().QueryRowContext(t.Context(), `SELECT received_by FROM durable_signals WHERE run_id = hex(?)`, run[:]).Scan(&got)
	if want := "b/go%2Fon"; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
