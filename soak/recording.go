package main

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// recordingStore is a store that records in the ledger what a worker claims, what it is about to
// write, and the outcomes. It implements engine.HookedStore, so that Tx finds the wrapped store.
type recordingStore struct {
	store.Store
	ledger  *ledger
	version string
	batch   atomic.Int64
}

// Commit implements store.Store.
func (s *recordingStore) Commit(ctx context.Context, b *store.Batch) error {
	e := entry{Kind: kindCommitting, Batch: s.batch.Add(1), Writes: writes(b)}
	if len(e.Writes) == 0 { // starts and signals are not guarded by an epoch
		return s.Store.Commit(ctx, b)
	}
	s.ledger.add(e)
	if err := s.Store.Commit(ctx, b); err != nil {
		return err
	}
	e.Kind, e.Writes = kindCommitted, writes(b)
	s.ledger.add(e)
	return nil
}

// writes returns the writes of a batch that an epoch guards.
func writes(b *store.Batch) (all []write) {
	step := func(s *store.Step, o store.WriteOutcome) {
		all = append(all, write{
			Run: s.Run.String(), Epoch: s.Epoch.Count, Nonce: s.Epoch.Nonce, What: fmt.Sprintf("%s %v %d", naming.Display(s.Name), s.Status, s.Attempt), Outcome: outcomes[o],
		})
	}
	for _, w := range b.Steps {
		step(&w.Step, w.Outcome)
	}
	for _, w := range b.Receives {
		step(&w.Step, w.Outcome)
	}
	for _, w := range b.OwnershipEnds {
		all = append(all, write{Run: w.UUID.String(), Epoch: w.Epoch.Count, Nonce: w.Epoch.Nonce, What: w.Status.String(), Outcome: outcomes[w.Outcome]})
	}
	return all
}

const (
	written = "written"
	fenced  = "fenced"
)

var outcomes = map[store.WriteOutcome]string{store.Written: written, store.AlreadyRecorded: "adopted", store.Fenced: fenced, store.Locked: "locked"}

// GrantAndReturnPermits implements store.Store.
func (s *recordingStore) GrantAndReturnPermits(ctx context.Context, b *store.PermitBatch) error {
	if err := s.Store.GrantAndReturnPermits(ctx, b); err != nil {
		return err
	}
	for _, a := range b.Requests {
		if a.Outcome == store.Written {
			s.ledger.add(entry{Kind: kindPermitGranted, Run: a.Run.String(), Step: limitKeyName(a.Limit, a.Key), Attempt: int(a.Attempt), Value: a.GrantedAt.Format(time.RFC3339Nano)})
		}
	}
	return nil
}

// AdmitRuns implements store.Store.
func (s *recordingStore) AdmitRuns(ctx context.Context, a *store.AdmissionRequest) error {
	err := s.Store.AdmitRuns(ctx, a)
	if err == nil && a.AdmittedCount > 0 {
		s.ledger.add(entry{Kind: kindAdmitted, Step: a.Queue, Attempt: a.AdmittedCount, Value: a.AdmittedAt.Format(time.RFC3339Nano)})
	}
	return err
}

// RenewLeases implements store.Store.
func (s *recordingStore) RenewLeases(ctx context.Context, h store.Heartbeat) (store.RenewResult, error) {
	r, err := s.Store.RenewLeases(ctx, h)
	if err != nil {
		return r, err
	}
	e := entry{Kind: kindRenewed, Value: h.LeaseUntil.Format(time.RFC3339Nano)}
	for _, l := range h.Leases {
		if !slices.Contains(r.LostRuns, l.Run) && !slices.Contains(r.LockedRuns, l.Run) {
			e.Writes = append(e.Writes, write{Run: l.Run.String(), Epoch: l.Epoch.Count, Nonce: l.Epoch.Nonce})
		}
	}
	if len(e.Writes) > 0 {
		s.ledger.add(e)
	}
	return r, nil
}

// Claim implements store.Store.
func (s *recordingStore) Claim(ctx context.Context, q store.ClaimQuery) (store.ClaimResult, error) {
	c, err := s.Store.Claim(ctx, q)
	if err != nil || len(c.Runs) == 0 {
		return c, err
	}
	e := entry{Kind: kindClaimed, Outage: !q.OutageUntil.IsZero(), Version: s.version, Value: q.LeaseUntil.Format(time.RFC3339Nano)}
	for _, r := range c.Runs {
		w := write{Run: r.Run.UUID.String(), Epoch: r.Run.Epoch.Count, Nonce: r.Run.Epoch.Nonce, Crashes: int32(r.Run.Crashes)}
		if r.Run.Status != store.Running {
			w.What = r.Run.Status.String()
		}
		e.Writes = append(e.Writes, w)
	}
	s.ledger.add(e)
	return c, nil
}

// Hooks implements engine.HookedStore.
func (s *recordingStore) Hooks() engine.TestHooks { return silent{} }

// WrappedStore implements engine.HookedStore.
func (s *recordingStore) WrappedStore() store.Store { return s.Store }

// silent implements engine.TestHooks and changes nothing.
type silent struct{}

// AttachEngine implements engine.TestHooks.
func (silent) AttachEngine(*engine.Engine) {}

// Clock implements engine.TestHooks.
func (silent) Clock() engine.ManualClock { return nil }

// OnCall implements engine.TestHooks.
func (silent) OnCall(engine.HookedCall) {}

// ExecuteAttempt implements engine.TestHooks.
func (silent) ExecuteAttempt(_ context.Context, _ engine.HookedCall, next func() (engine.AttemptOutput, *record.Failure)) (engine.AttemptOutput, *record.Failure) {
	return next()
}

// OutputToCommit implements engine.TestHooks.
func (silent) OutputToCommit(_ engine.HookedCall, output []byte) []byte { return output }
