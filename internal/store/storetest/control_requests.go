package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// controlRuns executes a control request, which must succeed.
func (b *fixture) controlRuns(o *store.ControlRequest) []store.ControlResult {
	b.Helper()
	if err := b.store.ControlRuns(b.ctx, o); err != nil {
		b.Fatalf("Control: %v", err)
	}
	if len(o.Results) != len(o.Runs) {
		b.Fatalf("Control returned %d of %d runs", len(o.Results), len(o.Runs))
	}
	return o.Results
}

// newControlRequest returns a control request whose time is ten seconds after the beginning of the case.
func (b *fixture) newControlRequest(verb store.ControlVerb, runs ...uuid.UUID) *store.ControlRequest {
	return &store.ControlRequest{Verb: verb, Runs: runs, Now: b.afterStart(10 * time.Second), Reason: "it's by hand", Actor: "ann", Error: []byte(`"cancelled"`)}
}

// controlExistingRuns executes a control request for runs that must exist.
func (b *fixture) controlExistingRuns(verb store.ControlVerb, runs ...uuid.UUID) *store.ControlRequest {
	b.Helper()
	o := b.newControlRequest(verb, runs...)
	for i, a := range b.controlRuns(o) {
		if !a.Found {
			b.Fatalf("Control: the run %s was not found", runs[i])
		}
	}
	return o
}

func (b *fixture) wantAnswers(what string, got []store.ControlResult, want ...store.ControlResult) {
	b.Helper()
	if !slices.Equal(got, want) {
		b.Errorf("%s: returned %+v, want %+v", what, got, want)
	}
}

// wantBits compares the status of a run, and its control bits.
func (b *fixture) wantBits(what string, run uuid.UUID, status store.Status, control store.ControlBits) {
	b.Helper()
	if got := b.row(run); got.Status != status || got.Control != control {
		b.Errorf("%s: %s is %s with %d, want %s with %d", what, quoteName(got.Name), got.Status, got.Control, status, control)
	}
}
