package model_test

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// drain lets each step get a permit and all runs end, as workers do it: a step asks when its run is claimed, when its run was woken,
// when its time has come, and when a step before it has left the line.
func (l *limitCheck) drain() {
	for _, line := range l.lines { // until then, a rate grants nothing
		if l.now.Before(line.now) {
			l.now = line.now
		}
	}
	claimed := make(map[uuid.UUID]store.Epoch) // the execution whose steps have asked
	for _, s := range l.steps {
		if s.held != nil || s.waits {
			claimed[s.run] = s.epoch
		}
	}
	var next []store.PermitReturn
	for range 300 {
		if !l.settle() {
			return
		}
		woken := l.woken()
		b := &store.PermitBatch{Now: l.now, CloseDurationAfterRewind: time.Minute, Returns: next}
		next = nil
		for _, r := range l.seen.inOrder() {
			if r.Status != store.Running {
				continue
			}
			anew := claimed[r.UUID] != r.Epoch
			claimed[r.UUID] = r.Epoch
			b.Requests = append(b.Requests, l.asksOf(r, anew, woken[r.UUID])...)
		}
		lines, err := l.bed.handles[l.handle()].LimitKeysWithWaiters(l.ctx, store.LimitKey{}, 10)
		if err != nil {
			l.diverge("WaitingLines: %v", err)
		}
		b.LimitKeys = lines
		l.permits(b)
		at := time.Time{}
		for _, again := range b.RecheckAt {
			at = earlier(at, again)
		}
		for _, s := range l.steps {
			switch r := l.seen.runs[s.run]; {
			case r == nil || r.Status != store.Running || s.done:
			case s.held != nil && s.held.epoch == r.Epoch:
				next = append(next, store.PermitReturn{Limit: limitName, Key: s.key, Run: s.run, Step: s.name, Epoch: s.held.epoch, Attempt: s.held.attempt})
				s.done, s.left = true, true
			case s.waits:
				at = earlier(at, s.retryAt)
			}
		}
		l.now = l.now.Add(300 * time.Millisecond)
		if at.After(l.now) {
			l.now = at
		}
	}
	l.diverge("steps wait for ever: %+v of %+v", l.seen.permits, l.row.settings)
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// asksOf returns the asks of a run's steps: of all that have not asked since the run was claimed, of those whose time has come, of the
// first of each line if the run was woken, and of the two behind a step that has just left their line.
func (l *limitCheck) asksOf(r *store.Run, anew, woken bool) (asks []*store.PermitRequest) {
	var mine []*limitedStep
	next := make(map[string]int) // how many of a line ask
	for _, s := range l.steps {
		if s.run != r.UUID {
			continue
		}
		if s.left {
			s.left, next[s.key] = false, 2
		} else if woken {
			next[s.key] = max(next[s.key], 1)
		}
		if !s.done && (s.held == nil || s.held.epoch != r.Epoch) {
			mine = append(mine, s)
		}
	}
	slices.SortStableFunc(mine, func(a, b *limitedStep) int { return a.arrived.Compare(b.arrived) })
	for _, s := range mine {
		asksNow := anew || !s.waits || s.epoch != r.Epoch || !s.retryAt.IsZero() && !s.retryAt.After(l.now)
		if !asksNow && next[s.key] > 0 {
			next[s.key]--
			asksNow = true
		}
		if asksNow {
			asks = append(asks, l.request(s, r.Epoch))
		}
	}
	return asks
}

// woken reads which runs were woken since the last call.
func (l *limitCheck) woken() map[uuid.UUID]bool {
	var leases []store.Lease
	for _, r := range l.seen.inOrder() {
		if r.Status == store.Running {
			leases = append(leases, store.Lease{Run: r.UUID, Epoch: r.Epoch, RunDeadline: r.Deadline})
		}
	}
	got, err := l.bed.handles[l.handle()].OwnedRunChanges(l.ctx, workers[0], leases)
	if err != nil {
		l.diverge("OwnedRunChanges: %v", err)
	}
	woken := make(map[uuid.UUID]bool)
	for _, id := range got.Woken {
		woken[id] = true
	}
	return woken
}

// settle ends the runs whose steps are done, resumes those that are paused, claims what is due, and reports whether a run is live.
func (l *limitCheck) settle() (live bool) {
	long := l.now.Add(1000 * time.Hour)
	for _, r := range l.seen.inOrder() {
		if r.Status.IsTerminal() {
			continue
		}
		live = true
		open := slices.ContainsFunc(l.steps, func(s *limitedStep) bool { return s.run == r.UUID && !s.done })
		w := store.OwnershipEnd{UUID: r.UUID, Now: l.now, Epoch: r.Epoch, Status: store.Completed, EndedAt: l.now}
		switch {
		case r.Status == store.Paused:
			l.must("resume "+shorten(r.UUID), func(ctx context.Context, s store.Store) error {
				return s.ControlRuns(ctx, &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{r.UUID}, Now: l.now})
			})
			continue
		case r.Status != store.Running:
			continue
		case r.Control&store.CancelRequested != 0:
			w.Status = store.Cancelled
		case r.Control&store.PausedMask != 0:
			w.Status, w.EndedAt, w.WakeAt = store.Pending, time.Time{}, l.now
		case open:
			if r.WakeAt.Before(l.now.Add(time.Hour)) {
				l.must(l.renew(long, r))
			}
			continue
		}
		l.must("end "+shorten(r.UUID), func(ctx context.Context, s store.Store) error {
			mine := w
			return commitNow(ctx, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{&mine}}, func() store.WriteOutcome { return mine.Outcome })
		})
	}
	if live {
		l.must(l.claim(long))
		l.seen = l.read()
	}
	return live
}
