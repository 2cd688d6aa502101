package storetest

import (
	"bytes"
	"math/rand/v2"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var payloads = []test{
	{"a step's", payloadSteps},
	{"a run's", payloadRuns},
}

// oddPayloads returns payloads that must be kept bytewise. NULL is not the same as empty.
func oddPayloads() map[string][]byte {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	large := make([]byte, 1<<20)
	for i := range large {
		large[i] = byte(rand.Uint32())
	}
	return map[string][]byte{
		"NULL": nil, "empty": {}, "every byte": every, "one MB": large, "a NUL": {0}, "not UTF-8": {0xff, 0xc0}, "JSON": []byte(`{"n":9007199254740993}`),
		"hex": []byte(`\xdeadbeef`), "spaces": bytes.Repeat([]byte(" "), 100),
	}
}

func payloadSteps(b *fixture) {
	r := b.commitRunningRun("")
	for name, payload := range oddPayloads() {
		done, failed := b.completed(r.UUID, epochAt(1), name), b.completed(r.UUID, epochAt(1), name+" error")
		done.Output = payload
		failed.Status, failed.Output, failed.Error = store.StepFailed, nil, payload
		for _, when := range []string{"first", "replayed"} {
			batch := &store.Batch{Steps: []*store.StepWrite{{Step: done}, {Step: failed}}}
			b.commit(batch)
			for _, w := range batch.Steps {
				wantOutcome(b, w.Step.Name+", "+when, w.Outcome, store.Written)
			}
		}
		second := done
		second.Attempt, second.Output = 2, []byte("other")
		wantRecorded(b, name, b.commitStep(second, false).RecordedStep, done)
		for _, s := range b.history(r.UUID) {
			switch s.Name {
			case done.Name:
				wantFields(b, "history: "+name, s, done)
			case failed.Name:
				wantFields(b, "history: "+name, s, failed)
			}
		}
	}
	if got, want := len(b.history(r.UUID)), 2*len(oddPayloads()); got != want {
		b.Errorf("history: got %d checkpoints, want %d", got, want)
	}
}

func payloadRuns(b *fixture) {
	for name, payload := range oddPayloads() {
		for _, status := range []store.Status{store.Completed, store.Failed, store.Expired} {
			r := b.newRunningRun("")
			r.Input = payload
			wantOutcome(b, name, b.commitStart(r).Outcome, store.Written)
			wantRun(b, name+" as input", b.row(r.UUID), r)
			w := store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status, EndedAt: b.now}
			if status == store.Completed {
				w.Output = payload
			} else {
				w.Error = payload
			}
			for _, when := range []string{"first", "replayed"} {
				wantOutcome(b, name+", "+when, b.commitOwnershipEnd(w).Outcome, store.Written)
			}
			want := r
			want.Status, want.Output, want.Error, want.Owner = w.Status, w.Output, w.Error, uuid.NullUUID{}
			want.WakeAt, want.EndedAt = w.WakeAt, w.EndedAt
			wantRun(b, name+" as the result of a "+status.String()+" run", b.row(r.UUID), want)
		}
	}
}
