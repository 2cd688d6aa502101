package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// acknowledgedHistory is a run that this process owns, with its acknowledged checkpoints.
type acknowledgedHistory struct {
	name  string
	epoch store.Epoch
	steps []acknowledgedCheckpoint
}

// acknowledgedCheckpoint is an acknowledged checkpoint. A step that another epoch has recorded under the same name is
// a different checkpoint.
type acknowledgedCheckpoint struct {
	name  string
	epoch store.Epoch // of the owner that recorded it
}

// The rewindDetector reuses the acknowledgedHistory values of up to maxSpareRuns ended runs, with room for up to maxSpareCheckpoints
// checkpoints each.
const (
	maxSpareRuns        = 1024
	maxSpareCheckpoints = 64
)

// checkpointSearchBatchSize is about how many checkpoints one statement of a search reads.
const checkpointSearchBatchSize = 20_000

// addOwnedRun records the ownership of a run. The caller holds l.mu.
func (l *rewindDetector) addOwnedRun(run *store.Run) *acknowledgedHistory {
	h := l.ownedRuns[run.UUID]
	if last := len(l.spareRunHistories) - 1; h == nil && last >= 0 {
		h, l.spareRunHistories = l.spareRunHistories[last], l.spareRunHistories[:last]
		l.ownedRuns[run.UUID] = h
	}
	if h == nil {
		h = &acknowledgedHistory{steps: make([]acknowledgedCheckpoint, 0, 8)}
		l.ownedRuns[run.UUID] = h
	}
	h.name, h.epoch, h.steps = run.Name, run.Epoch, h.steps[:0]
	return h
}

// addCheckpoint records an acknowledged checkpoint: the existing row found or, if found is nil, the written step. The caller holds
// l.mu.
func (l *rewindDetector) addCheckpoint(step, found *store.Step) {
	h := l.ownedRuns[step.Run]
	if h == nil || h.epoch != step.Epoch {
		return
	}
	if found == nil {
		found = step
	}
	h.steps = append(h.steps, acknowledgedCheckpoint{step.Name, found.Epoch})
}

// removeOwnedRun records the end of an ownership. The caller holds l.mu.
func (l *rewindDetector) removeOwnedRun(run uuid.UUID, epoch store.Epoch) {
	h := l.ownedRuns[run]
	if h == nil || h.epoch != epoch {
		return
	}
	delete(l.ownedRuns, run)
	if len(l.spareRunHistories) < maxSpareRuns && cap(h.steps) <= maxSpareCheckpoints {
		clear(h.steps)
		*h = acknowledgedHistory{steps: h.steps[:0]}
		l.spareRunHistories = append(l.spareRunHistories, h)
	}
}

// removeFencedRun records the end of an ownership after a fenced write, such as a write of a run that was terminated. The argument state
// is the present state of the run. The caller holds l.mu.
func (l *rewindDetector) removeFencedRun(run uuid.UUID, epoch store.Epoch, state store.RunState) {
	if !state.IsOwnedAt(epoch) {
		l.removeOwnedRun(run, epoch)
	}
}

// removeEndedRuns records that runs have ended without a write of their owner, because they were terminated.
func (l *rewindDetector) removeEndedRuns(ended []store.Lease) {
	if len(ended) == 0 || !l.positionKnown.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range ended {
		l.removeOwnedRun(lease.Run, lease.Epoch)
	}
}

// recordAcknowledgedBatch records the outcomes of a batch that was begun in the given era. If it returns nil, the items count as
// acknowledged. It returns an error if the database has gone back since the batch was begun.
func (l *rewindDetector) recordAcknowledgedBatch(era uint64, b *store.Batch) error {
	if !l.positionKnown.Load() {
		return nil
	}
	l.noteReply()
	l.mu.Lock()
	defer l.mu.Unlock()
	if era != l.rewindCount.Load() {
		return fmt.Errorf("postgres: commit: %w: %w", store.ErrUnavailable, errRewound)
	}
	for _, item := range b.Starts {
		switch {
		case item.Outcome == store.Written && item.Run.Status == store.Running && item.Run.Owner.Valid:
			l.addOwnedRun(&item.Run)
		case item.Outcome == store.Fenced && item.Run.Parent.Valid:
			l.removeFencedRun(item.Run.Parent.UUID, item.ParentEpoch, item.RunState)
		}
	}
	for _, item := range b.Steps {
		switch {
		case item.Outcome == store.AlreadyRecorded || item.Outcome == store.Written && item.Step.Status.IsTerminal():
			l.addCheckpoint(&item.Step, item.RecordedStep)
		case item.Outcome == store.Fenced:
			l.removeFencedRun(item.Step.Run, item.Step.Epoch, item.RunState)
		}
	}
	for _, item := range b.Receives {
		switch {
		case item.RecordedStep != nil && item.RecordedStep.Status.IsTerminal() && (item.Outcome == store.AlreadyRecorded || item.Outcome == store.Written):
			l.addCheckpoint(&item.Step, item.RecordedStep)
		case item.Outcome == store.Fenced:
			l.removeFencedRun(item.Step.Run, item.Step.Epoch, item.RunState)
		}
	}
	for _, item := range b.OwnershipEnds {
		if item.Outcome == store.Written || item.Outcome == store.Fenced && !item.RunState.IsOwnedAt(item.Epoch) {
			l.removeOwnedRun(item.UUID, item.Epoch)
		}
	}
	return nil
}

// recordRepairedRuns records the next generations of owned runs that a repair has made. The repair was begun in the given era. If
// recordRepairedRuns returns nil, the generations count as acknowledged. It may be called again if a repair is repeated.
func (l *rewindDetector) recordRepairedRuns(era uint64, r *store.RepairRequest) error {
	if !l.positionKnown.Load() {
		return nil
	}
	l.noteReply()
	l.mu.Lock()
	defer l.mu.Unlock()
	if era != l.rewindCount.Load() {
		return fmt.Errorf("postgres: repair runs: %w: %w", store.ErrUnavailable, errRewound)
	}
	if r.Outcome != store.Written {
		return nil
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		h := l.ownedRuns[run.Run]
		if h == nil || h.epoch != run.StateBefore.Epoch && h.epoch != run.Epoch {
			continue // another process owns the run
		}
		name := h.name
		l.removeOwnedRun(run.Run, h.epoch)
		if run.Status == store.Running && run.Owner.Valid {
			l.addOwnedRun(&store.Run{UUID: run.Run, Name: name, Epoch: run.Epoch}).addHistory(run.NewSteps)
		}
	}
	return nil
}

// addClaimedRuns records the runs of a claim that was begun in the given era.
func (l *rewindDetector) addClaimedRuns(era uint64, runs []store.ClaimedRun) error {
	if !l.positionKnown.Load() {
		return nil
	}
	l.noteReply()
	l.mu.Lock()
	defer l.mu.Unlock()
	if era != l.rewindCount.Load() {
		return fmt.Errorf("postgres: claim: %w: %w", store.ErrUnavailable, errRewound)
	}
	for i := range runs {
		if runs[i].Run.Status != store.Running {
			continue
		}
		l.addOwnedRun(&runs[i].Run).addHistory(runs[i].History)
	}
	return nil
}

// addHistoryPart records a further part of the history of a claimed run. The read was begun in the given era.
func (l *rewindDetector) addHistoryPart(era uint64, part *store.ClaimedRun) error {
	if !l.positionKnown.Load() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if era != l.rewindCount.Load() {
		return fmt.Errorf("postgres: read a history: %w: %w", store.ErrUnavailable, errRewound)
	}
	if h := l.ownedRuns[part.Run.UUID]; h != nil {
		h.addHistory(part.History)
	}
	return nil
}

// addHistory records the terminal checkpoints of a history.
func (h *acknowledgedHistory) addHistory(history []store.Step) {
	for i := range history {
		if step := &history[i]; step.Status.IsTerminal() {
			h.steps = append(h.steps, acknowledgedCheckpoint{step.Name, step.Epoch})
		}
	}
}

// removeLostRuns records that this process no longer holds some of the leases.
func (l *rewindDetector) removeLostRuns(leases []store.Lease, gone []uuid.UUID) {
	if len(gone) == 0 || !l.positionKnown.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range leases {
		if slices.Contains(gone, lease.Run) {
			l.removeOwnedRun(lease.Run, lease.Epoch)
		}
	}
}

// findRunsLostInRewind checks whether the database has the acknowledged checkpoints of all owned runs. It releases each run that
// lacks one, so that the run is replayed; the old execution is fenced from then on. It returns these runs and the missing
// checkpoints. The caller holds s.rewindDetector.mu.
func (s *database) findRunsLostInRewind(ctx context.Context, ask roundTripFunc) (lost []store.LostRun, err error) {
	var portion []uuid.UUID
	size := 0
	for id, h := range s.rewindDetector.ownedRuns {
		portion = append(portion, id)
		if size += len(h.steps); size < checkpointSearchBatchSize {
			continue
		}
		some, err := s.findLostRunsAmong(ctx, ask, portion)
		if err != nil {
			return nil, err
		}
		lost, portion, size = append(lost, some...), nil, 0
	}
	some, err := s.findLostRunsAmong(ctx, ask, portion)
	if err != nil {
		return nil, err
	}
	return append(lost, some...), nil
}

func (s *database) findLostRunsAmong(ctx context.Context, ask roundTripFunc, runs []uuid.UUID) (lost []store.LostRun, err error) {
	if len(runs) == 0 {
		return nil, nil
	}
	states := make([]store.RunState, len(runs))
	found := make([]map[acknowledgedCheckpoint]bool, len(runs))
	var now time.Time
	err = ask("look for what was acknowledged", func(batch *pgx.Batch) {
		batch.Queue(s.statements.now)
		batch.Queue(s.statements.ownedRunsCheckpoints, runIDArgs(runs)...)
	}, func(res statementResults) error {
		if err := eachRow(res, func(rows pgx.Rows) error { return rows.Scan((*timeValue)(&now)) }); err != nil {
			return err
		}
		return eachRow(res, func(rows pgx.Rows) error {
			var ordinal int64
			var run, step pgtype.Text
			var status pgtype.Int2
			var epoch, by store.Epoch
			if err := rows.Scan(&ordinal, &run, &status, (*epochValue)(&epoch), &step, (*epochValue)(&by)); err != nil {
				return err
			}
			i := ordinal - 1
			states[i] = runStateFromColumns(status, epoch, pgtype.Int2{})
			if found[i] == nil {
				found[i] = make(map[acknowledgedCheckpoint]bool)
			}
			found[i][acknowledgedCheckpoint{step.String, by}] = step.Valid
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	var release []*store.OwnershipEnd
	for i, id := range runs {
		h := s.rewindDetector.ownedRuns[id]
		one := store.LostRun{UUID: id, Name: h.name, RunMissing: !states[i].Found}
		for _, step := range h.steps {
			if !found[i][step] {
				one.MissingSteps = append(one.MissingSteps, step.name)
			}
		}
		if !one.RunMissing && len(one.MissingSteps) == 0 {
			continue
		}
		lost = append(lost, one)
		if states[i].IsOwnedAt(h.epoch) {
			release = append(release, &store.OwnershipEnd{UUID: id, Epoch: h.epoch, Status: store.Pending, Now: now, WakeAt: now})
		}
	}
	if len(release) == 0 {
		return lost, nil
	}
	return lost, ask("release what lacks something", func(batch *pgx.Batch) {
		batch.Queue(s.statements.runEndOwnership, append(ownershipEndArgs(release), notifyChannel(s.schema))...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(nil, nil) })
	})
}
