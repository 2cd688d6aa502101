package engine

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// replayState holds which calls earlier executions of a run recorded, and which calls this execution has
// made. run.mu guards it, except for the fields with other comments. The methods do not take that mutex.
type replayState struct {
	// These fields change only before the run's function is called, while the history is read.
	history                 map[string]*store.Step // the recorded calls by their names
	hasGraphRecords         bool                   // a graph has made the history
	unreadHistory           store.UnreadHistory    // the part of the history that is not read yet
	terminalCheckpointCount int                    // terminal checkpoints of the run
	repairRecordCount       int                    // the terminal checkpoints that are records of a repair and not calls
	keyRenewals             idempotencyKeyRenewals
	unreadablePayload       error // why a payload of the history cannot be decoded; nil: all payloads can be decoded
	progress                int   // the sum of store.Step.Progress
	progressAtCrash         int   // the progress when the crashes of the run were last counted; see run_crash_loop.go

	recordedCalls           []recordedCall      // the calls in the history, by their sequence numbers; nil: see hasCallBegunSince
	usedNames               map[string]uintptr  // names called in this execution, and their call sites
	openedMaps              map[string]struct{} // the names of the Maps among them
	replayedCheckpointCount int                 // checkpoints returned from history in this execution
	lastReplayedAt          time.Time           // when a call last returned its recorded outcome, or the replay began; zero: no call has an outcome, or the function is not called yet

	missingCallCounts  missingCallCounts         // see run_drift_missing_calls.go; run.mu guards it
	checksMissingCalls bool                      // missingCallCounts is not empty; set before the function is called
	functionReplay     functionReplay            // see run_drift_moved_calls.go
	patches            map[string]*patchDecision // by their names
	replayedLines      *replayedLines            // nil: the function has not logged anything yet, or earlier executions recorded nothing

	lastPosition atomic.Int32 // the highest store.Step.Position of a call of the run
	pastReplay   atomic.Bool  // the run has executed something new: it is no longer replaying
}

// recordedCall is a call in the history. began is when this call, or the latest of the calls after it,
// began.
type recordedCall struct {
	seq   int32
	began time.Time
}

// addRows adds checkpoints to the history.
func (c *replayState) addRows(rows []store.Step) {
	if c.history == nil && len(rows) > 0 {
		c.history = make(map[string]*store.Step, len(rows))
	}
	for i := range rows {
		c.progress += rows[i].Progress()
		if rows[i].Kind == store.KindKeyRenewal {
			c.keyRenewals.decodeRenewalRecord(&rows[i])
			c.terminalCheckpointCount++
			c.repairRecordCount++
			continue
		}
		c.history[rows[i].Name] = &rows[i]
		c.hasGraphRecords = c.hasGraphRecords || rows[i].Kind == store.KindGraph
		c.lastPosition.Store(max(c.lastPosition.Load(), rows[i].Position()))
		if rows[i].Status.IsTerminal() {
			c.terminalCheckpointCount++
		}
	}
}

// noteHistoryComplete is called when the history is complete. A run without a recorded outcome replays nothing.
func (c *replayState) noteHistoryComplete() {
	c.pastReplay.Store(c.terminalCheckpointCount == c.repairRecordCount)
}

// expectedNameCount returns how many names the run will probably use, so that the map of them need not grow.
func (r *run) expectedNameCount() int {
	const ofMostRuns = 16
	if def := r.workflowDefinition(); def != nil {
		return max(ofMostRuns, def.UsedNameCount)
	}
	return ofMostRuns
}

// markNameUsed marks the name as called at site. If the name was used before, markNameUsed reports that and returns the earlier call site.
func (c *replayState) markNameUsed(name string, site uintptr) (first uintptr, twice bool) {
	if first, twice = c.usedNames[name]; !twice {
		c.usedNames[name] = site
		c.replayedLines.noteCall(name)
	}
	return first, twice
}

// countReplayedCall counts a call that returns its recorded outcome. After the last one, the run no longer replays.
func (c *replayState) countReplayedCall() {
	if c.replayedCheckpointCount++; c.replayedCheckpointCount == c.terminalCheckpointCount-c.repairRecordCount {
		c.pastReplay.Store(true)
	}
}

// hasCallBegunSince reports whether a call after the sequence number seq began at the given time or later, in an
// earlier execution. Compensations do not count, because they are executed after the run's function has
// returned.
func (c *replayState) hasCallBegunSince(seq int32, at time.Time) bool {
	if c.recordedCalls == nil {
		c.recordedCalls = make([]recordedCall, 0, len(c.history))
		for _, row := range c.history {
			if row.Kind != store.KindCompensation {
				c.recordedCalls = append(c.recordedCalls, recordedCall{row.Seq, row.StartedAt})
			}
		}
		slices.SortFunc(c.recordedCalls, func(a, b recordedCall) int { return cmp.Compare(a.seq, b.seq) })
		for i := len(c.recordedCalls) - 2; i >= 0; i-- {
			if later := c.recordedCalls[i+1].began; later.After(c.recordedCalls[i].began) {
				c.recordedCalls[i].began = later
			}
		}
	}
	next, _ := slices.BinarySearchFunc(c.recordedCalls, seq+1, func(c recordedCall, seq int32) int { return cmp.Compare(c.seq, seq) })
	return next < len(c.recordedCalls) && !c.recordedCalls[next].began.Before(at)
}
