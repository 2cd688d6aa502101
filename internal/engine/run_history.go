package engine

import (
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// addHistory adds checkpoints to the run's history. The history is complete before the run's function is
// called.
func (r *run) addHistory(history []store.Step) {
	r.replayState.addRows(history)
	r.noteUnreadablePayload(history)
	for i := range history {
		row := &history[i]
		if row.Status.IsTerminal() {
			if row.Kind == store.KindSendSignal && row.EndedAt.After(r.latestSignalSentAt) {
				r.latestSignalSentAt = row.EndedAt
			}
		} else if id, err := decodeChildUUID(row); row.Kind == store.KindChild && err == nil {
			r.addChild(row.Name, id)
			if about := record.DecodeFailures(row); about.Detached {
				r.noteDetachedChild(row.Name)
			}
		}
	}
}

// isFirstExecution reports whether no process has ever called the run's function, so that there is nothing to
// compensate.
func (r *run) isFirstExecution() bool {
	return r.row.Epoch.Count == 1 && !r.hasRecordedCalls()
}

// hasRecordedCalls reports whether the history holds a record other than those that were written with the start of the run.
func (r *run) hasRecordedCalls() bool {
	calls := len(r.history)
	if first := r.e.workflows[r.row.Workflow].FirstCheckpoint; first != nil && r.history[first.Name] != nil {
		calls--
	}
	return calls > 0
}

// hasCallOfUser reports whether the history holds the record of a call that the code of the user makes.
func (r *run) hasCallOfUser() bool {
	for _, row := range r.history {
		if isCallOfUser(row.Kind) {
			return true
		}
	}
	return false
}

// HasRecordedCalls reports whether the history of the run holds the record of a call. HasRecordedCalls may be called before the run makes
// its first call.
func (s *Scope) HasRecordedCalls() bool { return s.r.hasRecordedCalls() }

// RecordedCalls returns the rows of the run's history, in no order. The caller must not change their payloads.
func (s *Scope) RecordedCalls() []store.Step {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	rows := make([]store.Step, 0, len(s.r.history))
	for _, row := range s.r.history {
		rows = append(rows, *row)
	}
	return rows
}
