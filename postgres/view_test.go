package postgres

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// The view of steps shows the states of calls in words: sleeps until they are over, and the open calls of
// an ended run.
func TestViewShowsWhatCallsDo(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	at := now(t, s)
	for name, want := range map[string][]string{
		"live":  {"first completed", "nap started", "over completed", "wait started", "again backoff"},
		"ended": {"first completed", "nap cancelled", "over completed", "wait cancelled", "again cancelled"},
	} {
		r := running(uuid.New(), at)
		commit(t, s, &store.Batch{Starts: []*store.StartWrite{{Run: r}}})
		var b store.Batch
		for i, step := range []store.Step{
			{Name: "first", Kind: store.KindStep, Status: store.StepCompleted},
			{Name: "nap", Kind: store.KindSleep, Status: store.StepCompleted, NextAt: at.Add(time.Hour)},
			{Name: "over", Kind: store.KindSleep, Status: store.StepCompleted, NextAt: at.Add(-time.Second)},
			{Name: "wait", Kind: store.KindReceive, Status: store.StepStarted},
			{Name: "again", Kind: store.KindStep, Status: store.StepBackoff, Failures: []byte(`{"first":{"attempt":1}}`)},
		} {
			step.Run, step.Seq, step.Attempt, step.Epoch, step.StartedAt = r.UUID, int32(i+1), 1, r.Epoch, at.Add(-time.Minute)
			b.Steps = append(b.Steps, &store.StepWrite{Step: step})
		}
		commit(t, s, &b)
		if name == "ended" {
			commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{finish(r.UUID, at)}})
		}
		rows, err := conn.Query(t.Context(), `SELECT name, status, ended_at, failures::text FROM durable.steps WHERE run_id = $1 ORDER BY seq`, pgUUID(r.UUID))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for rows.Next() {
			var name, status string
			var ended *time.Time
			var failures *string
			if err := rows.Scan(&name, &status, &ended, &failures); err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(name, " ", status))
			if status == "cancelled" && (ended == nil || !ended.Equal(at)) || status == "started" && ended != nil || name == "over" && !ended.Equal(at.Add(-time.Second)) {
				t.Errorf("%s is %s, and ended at %v", name, status, ended)
			}
			if (failures != nil) != (name == "again") {
				t.Errorf("%s has the failures %v", name, failures)
			}
		}
		if err := rows.Err(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
}

// The views show the size of payloads that a codec has encoded, and fail for none.
func TestViewsShowEncodedPayloads(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	at := now(t, s)
	encoded := []byte{0xc0, 1, 0xff, 0}
	r := running(uuid.New(), at)
	r.Input = encoded
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{{Run: r}}})
	step := store.Step{Run: r.UUID, Name: "a", Kind: store.KindStep, Status: store.StepCompleted, Seq: 1, Attempt: 1, Epoch: r.Epoch, StartedAt: at, Output: encoded, Error: []byte(`{"message":"no"}`), Failures: encoded}
	commit(t, s, &store.Batch{
		Steps:   []*store.StepWrite{{Step: step}},
		Signals: []*store.SignalWrite{{Run: r.UUID, ID: uuid.New(), Name: "s", Payload: encoded, CreatedAt: at}},
	})
	var got string
	err := conn.QueryRow(t.Context(), `SELECT concat_ws(' ', r.input, r.output, s.output, s.error, s.failures, m.payload)
		FROM durable.runs r JOIN durable.steps s ON s.run_id = r.id JOIN durable.signals m ON m.run_id = r.id WHERE r.id = $1`, pgUUID(r.UUID)).Scan(&got)
	if want := `{"encoded" : 4} {"encoded" : 4} {"message":"no"} {"encoded" : 4} {"encoded" : 4}`; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

// The view of signals shows the call that has received a signal as people see its name.
func TestTheViewOfSignalsShowsNames(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	at := now(t, s)
	r := running(uuid.New(), at)
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{{Run: r}}})
	commit(t, s, &store.Batch{Signals: []*store.SignalWrite{{Run: r.UUID, ID: uuid.New(), Name: "s", Payload: []byte("1"), CreatedAt: at}}})
	if _, err := conn.Exec(t.Context(), `UPDATE durable.signal SET step = $2 WHERE run_id = $1`, pgUUID(r.UUID), "b"+naming.Separator+"go/on"); err != nil {
		t.Fatal(err)
	}
	var got string
	err := conn.QueryRow(t.Context(), `SELECT received_by FROM durable.signals WHERE run_id = $1`, pgUUID(r.UUID)).Scan(&got)
	if want := "b/go%2Fon"; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
