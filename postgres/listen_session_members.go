package postgres

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// listenSessionMember is a call of Listen. The mutex of the session guards attached, leaving and failed.
type listenSessionMember struct {
	database     *database
	worker       uuid.UUID
	onHint       func(store.WakeHint)
	attached     bool          // the session has begun to listen and to take the lock for this member
	leaving      bool          // the call of Listen ends
	failureCount int           // how often in succession the session could not be used for this member alone
	released     chan struct{} // closed when the session holds nothing for this member any more

	retryAt              time.Time // when a failed member is tried again; used only by the goroutine of the session
	listening            bool      // the member has received HintListenBegan; used only by the goroutine of the session
	stopWatchingTimeline func()    // ends the watch for rewinds of the member's database; used only by the goroutine of the session
}

// firstMember returns a member, or nil.
func (h *sharedListenSession) firstMember() *listenSessionMember {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.members) == 0 {
		return nil
	}
	return h.members[0]
}

// interruptWait makes the goroutine of the session check the members again. h.mu is held.
func (h *sharedListenSession) interruptWait() {
	if h.interrupt != nil {
		h.interrupt()
	}
}

// removeMember ends the membership of m. h.mu is held.
func (h *sharedListenSession) removeMember(m *listenSessionMember) {
	h.members = slices.DeleteFunc(h.members, func(other *listenSessionMember) bool { return other == m })
	close(m.released)
}

// nextMemberToUpdate returns a member that leaves, or else a member to attach now, or nil.
func (h *sharedListenSession) nextMemberToUpdate() (m *listenSessionMember, leaving bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var joining *listenSessionMember
	for _, m := range h.members {
		switch {
		case m.leaving && m.attached:
			return m, true
		case !m.leaving && !m.attached && joining == nil && time.Now().After(m.retryAt):
			joining = m
		}
	}
	if joining != nil {
		joining.attached = true
	}
	return joining, false
}

// nextRetryTime returns when the first of the members that have failed is tried again, or zero.
func (h *sharedListenSession) nextRetryTime() (at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.members {
		if !m.attached && !m.leaving && (at.IsZero() || m.retryAt.Before(at)) {
			at = m.retryAt
		}
	}
	return at
}

// failureCount returns how often in succession the worker could not be attached.
func (h *sharedListenSession) failureCount(worker uuid.UUID) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range h.members {
		if m.worker == worker {
			return m.failureCount
		}
	}
	return 0
}

// memberCount returns how many workers share the session.
func (h *sharedListenSession) memberCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.members)
}
