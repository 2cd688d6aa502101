package model

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func lessUUID(l, r uuid.UUID) bool { return bytes.Compare(l[:], r[:]) < 0 }

// claimState reports whether a claim may take the run, and whether the run is a suspect. Suspects are
// determined from the recorded crashes: only a claim that takes a run, and a run that leaves memory, count the new checkpoints.
func (r *Run) claimState(q *store.ClaimQuery) (due, suspect bool) {
	if r.WakeAt.IsZero() || r.WakeAt.After(q.Now) || !q.Filter.Includes(r.Queue, r.Workflow) {
		return false, false
	}
	crashes := int(r.Crashes)
	if r.Status == store.Running {
		crashes++
	}
	return true, crashes >= store.SuspectAfterCrashes
}

// Claim claims the runs that a store has claimed, and returns the result that the store should have
// returned. It returns an error if the store was not allowed to claim one of them, or, without
// contention, if it should have claimed more.
func (m *Model) Claim(q store.ClaimQuery, got store.ClaimResult, contended bool) (store.ClaimResult, error) {
	var want store.ClaimResult
	var plain, suspects int
	nexts := []time.Time{m.nextWakeAt(&q)}
	for id := range m.Runs {
		switch due, suspect := m.Runs[id].claimState(&q); {
		case due && suspect:
			suspects++
		case due:
			plain++
		}
	}
	var tookPlain, tookSuspects int
	seen := make(map[uuid.UUID]bool)
	owners := slices.Clone(q.Owners) // who may still get a run
	var taken, left []int16          // the priorities of the runs that are claimed, and of those that stay due; without suspects
	for i := range got.Runs {
		r := m.Runs[got.Runs[i].Run.UUID]
		if r == nil || seen[r.UUID] {
			return want, fmt.Errorf("it claims %s, which does not exist or was claimed before", got.Runs[i].Run.UUID)
		}
		seen[r.UUID] = true
		due, suspect := r.claimState(&q)
		switch {
		case !due:
			return want, fmt.Errorf("it claims %s, which is not due", r.UUID)
		case suspect:
			tookSuspects++
		default:
			tookPlain++
			taken = append(taken, r.Priority)
		}
		own := q
		if owner := got.Runs[i].Run.Owner; len(q.Owners) > 0 && owner.Valid {
			at := slices.Index(owners, owner.UUID)
			if at < 0 {
				return want, fmt.Errorf("it gives %s to %s, which is not among the owners or has as many runs as it may", r.UUID, owner.UUID)
			}
			own.Worker, owners = owner.UUID, slices.Delete(owners, at, at+1)
		}
		want.Runs = append(want.Runs, m.claimRun(r, &own))
	}
	if tookPlain+tookSuspects > q.Limit || tookSuspects > q.MaxSuspects {
		return want, fmt.Errorf("it claims %d runs and %d suspects", tookPlain, tookSuspects)
	}
	if !contended && (tookPlain != min(plain, q.Limit-tookSuspects) || tookSuspects != min(suspects, q.MaxSuspects, q.Limit)) {
		return want, fmt.Errorf("it claims %d of %d runs and %d of %d suspects", tookPlain, plain, tookSuspects, suspects)
	}
	for id, r := range m.Runs {
		if due, suspect := r.claimState(&q); due && !suspect && !seen[id] {
			left = append(left, r.Priority)
		}
	}
	if !contended && len(taken) > 0 && len(left) > 0 && slices.Min(taken) < slices.Max(left) {
		return want, fmt.Errorf("it claims a run of priority %d, and leaves one of priority %d", slices.Min(taken), slices.Max(left))
	}
	nexts = append(nexts, m.nextWakeAt(&q))
	want.NextDue = nexts[0]
	if contended || slices.ContainsFunc(nexts, got.NextDue.Equal) { // Next may include the new leases, or not
		want.NextDue = got.NextDue
	}
	m.endTransaction()
	return want, nil
}

// nextWakeAt returns the earliest time after q.Now at which a run that the worker claims is due, or zero.
func (m *Model) nextWakeAt(q *store.ClaimQuery) (next time.Time) {
	later := *q
	for _, r := range m.Runs {
		later.Now = r.WakeAt
		if due, _ := r.claimState(&later); due && r.WakeAt.After(q.Now) && (next.IsZero() || r.WakeAt.Before(next)) {
			next = r.WakeAt
		}
	}
	return next
}

// claimRun applies a claim to one run.
func (m *Model) claimRun(r *Run, q *store.ClaimQuery) store.ClaimedRun {
	lost := r.Status == store.Running
	excused := q.LeaseEndedInOutage(r.WakeAt)
	halted := lost && r.Control&store.PausedMask != 0 // a lost lease counts no crash if a pause was requested
	if lost && !halted && !excused {
		reached := r.progress()
		if m.FencingState != nil && m.FencingState.Runs[r.UUID] != nil { // checkpoints that were committed just now may count at the next claim only
			reached = m.FencingState.Runs[r.UUID].progress()
		}
		if reached > r.ProgressAtLastCrash {
			r.Crashes, r.ProgressAtLastCrash = 0, reached
		}
		r.Crashes++
	}
	if lost {
		r.LastLeaseLoss = store.LeaseLoss{At: q.Now, Worker: r.Owner.UUID}
		m.recordEvent(r, store.EventLeaseLost, q.Now)
	}
	r.Woken = false
	tooOften := lost && !halted && !excused && q.MaxCrashes > 0 && int(r.Crashes) >= q.MaxCrashes
	if halted || tooOften {
		r.Status, r.Owner, r.WakeAt = store.Paused, uuid.NullUUID{}, time.Time{}
		if tooOften {
			r.Control |= store.PausedItself
			r.PausedAt, r.PauseOrHoldReason = q.Now, store.CrashedTooOftenReason(r.Crashes)
		}
		pause, event := store.ActorAndReason{At: q.Now}, store.Event{Type: store.EventPaused}
		if halted {
			pause.Actor, pause.Reason = r.PausedBy, r.PauseOrHoldReason
		} else {
			event.NewValue = r.PauseOrHoldReason
		}
		m.recordAct(r.UUID, pause, event)
		return store.ClaimedRun{Run: r.Run, ProgressAtLastCrash: r.ProgressAtLastCrash}
	}
	r.Status, r.Owner, r.WakeAt = store.Running, uuid.NullUUID{UUID: q.Worker, Valid: true}, q.LeaseUntil
	r.Epoch = r.Epoch.Next(q.EpochNonce)
	if r.Crashes == 0 || lost && r.Crashes == 1 { // otherwise it tells why the run was held, and there is no checkpoint since
		r.PauseOrHoldReason = ""
	}
	if r.StartedAt.IsZero() {
		r.StartedAt = q.Now
	}
	return store.ClaimedRun{Run: r.Run, History: r.history(), ProgressAtLastCrash: r.ProgressAtLastCrash}
}

// LeasesOfClaim models store.Store.LeasesOfClaim.
func (m *Model) LeasesOfClaim(q store.ClaimQuery) (leases []store.Lease) {
	for id, r := range m.Runs {
		if r.Status == store.Running && r.Owner.UUID == q.Worker && r.Epoch.Nonce == q.EpochNonce && r.WakeAt.Equal(q.LeaseUntil) {
			leases = append(leases, store.Lease{Run: id, Epoch: r.Epoch})
		}
	}
	return leases
}

// Renew models store.Store.Renew. With contention, the store may leave a lease unchanged.
func (m *Model) Renew(h store.Heartbeat, contended bool) (lost []uuid.UUID) {
	for _, l := range h.Leases {
		r := m.Runs[l.Run]
		switch held := m.HoldsLease(h.Worker.ID, l); {
		case !held:
			lost = append(lost, l.Run)
		case contended && m.mayHappen():
		default:
			r.WakeAt = h.LeaseUntil
		}
	}
	return lost
}

// HoldsLease reports whether the worker still has the lease.
func (m *Model) HoldsLease(worker uuid.UUID, l store.Lease) bool {
	r := m.Runs[l.Run]
	return r != nil && r.Status == store.Running && r.Epoch == l.Epoch && r.Owner.UUID == worker
}

// EndLeases models store.Store.Expire. A store may release runs whose leases end at q.LeaseUntil or later, or
// leave them. With contention, it may leave any run.
func (m *Model) EndLeases(workers []uuid.UUID, q store.ClaimQuery, contended bool) (freed int) {
	for _, id := range m.sortedUUIDs() {
		r := m.Runs[id]
		if r.Status != store.Running || !slices.Contains(workers, r.Owner.UUID) || !r.WakeAt.After(q.Now) {
			continue
		}
		must := r.WakeAt.Before(q.LeaseUntil)
		if must && !contended || m.mayHappen() {
			r.WakeAt = q.Now
			freed++
		}
	}
	return freed
}

// OwnedRunChanges models store.Store.OwnedRunChanges. With contention, a store may report a wake-up twice, and need not
// report a run that is being released: the mark on the run remains, so nothing is lost.
func (m *Model) OwnedRunChanges(worker uuid.UUID, held []store.Lease, contended bool) (changes store.OwnedRunChanges) {
	for _, l := range held {
		if !m.HoldsLease(worker, l) {
			continue
		}
		r := m.Runs[l.Run]
		if r.Control != 0 {
			changes.ControlRequests = append(changes.ControlRequests, store.PendingControl{Run: r.UUID, Epoch: r.Epoch, Control: r.Control})
		}
		if r.Woken && !(contended && m.mayHappen()) {
			changes.Woken = append(changes.Woken, r.UUID)
			r.Woken = contended && m.mayHappen()
		}
	}
	return changes
}
