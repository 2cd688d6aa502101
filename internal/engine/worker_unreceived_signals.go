package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// A signal that was sent to a run and that the run never received is kept with the run, and Get counts it. The worker that has ended
// the run logs it. The worker searches for such signals after the end, for many runs together, so that no run's end waits for the
// search.

const (
	maxEndedRunsToCheckSignals     = 1 << 16 // runs that wait for the search; further runs are not logged
	endedRunsPerSearch             = 1000    // runs in one search
	maxLoggedSignals               = 10      // signal names in one log line
	unreceivedSignalsAtStopTimeout = 2 * time.Second
)

// endedRunsToCheckSignals holds the runs that this worker has ended and not yet checked for unreceived signals.
type endedRunsToCheckSignals struct {
	mu   sync.Mutex
	runs []endedRunToCheckSignals
}

// endedRunToCheckSignals is a run that has ended, and may have signals that it never received.
type endedRunToCheckSignals struct {
	id             uuid.UUID
	name, workflow string
}

func (e *endedRunsToCheckSignals) add(r *run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.runs) < maxEndedRunsToCheckSignals {
		e.runs = append(e.runs, endedRunToCheckSignals{r.row.UUID, r.row.Name, r.row.Workflow})
	}
}

func (e *endedRunsToCheckSignals) takeAll() []endedRunToCheckSignals {
	e.mu.Lock()
	defer e.mu.Unlock()
	runs := e.runs
	e.runs = nil
	return runs
}

// unreceivedSignalsLoop checks from time to time the runs that have ended since its last check.
func (w *worker) unreceivedSignalsLoop(ctx context.Context) {
	for wakeup.SleepCtx(ctx, w.e.cfg.Lease/3) {
		w.logUnreceivedSignals(ctx)
	}
}

// logUnreceivedSignals logs each run that has ended with signals that it never received.
func (w *worker) logUnreceivedSignals(ctx context.Context) {
	runs := w.endedRuns.takeAll()
	for len(runs) > 0 {
		some := runs[:min(len(runs), endedRunsPerSearch)]
		runs = runs[len(some):]
		all := make([]uuid.UUID, len(some))
		by := make(map[uuid.UUID]*endedRunToCheckSignals, len(some))
		for i := range some {
			all[i] = some[i].id
			by[some[i].id] = &some[i]
		}
		counts, err := w.e.store.CountUnreceivedSignals(ctx, all)
		if err != nil {
			if ctx.Err() == nil {
				w.log.Warn("could not look for signals that nobody received; Get tells of them", telemetry.KeyCount, len(some), telemetry.KeyError, err)
			}
			continue
		}
		for len(counts) > 0 {
			run := by[counts[0].Run]
			total := 0
			var names []string
			for len(counts) > 0 && counts[0].Run == run.id {
				total += counts[0].Count
				if len(names) < maxLoggedSignals {
					names = append(names, fmt.Sprintf("%s (%d)", naming.DisplaySignal(counts[0].Name), counts[0].Count))
				}
				counts = counts[1:]
			}
			w.log.Warn("a run has ended with signals that nobody received", telemetry.KeyRun, run.id, telemetry.KeyName, run.name,
				telemetry.KeyWorkflow, run.workflow, telemetry.KeyCount, total, telemetry.KeySignals, names)
		}
	}
}

// logUnreceivedSignalsAtStop calls logUnreceivedSignals for a worker that stops. It takes at most unreceivedSignalsAtStopTimeout.
func (w *worker) logUnreceivedSignalsAtStop() {
	ctx, cancel := context.WithTimeout(context.Background(), unreceivedSignalsAtStopTimeout)
	defer cancel()
	w.logUnreceivedSignals(ctx)
}
