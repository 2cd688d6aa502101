package model

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func lessID(l, r uuid.UUID) bool { return bytes.Compare(l[:], r[:]) < 0 }

// due reports whether a claim may take the run, and whether as a suspect. That is told
// by its crashes until now: that it has a new checkpoint is found only when it is taken.
func (r *Run) claimable(q *store.ClaimQuery) (due, suspect bool) {
	if r.WakeAt.IsZero() || r.WakeAt.After(q.Now) || !slices.Contains(q.Pairs, store.Pair{Queue: r.Queue, Workflow: r.Workflow}) {
		return false, false
	}
	crashes := int(r.Crashes)
	if r.Status == store.Running {
		crashes++
	}
	return true, crashes >= store.SuspectAfter
}

// Claim takes the runs that a store has taken, and objects if it may not have, or, without
// contention, should have taken others or more. It answers what the store must have answered.
func (m *Model) Claim(q store.ClaimQuery, got store.Claims, contended bool) (store.Claims, error) {
	var want store.Claims
	var plain, suspects int
	nexts := []time.Time{m.nextWakeAt(&q)}
	for id := range m.Runs {
		switch due, suspect := m.Runs[id].claimable(&q); {
		case due && suspect:
			suspects++
		case due:
			plain++
		}
	}
	var tookPlain, tookSuspects int
	seen := make(map[uuid.UUID]bool)
	for i := range got.Runs {
		r := m.Runs[got.Runs[i].Run.ID]
		if r == nil || seen[r.ID] {
			return want, fmt.Errorf("it claims %s twice, or out of nowhere", got.Runs[i].Run.ID)
		}
		seen[r.ID] = true
		due, suspect := r.claimable(&q)
		switch {
		case !due:
			return want, fmt.Errorf("it claims %s, which is not due", r.ID)
		case suspect:
			tookSuspects++
		default:
			tookPlain++
		}
		want.Runs = append(want.Runs, m.claimRun(r, &q))
	}
	if tookPlain+tookSuspects > q.Limit || tookSuspects > q.Suspects {
		return want, fmt.Errorf("it claims %d runs and %d suspects", tookPlain, tookSuspects)
	}
	if !contended && (tookPlain != min(plain, q.Limit-tookSuspects) || tookSuspects != min(suspects, q.Suspects, q.Limit)) {
		return want, fmt.Errorf("it claims %d of %d runs and %d of %d suspects", tookPlain, plain, tookSuspects, suspects)
	}
	nexts = append(nexts, m.nextWakeAt(&q))
	want.Next = nexts[0]
	if contended || slices.ContainsFunc(nexts, got.Next.Equal) { // with the new leases, or without
		want.Next = got.Next
	}
	m.endTransaction()
	return want, nil
}

// ahead is the earliest time at which a run of the pairs is due later than now.
func (m *Model) nextWakeAt(q *store.ClaimQuery) (next time.Time) {
	later := *q
	for _, r := range m.Runs {
		later.Now = r.WakeAt
		if due, _ := r.claimable(&later); due && r.WakeAt.After(q.Now) && (next.IsZero() || r.WakeAt.Before(next)) {
			next = r.WakeAt
		}
	}
	return next
}

// take is what a claim does to one run.
func (m *Model) claimRun(r *Run, q *store.ClaimQuery) store.Claimed {
	lost := r.Status == store.Running
	excused := q.Excuses(r.WakeAt)
	halted := lost && r.Control&store.PausedAnyhow != 0 // it was to leave, and that is no crash
	if lost && !halted && !excused {
		reached := r.terminalSteps()
		if m.Fence != nil && m.Fence.Runs[r.ID] != nil { // what came at the very last moment may count the next time only
			reached = m.Fence.Runs[r.ID].terminalSteps()
		}
		if reached > r.Progress {
			r.Crashes, r.Progress = 0, reached
		}
		r.Crashes++
	}
	if lost {
		r.Lost = store.Loss{At: q.Now, Worker: r.Owner.UUID}
		m.recordEvent(r, store.EventLeaseLost, q.Now)
	}
	r.Woken = false
	hopeless := lost && !halted && !excused && q.MaxCrashes > 0 && int(r.Crashes) >= q.MaxCrashes
	if halted || hopeless {
		r.Status, r.Owner, r.WakeAt = store.Paused, uuid.NullUUID{}, time.Time{}
		if hopeless {
			r.Control |= store.PausedItself
			r.PausedAt, r.Reason = q.Now, store.CrashedTooOften(r.Crashes)
		}
		m.recordEvent(r, store.EventPaused, q.Now)
		return store.Claimed{Run: r.Run, Progress: r.Progress}
	}
	r.Status, r.Owner, r.WakeAt = store.Running, uuid.NullUUID{UUID: q.Worker, Valid: true}, q.LeaseUntil
	r.Epoch = r.Epoch.Next(q.Nonce)
	if r.Crashes == 0 || lost && r.Crashes == 1 { // else it says why the run was held, and nothing new was recorded since
		r.Reason = ""
	}
	if r.StartedAt.IsZero() {
		r.StartedAt = q.Now
	}
	return store.Claimed{Run: r.Run, History: r.history(), Progress: r.Progress}
}

// HeldBy is store.Store.HeldBy.
func (m *Model) HeldBy(q store.ClaimQuery) (leases []store.Lease) {
	for id, r := range m.Runs {
		if r.Status == store.Running && r.Owner.UUID == q.Worker && r.Epoch.Nonce == q.Nonce && r.WakeAt.Equal(q.LeaseUntil) &&
			slices.Contains(q.Pairs, store.Pair{Queue: r.Queue, Workflow: r.Workflow}) {
			leases = append(leases, store.Lease{Run: id, Epoch: r.Epoch})
		}
	}
	return leases
}

// Renew is store.Store.Renew. With contention, a lease that is held may be left as it is.
func (m *Model) Renew(h store.Heartbeat, contended bool) (lost []uuid.UUID) {
	for _, l := range h.Leases {
		r := m.Runs[l.Run]
		switch held := m.Held(h.Worker.ID, l); {
		case !held:
			lost = append(lost, l.Run)
		case contended && m.mayHappen():
		default:
			r.WakeAt = h.LeaseUntil
		}
	}
	return lost
}

// Held reports whether the worker still has the lease.
func (m *Model) Held(worker uuid.UUID, l store.Lease) bool {
	r := m.Runs[l.Run]
	return r != nil && r.Status == store.Running && r.Epoch == l.Epoch && r.Owner.UUID == worker
}

// Expire is store.Store.Expire. Of other pairs, or of leases that end at q.LeaseUntil or
// later, a store may free runs or not; with contention, of any.
func (m *Model) Expire(workers []uuid.UUID, q store.ClaimQuery, contended bool) (freed int) {
	for _, id := range m.sortedIDs() {
		r := m.Runs[id]
		if r.Status != store.Running || !slices.Contains(workers, r.Owner.UUID) || !r.WakeAt.After(q.Now) {
			continue
		}
		must := slices.Contains(q.Pairs, store.Pair{Queue: r.Queue, Workflow: r.Workflow}) && r.WakeAt.Before(q.LeaseUntil)
		if must && !contended || m.mayHappen() {
			r.WakeAt = q.Now
			freed++
		}
	}
	return freed
}

// News is store.Store.News. With contention, what was told may be told again, and a run
// that is just being left need not be told of: as long as the mark stays, nothing is lost.
func (m *Model) News(worker uuid.UUID, held []store.Lease, contended bool) (news store.News) {
	for _, l := range held {
		if !m.Held(worker, l) {
			continue
		}
		r := m.Runs[l.Run]
		if r.Control != 0 {
			news.Asked = append(news.Asked, store.Asked{Run: r.ID, Epoch: r.Epoch, Control: r.Control})
		}
		if r.Woken && !(contended && m.mayHappen()) {
			news.Woken = append(news.Woken, r.ID)
			r.Woken = contended && m.mayHappen()
		}
	}
	return news
}
